package servers

import (
	"slices"
	"strings"

	"nocturne/nccl"
	"nocturne/runners"
)

// Line is one log line without the server's prefix.
type Line struct {
	Text  string
	lower string
}

// NewLine prepares a line for matching.
func NewLine(text string) Line {
	return Line{Text: text, lower: strings.ToLower(text)}
}

// Evidence collects what the log of one launch says about failures. It is not
// safe for concurrent use.
type Evidence struct {
	kind *Kind
	nccl map[string]*Signature // by NCCL's reason
	// found holds the first line of each signature, in the order of the log.
	found []*finding
	seen  map[string]*finding
	// serving is set once the server has been ready.
	serving bool
}

type finding struct {
	signature *Signature
	line      string
	count     int // since the server was ready
}

// cause is what the line means, which may change when it comes again and again.
func (f *finding) cause(stage runners.Stage, circumstances Circumstances) Cause {
	if f.repeated() && UnderLoad(stage) {
		return f.signature.Repeated
	}
	return f.signature.cause(stage, circumstances)
}

func (f *finding) repeated() bool {
	return f.signature.Repeat > 0 && f.count >= f.signature.Repeat
}

// Explanation is what the log says went wrong.
type Explanation struct {
	Signature string // its ID, "C-OOM"
	Reason    string
	Cause     Cause
	Line      string
}

// NewEvidence starts a collection for one launch of the kind.
func NewEvidence(kind *Kind) *Evidence {
	e := &Evidence{kind: kind, nccl: make(map[string]*Signature), seen: make(map[string]*finding)}
	for _, signature := range ncclFailures() {
		e.nccl[strings.TrimPrefix(signature.ID, "N-")] = &signature
	}
	return e
}

// Add reads one line, without the server's prefix, and tells whether the server
// cannot go on after it.
func (e *Evidence) Add(text string) (fatal bool) {
	signature := e.recognise(text)
	if signature == nil {
		return false
	}
	found := e.seen[signature.ID]
	if found == nil {
		found = &finding{signature: signature, line: text}
		e.seen[signature.ID] = found
		e.found = append(e.found, found)
	}
	found.count++
	return signature.Fatal || e.serving && found.repeated()
}

func (e *Evidence) recognise(text string) *Signature {
	if failure, ok := nccl.Diagnose(text); ok {
		return e.nccl[failure.Reason]
	}
	line := NewLine(text)
	for i := range e.kind.Failures {
		if signature := &e.kind.Failures[i]; signature.Match(line) {
			return signature
		}
	}
	return nil
}

// Survived forgets what a server got over that became ready: a kernel that did
// not fit while the server tuned itself does not explain a crash hours later.
// What says that it runs without something that was asked for stays.
func (e *Evidence) Survived(circumstances Circumstances) {
	e.serving = true
	e.found = slices.DeleteFunc(e.found, func(found *finding) bool {
		cause := found.signature.cause(runners.Loading, circumstances)
		return cause != CauseTag && cause != CauseNote && !found.signature.Tag
	})
	clear(e.seen)
	for _, found := range e.found {
		found.count = 0
		e.seen[found.signature.ID] = found
	}
}

// Explain returns why the launch failed: the earliest line that is neither a
// remark nor the consequence of another failure. When there are only
// consequences, the first that means something by itself counts, else the first
// stands for an unexplained crash.
func (e *Evidence) Explain(stage runners.Stage, circumstances Circumstances) (Explanation, bool) {
	var consequence *finding
	for _, found := range e.found {
		cause := found.cause(stage, circumstances)
		switch cause {
		case "", CauseNote, CauseTag:
		case CauseConsequence:
			if consequence == nil || consequence.signature.Alone == "" && found.signature.Alone != "" {
				consequence = found
			}
		default:
			return Explanation{found.signature.ID, found.signature.Reason, cause, found.line}, true
		}
	}
	if consequence != nil {
		signature := consequence.signature
		return Explanation{signature.ID, signature.Reason, signature.byItself(circumstances), consequence.line}, true
	}
	return Explanation{}, false
}

// Tagged returns the first line which says that the server runs without what
// was asked of it.
func (e *Evidence) Tagged(stage runners.Stage, circumstances Circumstances) (Explanation, bool) {
	for _, found := range e.found {
		cause := found.cause(stage, circumstances)
		if cause == CauseTag || found.signature.Tag {
			return Explanation{found.signature.ID, found.signature.Reason, cause, found.line}, true
		}
	}
	return Explanation{}, false
}

// Notes returns the lines worth keeping beside the result.
func (e *Evidence) Notes(stage runners.Stage, circumstances Circumstances) []string {
	var notes []string
	for _, found := range e.found {
		if found.cause(stage, circumstances) == CauseNote {
			notes = append(notes, found.line)
		}
	}
	return notes
}
