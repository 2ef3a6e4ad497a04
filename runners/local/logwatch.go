package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// tailLines is how many of the last lines a failure shows at most.
const tailLines = 12

// logWatch reads the output of a launch as it comes: phases, facts, evidence of
// failures, and the last lines.
type logWatch struct {
	kind    *servers.Kind
	onPhase func(runners.Phase)
	// fatal is closed at the first line after which the server cannot go on.
	fatal chan struct{}

	mu       sync.Mutex
	evidence *servers.Evidence
	facts    map[string]string
	nccl     nccl.Facts
	phase    runners.Phase
	tail     []string
	partial  bool // the last line of tail may still grow
	stdout   *output
	lines    int
	skipped  int
	last     time.Time // when the last line came
}

// output collects what a command writes to stdout, of which metrics are read.
type output struct {
	lines []string
	bytes int
	cut   bool
}

// maxOutput bounds the stdout that is kept of a command; the end matters.
const maxOutput = 4 << 20

func newLogWatch(kind *servers.Kind, onPhase func(runners.Phase)) *logWatch {
	return &logWatch{
		kind: kind, onPhase: onPhase, evidence: servers.NewEvidence(kind),
		facts: make(map[string]string), fatal: make(chan struct{}),
		last: time.Now(),
	}
}

// keepStdout makes the watch keep stdout as well.
func (w *logWatch) keepStdout() *logWatch {
	w.stdout = &output{}
	return w
}

// read follows the output until it ends. It is to run in a goroutine of its own
// and ends with the launch, because the supervisor closes the output.
func (w *logWatch) read(process *supervise.Process) {
	for {
		line, err := process.NextLine(context.Background())
		if err != nil {
			return
		}
		if phase, changed := w.take(line); changed {
			w.onPhase(phase)
		}
	}
}

// take reads one line and returns the phase when it shows progress.
func (w *logWatch) take(line supervise.Line) (phase runners.Phase, changed bool) {
	line.Text = storable(line.Text)
	text := w.kind.Strip(line.Text)
	report, progress := w.kind.Observe(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines++
	w.skipped += line.Skipped
	w.last = time.Now()
	w.keep(line)
	if w.evidence.Add(text) {
		select {
		case <-w.fatal:
		default:
			close(w.fatal)
		}
	}
	maps.Copy(w.facts, report.Facts)
	w.nccl.Add(line.Text)
	if !progress || report.Phase.Name == "" || report.Phase == w.phase {
		return runners.Phase{}, false
	}
	w.phase = report.Phase
	return w.phase, true
}

// storable makes a line fit for a database and for JSON: servers print what they
// like.
func storable(line string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(line, "\uFFFD"), "\x00", "")
}

// keep adds a line to the tail. A line that was only begun gives way to the
// whole of it.
func (w *logWatch) keep(line supervise.Line) {
	if w.partial && len(w.tail) > 0 && strings.HasPrefix(line.Text, w.tail[len(w.tail)-1]) {
		w.tail = w.tail[:len(w.tail)-1]
	}
	w.partial = line.Partial
	if strings.TrimSpace(line.Text) != "" {
		w.tail = append(w.tail, excerpt(line.Text))
	}
	if len(w.tail) > tailLines {
		w.tail = slices.Delete(w.tail, 0, len(w.tail)-tailLines)
	}
	if w.stdout != nil && line.Stream == supervise.Stdout && !line.Partial {
		w.stdout.add(line)
	}
}

func (o *output) add(line supervise.Line) {
	o.lines = append(o.lines, line.Text)
	o.bytes += len(line.Text)
	o.cut = o.cut || line.Cut
	for o.bytes > maxOutput && len(o.lines) > 1 {
		o.bytes -= len(o.lines[0])
		o.lines = o.lines[1:]
	}
}

// standing is a moment's view of the log.
type standing struct {
	phase runners.Phase
	lines int
	quiet time.Duration // since the last line
	line  string        // the last one
	ranks int           // of the largest communicator that is set up
}

func (w *logWatch) standing() standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := standing{phase: w.phase, lines: w.lines, quiet: time.Since(w.last)}
	if len(w.tail) > 0 {
		s.line = w.tail[len(w.tail)-1]
	}
	for _, communicator := range w.nccl.Communicators {
		if communicator.Complete {
			s.ranks = max(s.ranks, communicator.Ranks)
		}
	}
	return s
}

// explain asks the evidence why the launch failed.
func (w *logWatch) explain(stage runners.Stage, circumstances servers.Circumstances) (servers.Explanation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.evidence.Explain(stage, circumstances)
}

// tagged asks the evidence whether the server runs without what was asked.
func (w *logWatch) tagged(stage runners.Stage, circumstances servers.Circumstances) (servers.Explanation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.evidence.Tagged(stage, circumstances)
}

// ready forgets what the server got over while it loaded.
func (w *logWatch) ready(circumstances servers.Circumstances) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.evidence.Survived(circumstances)
}

// lastLines are the last lines for a message.
func (w *logWatch) lastLines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tail)
}

// known returns the facts read so far.
func (w *logWatch) known() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	facts := maps.Clone(w.facts)
	if version := w.nccl.Version(); version.Known() {
		facts["nccl"] = version.String() // NCCL's own word counts most
	}
	facts["cuda"], facts["driver_cuda"] = w.nccl.CUDABuild, w.nccl.DriverCUDA
	facts["nccl_channels"], facts["nccl_transports"] = channels(&w.nccl), strings.Join(slices.Sorted(maps.Keys(w.nccl.Transports)), ", ")
	maps.DeleteFunc(facts, func(_, value string) bool { return value == "" })
	return facts
}

// channels is what the largest communicator was given.
func channels(facts *nccl.Facts) string {
	var largest *nccl.Communicator
	for _, communicator := range facts.Communicators {
		if communicator.Channels > 0 && (largest == nil || communicator.Ranks > largest.Ranks) {
			largest = communicator
		}
	}
	if largest == nil {
		return ""
	}
	return strconv.Itoa(largest.Channels)
}

// confirmed returns what NCCL's log says about variables of the environment.
func (w *logWatch) confirmed(env map[string]string) []nccl.Proof {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nccl.Confirm(env)
}

// remarks are lines worth keeping beside the result.
func (w *logWatch) remarks(stage runners.Stage, circumstances servers.Circumstances) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	remarks := w.evidence.Notes(stage, circumstances)
	if w.skipped > 0 {
		remarks = append(remarks, fmt.Sprintf("%d log lines came too fast to be read; they are in the log", w.skipped))
	}
	return remarks
}
