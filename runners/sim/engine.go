package sim

import (
	"context"
	"math"
	"sync"
	"time"
)

// engine is the scheduler: one batch, whose steps end at instants computed from
// the model alone, so that late wake-ups never add up.
type engine struct {
	perf    *performance
	noise   *noise
	scale   float64
	log     *logger
	wrong   bool
	arrived chan *request
	// die is told why the scheduler cannot go on.
	die func(failure)

	mu    sync.Mutex
	cache *prefixCache
	stats stats
	// running and waiting are the numbers of requests, for others to read.
	running, waiting int

	// Below belongs to the scheduling goroutine.
	at       time.Time     // when the current step ends
	busy     time.Duration // unscaled time spent serving
	accepted int           // requests that ever arrived
}

// stats are the counters that /metrics and /server_info tell of.
type stats struct {
	requests, aborted          int
	promptTokens, cachedTokens int
	generated                  int
	cycles, drafts, correct    int
	lastThroughput             float64
}

// request is one generation in flight.
type request struct {
	ctx     context.Context
	prompt  prompt
	limit   int    // tokens to give
	reason  string // why it ends there: length or stop
	cached  int
	arrival time.Time

	// Owned by the engine.
	tokens, cycles, correct int
	histogram               []int
	draw                    float64
	counted                 counted // what the totals already hold

	mu    sync.Mutex
	ready snapshot
	wake  chan struct{} // capacity 1
}

// counted is the part of a request that is in the totals.
type counted struct{ tokens, correct int }

// snapshot is what a request's handler may send.
type snapshot struct {
	tokens, cycles, correct int
	histogram               []int
	cached                  int
	finished                bool
}

const (
	// tick is the shortest time between two wake-ups: at high serving scales
	// several steps share one.
	tick = 200 * time.Microsecond
	// turnaround is how long a client may take between an answer and its next
	// request without the pause counting: scaling shrinks the server's time but
	// not the loopback's.
	turnaround = 2 * time.Millisecond
	// golden spreads the draws of acceptance evenly, so that even short answers
	// have the model's mean.
	golden = 0.6180339887498949
)

func newEngine(perf *performance, n *noise, log *logger, wrong bool, die func(failure)) *engine {
	return &engine{
		perf: perf, noise: n, scale: perf.options.servingScale, log: log, wrong: wrong, die: die,
		arrived: make(chan *request, 1024),
		cache:   newPrefixCache(perf.memory.KVTokens, !perf.options.on("disable_radix_cache")),
	}
}

// run serves until the context ends.
func (e *engine) run(ctx context.Context) {
	var running, waiting []*request
	for ctx.Err() == nil {
		waiting = e.collect(ctx, waiting, len(running) == 0)
		var ok bool
		if running, waiting, ok = e.admit(ctx, running, waiting); !ok {
			<-ctx.Done() // dead or stuck: nothing leaves any more
			return
		}
		e.publish(len(running), len(waiting))
		if len(running) == 0 {
			continue
		}
		e.advance(e.perf.stepTime(len(running)) * e.noise.step())
		finished := false
		for _, r := range running {
			e.generate(r)
			finished = finished || r.tokens >= r.limit
		}
		e.countCycle(running)
		if wait := time.Until(e.at); wait > tick || finished && wait > 0 {
			if !sleep(ctx, wait) {
				return
			}
		} else if wait > 0 {
			continue
		}
		running = e.deliver(running)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// collect takes what arrived; it waits for a request when there is nothing else
// to do.
func (e *engine) collect(ctx context.Context, waiting []*request, idle bool) []*request {
	if idle && len(waiting) == 0 {
		e.publish(0, 0)
		select {
		case r := <-e.arrived:
			waiting = append(waiting, r)
			grace := time.Duration(float64(turnaround) * max(0, 1-1/e.scale))
			if earliest := r.arrival.Add(-grace); e.at.Before(earliest) {
				e.at = earliest
			}
		case <-ctx.Done():
			return waiting
		}
	}
	for {
		select {
		case r := <-e.arrived:
			waiting = append(waiting, r)
		default:
			return waiting
		}
	}
}

// advance moves the schedule on by unscaled milliseconds.
func (e *engine) advance(ms float64) {
	d := milliseconds(ms * e.thermalFactor())
	e.busy += d
	e.at = e.at.Add(time.Duration(float64(d) / e.scale))
}

// thermalTime is how fast the fault "thermal" bites.
const thermalTime = 60 * time.Second

func (e *engine) thermalFactor() float64 {
	loss, on := e.perf.options.faults.number(faultThermal)
	if !on {
		return 1
	}
	warmth := 1 - math.Exp(-float64(e.busy)/float64(thermalTime))
	return 1 / (1 - loss*warmth)
}

// admit starts waiting requests while the batch has room. It is false when the
// engine must stop.
func (e *engine) admit(ctx context.Context, running, waiting []*request) ([]*request, []*request, bool) {
	limit := e.perf.batch(math.MaxInt32)
	for len(waiting) > 0 && len(running) < limit {
		r := waiting[0]
		waiting = waiting[1:]
		if r.ctx.Err() != nil {
			continue
		}
		e.accepted++
		if why, dead := e.fatal(len(running) + 1); dead {
			e.die(why)
			return running, waiting, false
		}
		if e.stuck() {
			return running, waiting, false
		}
		e.prefill(r)
		if !sleep(ctx, time.Until(e.at)) {
			return running, waiting, false
		}
		running = e.deliver(append(running, r))
	}
	return running, waiting, true
}

// prefill computes the prompt and the first token.
func (e *engine) prefill(r *request) {
	e.mu.Lock()
	r.cached = e.cache.admit(r.prompt)
	if share, on := e.perf.options.faults.number(faultPrefixCache); on {
		r.cached = int(share * float64(r.prompt.tokens))
	}
	e.stats.promptTokens += r.prompt.tokens
	e.stats.cachedTokens += r.cached
	e.stats.requests++
	e.mu.Unlock()
	e.advance(e.perf.prefillTime(r.prompt.tokens, r.cached) * e.noise.step())
	r.tokens = 1
	if n, steady := e.perf.steadyTokens(); steady {
		r.tokens = min(n, r.limit)
	}
	r.draw = unit(mix64(r.prompt.hash ^ 2))
	r.histogram = make([]int, len(e.perf.accept)+1)
	e.mu.Lock()
	e.stats.generated += r.tokens
	e.mu.Unlock()
	r.counted = counted{tokens: r.tokens}
	e.log.prefill(r, e.snapshotCounts())
}

// generate runs one cycle of a request: the accepted drafts and one more token.
func (e *engine) generate(r *request) {
	if r.tokens >= r.limit {
		return
	}
	r.cycles++
	if n, steady := e.perf.steadyTokens(); steady {
		r.tokens = min(r.tokens+n, r.limit)
		return
	}
	r.draw += golden
	r.draw -= math.Floor(r.draw)
	correct := 0
	for correct < len(e.perf.accept) && r.draw < e.perf.accept[correct] {
		correct++
	}
	r.histogram[correct]++
	r.correct += correct
	r.tokens = min(r.tokens+1+correct, r.limit)
}

// deliver hands tokens to the handlers and drops finished requests.
func (e *engine) deliver(running []*request) []*request {
	kept := running[:0]
	for _, r := range running {
		gone := r.ctx.Err() != nil
		done := r.tokens >= r.limit
		if gone && !done {
			e.mu.Lock()
			e.stats.aborted++
			e.mu.Unlock()
		}
		if !gone {
			r.publish(done)
		}
		if !gone && !done {
			kept = append(kept, r)
		}
	}
	clear(running[len(kept):])
	return kept
}

// publish makes the request's progress visible to its handler.
func (r *request) publish(done bool) {
	r.mu.Lock()
	r.ready = snapshot{tokens: r.tokens, cycles: r.cycles, correct: r.correct, cached: r.cached, finished: done}
	if done {
		r.ready.histogram = r.histogram
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next waits for progress beyond so many tokens.
func (r *request) next(ctx context.Context) (snapshot, error) {
	select {
	case <-r.wake:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.ready, nil
	case <-ctx.Done():
		return snapshot{}, ctx.Err()
	}
}

// publish notes the sizes of the batch and the queue.
func (e *engine) publish(running, waiting int) {
	e.mu.Lock()
	e.running, e.waiting = running, waiting
	e.mu.Unlock()
}
