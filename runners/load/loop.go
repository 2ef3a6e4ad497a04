package load

import (
	"context"
	"sync"
	"time"
)

// round is a round under way.
type round struct {
	client  *Client
	spec    RoundSpec
	started time.Time

	mu    sync.Mutex
	tally tally
}

// outgoing is a request that is ready to be sent.
type outgoing struct {
	index int
	body  []byte
}

// timing is when a request was meant to be sent.
type timing struct {
	// due is the time of the schedule; zero in a closed loop.
	due time.Time
	// ready is when nothing but the generator kept it from being sent: it was due,
	// and had a place.
	ready time.Time
}

const (
	// encodeAhead is how many requests are encoded before they are due: enough that
	// no worker does it between two of its own, few enough to hold in memory.
	encodeAhead = 256
	// connectAhead is how many connections an open loop opens before it begins.
	// Further ones open as requests need them.
	connectAhead = 64
	// mostIdle bounds the connections that an open loop keeps for the next request.
	mostIdle = 4096
)

// widest is the greatest number of requests that can be in flight.
func (r *round) widest() int {
	if r.spec.Concurrency == 0 {
		return min(len(r.spec.Prompts), mostIdle)
	}
	return min(r.spec.Concurrency, len(r.spec.Prompts))
}

func openAhead(spec RoundSpec) int {
	if spec.Arrival.Open() {
		return connectAhead
	}
	return spec.Concurrency
}

// run sends the requests and returns when the last one is over.
func (r *round) run(ctx context.Context, exchange func() *exchange) {
	sending, cancel := context.WithCancel(ctx)
	requests, feeder := r.feed(sending)
	if r.spec.Arrival.Open() {
		r.openLoop(ctx, requests, exchange)
	} else {
		r.closedLoop(ctx, requests, exchange)
	}
	cancel()
	feeder.Wait()
	if ctx.Err() != nil {
		r.tally.extend(time.Since(r.started))
	}
}

// body encodes a request.
func (r *round) body(index int) ([]byte, error) {
	return r.client.target.body(Request{
		Prompt: r.spec.Prompts[index].Text, OutputTokens: r.spec.OutputTokens,
		IgnoreEOS: r.spec.IgnoreEOS, Temperature: r.spec.Temperature,
	})
}

// feed encodes the requests in order, a little ahead of their sending.
func (r *round) feed(ctx context.Context) (<-chan outgoing, *sync.WaitGroup) {
	requests := make(chan outgoing, encodeAhead)
	var feeder sync.WaitGroup
	feeder.Go(func() {
		defer close(requests)
		for i := range r.spec.Prompts {
			// Only the target's extra fields can fail to encode, and those did not.
			body, _ := r.body(i)
			select {
			case requests <- outgoing{i, body}:
			case <-ctx.Done():
				return
			}
		}
	})
	return requests, &feeder
}

// closedLoop works the requests off. Each worker sends its next request as soon
// as its last one is over.
func (r *round) closedLoop(ctx context.Context, requests <-chan outgoing, exchange func() *exchange) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for range r.widest() {
		x := exchange()
		group.Go(func() {
			<-start
			ready := r.started
			for ctx.Err() == nil {
				if r.windowOver(time.Since(r.started)) {
					r.closeSteady(r.spec.Window)
					return
				}
				request, more := <-requests
				if !more {
					r.nothingLeft(ctx)
					return
				}
				ready = r.send(ctx, x, request, timing{ready: ready})
			}
		})
	}
	r.started = time.Now()
	close(start)
	group.Wait()
}

// openLoop sends each request when it is due, or as soon after that as there is a
// place.
func (r *round) openLoop(ctx context.Context, requests <-chan outgoing, exchange func() *exchange) {
	due := r.spec.Arrival.schedule(len(r.spec.Prompts))
	places := newPlaces(r.spec.Concurrency)
	idle := exchanges{create: exchange}
	var group sync.WaitGroup
	defer group.Wait()
	r.started = time.Now()
	for request := range requests {
		at := due[request.index]
		if r.spec.Window > 0 && at > r.spec.Window {
			r.closeSteady(r.spec.Window)
			return
		}
		when := timing{due: r.started.Add(r.tally.real(at))}
		if waitUntil(ctx, when.due) != nil {
			return
		}
		var err error
		if when.ready, err = places.take(ctx, when.due); err != nil {
			return
		}
		x := idle.take()
		group.Go(func() {
			defer places.give()
			r.send(ctx, x, request, when)
			idle.give(x)
		})
	}
	if ctx.Err() == nil {
		r.closeSteady(due[len(due)-1])
	}
}

// windowOver tells whether nothing more is to be sent after a measured time.
func (r *round) windowOver(since time.Duration) bool {
	return r.spec.Window > 0 && r.tally.scaled(since) >= r.spec.Window
}

// send carries one request out, and returns when its connection was free for the
// next one.
func (r *round) send(ctx context.Context, x *exchange, request outgoing, when timing) time.Time {
	asked := time.Now()
	response, failure := x.do(ctx, request.body, r.spec.KeepTexts)
	free := time.Now()
	if response.sent.IsZero() {
		response.sent = asked
	}
	// A request that the caller cut off has neither completed nor failed.
	if failure == nil || ctx.Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tally.note(request.index, r.started, when, response, failure)
	}
	return free
}

// nothingLeft ends the steady window of a closed loop: a place stays empty from
// now on.
func (r *round) nothingLeft(ctx context.Context) {
	if ctx.Err() == nil {
		r.closeSteady(r.tally.scaled(time.Since(r.started)))
	}
}

func (r *round) closeSteady(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.steady.close(at)
}

// waitUntil returns at the given time, or with the error of the context.
func waitUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// places bounds the requests in flight; nil does not.
type places chan struct{}

func newPlaces(n int) places {
	if n == 0 {
		return nil
	}
	return make(places, n)
}

// take waits for a place, and returns when the request could have been sent: when
// it was due, or when it got its place after a wait.
func (p places) take(ctx context.Context, due time.Time) (time.Time, error) {
	if p == nil {
		return due, nil
	}
	select {
	case p <- struct{}{}:
		return due, nil
	default:
	}
	select {
	case p <- struct{}{}:
		return time.Now(), nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

func (p places) give() {
	if p != nil {
		<-p
	}
}

// exchanges keeps the buffers of exchanges that are over for the next request.
type exchanges struct {
	create func() *exchange

	mu   sync.Mutex
	idle []*exchange
}

func (e *exchanges) take() *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := len(e.idle) - 1
	if last < 0 {
		return e.create()
	}
	x := e.idle[last]
	e.idle = e.idle[:last]
	return x
}

func (e *exchanges) give(x *exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, x)
}
