package sim

import (
	"context"
	"fmt"
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
	wrong   bool // answers are corrupted
	launch  int  // number of this launch, from 1
	arrived chan *request
	// die is told why the scheduler cannot go on.
	die func(failure)

	mu    sync.Mutex
	cache *prefixCache
	stats counts

	// The rest belongs to the scheduling goroutine.
	running, waiting []*request
	at               time.Time     // when the current step ends
	delivered        time.Time     // when its tokens really left, which is later on a busy machine
	busy             time.Duration // unscaled time spent serving
	accepted         int           // requests that ever started
	held             int           // tokens that running requests may need
}

// counts are the totals that /metrics and /server_info tell of.
type counts struct {
	running, waiting           int
	requests, aborted          int
	promptTokens, cachedTokens int
	generated                  int
	// Of speculation: cycles, drafted and accepted tokens, since the last flush.
	cycles, drafts, correct int
	lastThroughput          float64 // tokens/s, unscaled
}

const (
	// tick is the shortest time between two wake-ups: at high serving scales
	// several steps share one.
	tick = 200 * time.Microsecond
	// turnaround is how long a client may take between an answer and its next
	// request without the pause counting: scaling shrinks the server's time but
	// not the loopback's.
	turnaround = 4 * time.Millisecond
	// backlog is how many requests may arrive within one step.
	backlog = 4096
)

func newEngine(perf *performance, n *noise, log *logger, die func(failure)) *engine {
	return &engine{
		perf: perf, noise: n, scale: perf.options.servingScale, log: log, die: die,
		arrived: make(chan *request, backlog),
		cache:   newPrefixCache(perf.memory.KVTokens, !perf.options.on("disable_radix_cache")),
	}
}

// submit queues a request; its progress comes through next. It is false when the
// request's context ended first.
func (e *engine) submit(r *request) bool {
	r.arrival = time.Now()
	r.wake = make(chan struct{}, 1)
	select {
	case e.arrived <- r:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// run serves until the context ends.
func (e *engine) run(ctx context.Context) {
	for ctx.Err() == nil {
		e.collect(ctx)
		if !e.admit(ctx) {
			e.watchdog(ctx) // nothing leaves any more
			return
		}
		if len(e.running) > 0 && !e.step(ctx) {
			return
		}
	}
}

// collect takes what arrived; it waits for a request when there is nothing else
// to do.
func (e *engine) collect(ctx context.Context) {
	e.note()
	if len(e.running)+len(e.waiting) == 0 {
		select {
		case r := <-e.arrived:
			e.waiting = append(e.waiting, r)
			grace := time.Duration(float64(turnaround) * max(0, 1-1/e.scale))
			if r.arrival.Sub(e.delivered) > grace {
				e.at = r.arrival
			}
		case <-ctx.Done():
			return
		}
	}
	for {
		select {
		case r := <-e.arrived:
			e.waiting = append(e.waiting, r)
		default:
			return
		}
	}
}

// note publishes the sizes of the batch and the queue.
func (e *engine) note() {
	e.mu.Lock()
	e.stats.running, e.stats.waiting = len(e.running), len(e.waiting)
	e.mu.Unlock()
}

// watchdog waits for the end of an engine that is dead or stuck, and kills the
// server after the time of --watchdog-timeout.
func (e *engine) watchdog(ctx context.Context) {
	seconds := e.perf.options.float("watchdog_timeout")
	if sleep(ctx, time.Duration(seconds/e.scale*float64(time.Second))) {
		e.die(failure{worker: -1, lines: []string{fmt.Sprintf("Scheduler watchdog timeout (self.watchdog_timeout=%g, self.soft=False)", seconds)}})
		<-ctx.Done()
	}
}

// admit starts waiting requests while the batch has room. It is false when the
// engine must stop.
func (e *engine) admit(ctx context.Context) bool {
	for len(e.waiting) > 0 {
		r := e.waiting[0]
		need := r.prompt.tokens + r.limit
		if len(e.running) >= e.perf.options.maxRunning() || len(e.running) > 0 && e.held+need > e.perf.memory.KVTokens {
			return true
		}
		e.waiting = e.waiting[1:]
		if r.ctx.Err() != nil {
			continue
		}
		e.accepted++
		if why, dead := e.fatal(len(e.running) + 1); dead {
			e.die(why)
			return false
		}
		if e.stuck() {
			return false
		}
		e.prefill(r)
		e.running = append(e.running, r)
		e.held += need
		e.note()
		if !sleep(ctx, time.Until(e.at)) {
			return false
		}
		e.deliver()
	}
	return true
}

// prefill computes the prompt and the first token.
func (e *engine) prefill(r *request) {
	e.mu.Lock()
	r.ready.cached = e.cache.admit(r.prompt)
	if share, on := e.perf.options.faults.number(faultPrefixCache); on {
		r.ready.cached = int(share * float64(r.prompt.tokens))
	}
	r.begin(e.perf)
	e.stats.promptTokens += r.prompt.tokens
	e.stats.cachedTokens += r.ready.cached
	e.stats.requests++
	e.stats.generated += r.tokens
	c := e.stats
	e.mu.Unlock()
	r.counted = r.progress
	e.advance(e.perf.prefillTime(r.prompt.tokens, r.ready.cached) * e.noise.step())
	e.log.prefill(r, c)
}

// step runs one cycle of the whole batch. It is false when the context ended.
func (e *engine) step(ctx context.Context) bool {
	e.advance(e.perf.stepTime(len(e.running)) * e.noise.step())
	finished := false
	for _, r := range e.running {
		r.advance(e.perf)
		finished = finished || r.done()
	}
	e.count()
	switch wait := time.Until(e.at); {
	case wait > tick || finished && wait > 0:
		if !sleep(ctx, wait) {
			return false
		}
	case wait > 0:
		return true // the next wake-up delivers this step's tokens as well
	}
	e.deliver()
	return true
}

// advance moves the schedule on by unscaled milliseconds.
func (e *engine) advance(ms float64) {
	d := milliseconds(ms * e.thermalFactor())
	e.busy += d
	e.at = e.at.Add(time.Duration(float64(d) / e.scale))
}

// thermalTime is how fast the fault "thermal" bites, unscaled.
const thermalTime = 60 * time.Second

func (e *engine) thermalFactor() float64 {
	loss, on := e.perf.options.faults.number(faultThermal)
	if !on {
		return 1
	}
	warmth := 1 - math.Exp(-float64(e.busy)/float64(thermalTime))
	return 1 / (1 - loss*warmth)
}

// count adds one step of the batch to the totals.
func (e *engine) count() {
	e.mu.Lock()
	for _, r := range e.running {
		e.stats.cycles++
		e.stats.drafts += max(0, e.perf.verified-1)
		e.stats.correct += r.correct - r.counted.correct
		e.stats.generated += r.tokens - r.counted.tokens
		r.counted = r.progress
	}
	e.mu.Unlock()
	e.log.decode(e)
}

// deliver hands tokens to the handlers and drops requests that ended.
func (e *engine) deliver() {
	e.delivered = time.Now()
	kept := e.running[:0]
	for _, r := range e.running {
		gone := r.ctx.Err() != nil
		if !gone {
			r.publish()
		}
		if !gone && !r.done() {
			kept = append(kept, r)
			continue
		}
		e.held -= r.prompt.tokens + r.limit
		if gone && !r.done() {
			e.mu.Lock()
			e.stats.aborted++
			e.mu.Unlock()
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
}

// snapshot returns the totals.
func (e *engine) snapshot() counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// flush empties the prefix cache and the totals of speculation; false while
// requests run.
func (e *engine) flush() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stats.running+e.stats.waiting+len(e.arrived) > 0 {
		return false
	}
	e.cache.flush()
	e.stats.cycles, e.stats.drafts, e.stats.correct = 0, 0, 0
	return true
}

// sleep waits; it is false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
