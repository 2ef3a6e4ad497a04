package sim

import (
	"context"
	"math"
	"sync"
	"time"
)

// request is one generation in flight.
type request struct {
	ctx    context.Context
	prompt prompt
	limit  int    // tokens to give
	reason string // why it ends there: length or stop
	// interval is the least number of tokens in an event.
	interval int

	arrival time.Time
	// wake holds a token when there is progress to read.
	wake chan struct{}

	// progress belongs to the engine.
	progress
	// counted is the part of progress that is in the engine's totals.
	counted progress
	draw    float64

	mu    sync.Mutex
	ready snapshot
}

// progress is how far a generation is.
type progress struct {
	tokens  int
	cycles  int // of decode, or of draft and verify
	correct int // accepted drafts
}

// snapshot is what a request's handler may send.
type snapshot struct {
	progress
	// histogram counts cycles by their number of accepted drafts.
	histogram []int
	cached    int // prompt tokens found in the prefix cache
	finished  bool
}

// golden spreads the draws of acceptance evenly, so that even short answers have
// nearly the model's mean.
const golden = 0.6180339887498949

// begin gives the first tokens, those that come with the prompt.
func (r *request) begin(perf *performance) {
	r.tokens = 1
	if n, steady := perf.steadyTokens(); steady {
		r.tokens = min(n, r.limit)
	}
	r.draw = unit(mix64(r.prompt.hash ^ 2))
	r.ready.histogram = make([]int, len(perf.accept)+1)
}

// advance runs one cycle: the accepted drafts and one more token. What is
// accepted depends on the prompt and the place in the answer alone.
func (r *request) advance(perf *performance) {
	r.cycles++
	if n, steady := perf.steadyTokens(); steady {
		r.tokens = min(r.tokens+n, r.limit)
		return
	}
	r.draw += golden
	r.draw -= math.Floor(r.draw)
	correct := 0
	for correct < len(perf.accept) && r.draw < perf.accept[correct] {
		correct++
	}
	r.ready.histogram[correct]++
	r.correct += correct
	r.tokens = min(r.tokens+1+correct, r.limit)
}

func (r *request) done() bool { return r.tokens >= r.limit }

// publish makes the progress visible to the handler.
func (r *request) publish() {
	r.mu.Lock()
	r.ready.progress = r.progress
	r.ready.finished = r.done()
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next waits for progress. The histogram may be read once the request finished.
func (r *request) next(ctx context.Context) (snapshot, error) {
	select {
	case <-r.wake:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.ready, nil
	case <-ctx.Done():
		return snapshot{}, context.Cause(ctx)
	}
}

// follow calls emit for the first token, then whenever the interval is full, and
// at the end. With broken it ends half-way with errAborted.
func (r *request) follow(ctx context.Context, broken bool, emit func(now snapshot, from int) error) error {
	sent := 0
	for {
		now, err := r.next(ctx)
		if err != nil {
			return err
		}
		if broken && now.tokens >= (r.limit+1)/2 {
			return errAborted
		}
		if sent == 0 || now.tokens-sent >= r.interval || now.finished {
			if err := emit(now, sent); err != nil {
				return err
			}
			sent = now.tokens
		}
		if now.finished {
			return nil
		}
	}
}
