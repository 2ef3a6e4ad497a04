package sim

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logger prints as the real processes do: the server's own lines to stderr, each
// with a time and the rank it comes from, and NCCL's to stdout.
type logger struct {
	mu             sync.Mutex
	stdout, stderr io.Writer
	interval       int // decode steps between two lines
	scale          float64

	steps     int
	lastTime  time.Time
	lastCount int
}

const stamp = "2006-01-02 15:04:05"

func (l *logger) write(w io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The reader of a log may be gone; the server goes on.
	_, _ = io.WriteString(w, text)
}

// raw prints a line without a prefix, as progress bars and tracebacks are.
func (l *logger) raw(format string, args ...any) {
	l.write(l.stderr, fmt.Sprintf(format, args...)+"\n")
}

// server prints a line of the front process.
func (l *logger) server(format string, args ...any) {
	l.write(l.stderr, "["+time.Now().Format(stamp)+"] "+fmt.Sprintf(format, args...)+"\n")
}

// rank prints a line of the scheduler of a rank.
func (l *logger) rank(rank int, format string, args ...any) {
	l.write(l.stderr, fmt.Sprintf("[%s TP%d] ", time.Now().Format(stamp), rank)+fmt.Sprintf(format, args...)+"\n")
}

// prefill prints what the scheduler says when a prompt starts.
func (l *logger) prefill(r *request, c counts) {
	l.rank(0, "Prefill batch, #new-seq: 1, #new-token: %d, #cached-token: %d, token usage: 0.00, #running-req: %d, #queue-req: %d",
		r.prompt.tokens-r.ready.cached, r.ready.cached, c.running, c.waiting)
}

// decode prints the state of the batch every so many steps.
func (l *logger) decode(e *engine) {
	l.steps++
	if l.steps < l.interval {
		return
	}
	c := e.snapshot()
	now := time.Now()
	if !l.lastTime.IsZero() {
		if seconds := now.Sub(l.lastTime).Seconds() * l.scale; seconds > 0 {
			e.mu.Lock()
			e.stats.lastThroughput = float64(c.generated-l.lastCount) / seconds
			c.lastThroughput = e.stats.lastThroughput
			e.mu.Unlock()
		}
	}
	l.steps, l.lastTime, l.lastCount = 0, now, c.generated
	held := 0
	for _, r := range e.running {
		held += r.prompt.tokens + r.tokens
	}
	speculation := ""
	if e.perf.steps > 0 && c.cycles > 0 {
		speculation = fmt.Sprintf("accept len: %.2f, accept rate: %.2f, ",
			1+float64(c.correct)/float64(c.cycles), float64(c.correct)/float64(max(1, c.drafts)))
	}
	graph := "True"
	if len(e.running) > e.perf.options.graphBatch() {
		graph = "False"
	}
	l.rank(0, "Decode batch, #running-req: %d, #token: %d, token usage: %.2f, %scuda graph: %s, gen throughput (token/s): %.2f, #queue-req: %d",
		len(e.running), held, float64(held)/float64(max(1, e.perf.memory.KVTokens)), speculation, graph, c.lastThroughput, c.waiting)
}
