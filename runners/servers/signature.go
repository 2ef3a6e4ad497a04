package servers

import (
	"nocturne/runners"
)

// Signature recognises one failure, or a remark about how the server runs, in
// one line of the log.
type Signature struct {
	// ID names the signature in tests and documentation: "C-OOM".
	ID     string
	Reason string
	// Start is the cause before the server is ready, Load the cause afterwards.
	// An empty one means that the line says nothing at that time.
	Start, Load Cause
	// Alone is what a consequence counts as when nothing else explains it; empty
	// is a crash.
	Alone Cause
	// Under lists circumstances that change the cause; the first that holds wins.
	Under []Under
	// Fatal tells that the server cannot go on after this line, so that waiting
	// ends even when its process stays.
	Fatal bool
	// Tag tells that the server goes on after this line but the trial must not
	// count, whatever the cause.
	Tag bool
	// Repeat, when above 0, is how often the line must come while the server serves
	// to mean that it stopped getting on, with the cause Repeated; waiting ends then.
	Repeat   int
	Repeated Cause
	Pattern  Pattern
}

// Under changes the cause of a signature when the circumstance holds.
type Under struct {
	Circumstance Circumstance
	Cause        Cause
}

// Circumstance is something about a trial that changes what a line means.
type Circumstance string

// Circumstances.
const (
	// NCCLUntouched: the trial sets no tuned NCCL variable.
	NCCLUntouched Circumstance = "nccl_untouched"
	// WithDraftModel: the trial loads a draft model.
	WithDraftModel Circumstance = "with_draft_model"
	// StartedDirty: GPU memory was in use when the trial started.
	StartedDirty Circumstance = "started_dirty"
)

// Sets is the circumstance that the trial itself sets the variable.
func Sets(variable string) Circumstance { return Circumstance("sets " + variable) }

// Circumstances is the set that holds for a trial.
type Circumstances map[Circumstance]bool

// Match tells whether the line is one of the signature's.
func (s *Signature) Match(line Line) bool {
	return s.Pattern.mayMatch(line.lower) && s.Pattern.MatchString(line.Text)
}

// cause returns what the line means at that stage under the circumstances.
func (s *Signature) cause(stage runners.Stage, circumstances Circumstances) Cause {
	cause := s.Start
	if UnderLoad(stage) {
		cause = s.Load
	}
	if cause == "" {
		return cause
	}
	if cause == CauseConsequence {
		return cause
	}
	return s.given(cause, circumstances)
}

// byItself returns what a consequence means when nothing else explains it.
func (s *Signature) byItself(circumstances Circumstances) Cause {
	if s.Alone == "" {
		return CauseCrash
	}
	return s.given(s.Alone, circumstances)
}

// given changes a cause by what holds for the trial.
func (s *Signature) given(cause Cause, circumstances Circumstances) Cause {
	for _, under := range s.Under {
		if circumstances[under.Circumstance] {
			return under.Cause
		}
	}
	if cause == CauseMemory && circumstances[StartedDirty] {
		return CauseTransient
	}
	return cause
}

// UnderLoad tells whether a stage comes after the readiness gate.
func UnderLoad(stage runners.Stage) bool {
	switch stage {
	case runners.Warming, runners.Measuring, runners.Stopping:
		return true
	default:
		return false
	}
}

// signature compiles one row of a table.
func signature(id, reason string, start, load Cause, pattern string) Signature {
	return Signature{
		ID: id, Reason: reason, Start: start, Load: load,
		Pattern: newPattern(pattern),
	}
}

func (s Signature) under(circumstance Circumstance, cause Cause) Signature {
	s.Under = append(s.Under, Under{circumstance, cause})
	return s
}

func (s Signature) alone(cause Cause) Signature {
	s.Alone = cause
	return s
}

func (s Signature) fatal() Signature {
	s.Fatal = true
	return s
}

func (s Signature) tag() Signature {
	s.Tag = true
	return s
}
