package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"nocturne/runners"
)

// RoundSpec is one pass of a workload at one load point.
type RoundSpec struct {
	Prompts      []Prompt
	Concurrency  int
	OutputTokens int
	IgnoreEOS    bool
	Temperature  float64
	// ServingScale above 1 is for the simulated server only: one second of its
	// serving stands for so many. Latencies are multiplied and rates divided by
	// it, so that all results are in unscaled units. Connection set-up is not
	// served by the model and is left as it is.
	ServingScale float64
	// Counters, when given, names the server's counters to read before and after
	// the round.
	Counters *CounterTable
	// SharedPrefixes says that the prompts share prefixes by intention, so that
	// prefix-cache hits are no fault.
	SharedPrefixes bool
	// KeepDetails keeps a record of each request with all its gaps.
	KeepDetails bool
}

// SpecFor is the spec of a round of the workload at one of its load points.
func SpecFor(workload runners.Workload, point runners.LoadPoint, prompts []Prompt) RoundSpec {
	return RoundSpec{
		Prompts: prompts, Concurrency: point.Concurrency, OutputTokens: workload.OutputTokens,
		IgnoreEOS: workload.IgnoreEOS, Temperature: workload.Temperature,
	}
}

// RoundOutcome is what a round, or several pooled ones, yielded.
type RoundOutcome struct {
	// Metrics by the names of `vllm bench serve`, and a few of our own; see the
	// package comment. Values are finite; what could not be measured is absent.
	Metrics runners.Metrics
	// Histograms of ttft, tpot, itl, e2el and chunk_gap: microseconds, encoded by
	// HdrHistogram (V2 compressed, base64).
	Histograms map[string]string
	// Failures counts the requests that failed, by kind.
	Failures map[FailureKind]FailureCount
	// Verdict says whether the numbers may count.
	Verdict Verdict
	// Notes say what is missing or estimated, and why.
	Notes []string
	// Counters is what the server's counters moved by; nil when not read.
	Counters *CounterDelta
	// Details of each request in the order of the prompts, when kept.
	Details []Detail
	Started time.Time

	tally tally
}

// Detail is one request of a round. Times are in unscaled units.
type Detail struct {
	Start   time.Duration // since the start of the round
	TTFT    time.Duration
	Latency time.Duration
	Gaps    []time.Duration
	// Token counts, or Unknown.
	InputTokens, OutputTokens int
	Error                     *RequestError // nil: completed
}

// Round sends every prompt once, keeping Concurrency requests in flight, and
// reports what was measured. The caller bounds it with the context; when that
// ends early, the outcome covers the requests that had completed and the error
// is the context's cause. Any other error means that the round did not start.
func (c *Client) Round(ctx context.Context, spec RoundSpec) (RoundOutcome, error) {
	if spec.Concurrency < 1 || len(spec.Prompts) == 0 {
		return RoundOutcome{}, fmt.Errorf("a round of %d prompts at concurrency %d: both must be positive",
			len(spec.Prompts), spec.Concurrency)
	}
	bodies, err := c.bodies(spec)
	if err != nil {
		return RoundOutcome{}, err
	}
	var notes []string
	before := c.readCounters(ctx, spec.Counters, &notes)

	workers := min(spec.Concurrency, len(spec.Prompts))
	connections := &connections{dial: c.dial, address: c.address}
	defer connections.close()
	transport := connections.transport(workers)
	defer transport.CloseIdleConnections()
	// A failure to connect shows again as failed requests, each with its kind.
	_ = connections.warm(ctx, workers)

	r := &round{spec: spec, bodies: bodies, tally: newTally(spec, c.target.Protocol)}
	r.run(ctx, workers, func() *exchange { return newExchange(c, transport) })
	r.tally.connects = connections.times()

	var delta *CounterDelta
	if before != nil && ctx.Err() == nil {
		if after := c.readCounters(ctx, spec.Counters, &notes); after != nil {
			d := Delta(*before, *after)
			delta = &d
		}
	}
	outcome := r.tally.outcome(delta)
	outcome.Notes = append(notes, outcome.Notes...)
	outcome.Started = r.started
	if ctx.Err() != nil {
		return outcome, context.Cause(ctx)
	}
	return outcome, nil
}

// bodies encodes the requests ahead, so that no worker does it between two.
func (c *Client) bodies(spec RoundSpec) ([][]byte, error) {
	bodies := make([][]byte, len(spec.Prompts))
	for i, prompt := range spec.Prompts {
		body, err := c.target.body(Request{
			Prompt: prompt.Text, OutputTokens: spec.OutputTokens,
			IgnoreEOS: spec.IgnoreEOS, Temperature: spec.Temperature,
		})
		if err != nil {
			return nil, err
		}
		bodies[i] = body
	}
	return bodies, nil
}

// readCounters reads the counters of the table, if there is one; a failure is
// a note.
func (c *Client) readCounters(ctx context.Context, table *CounterTable, notes *[]string) *Counters {
	if table == nil {
		return nil
	}
	counters, err := c.Counters(ctx, *table)
	if err != nil {
		*notes = append(*notes, fmt.Sprintf("server counters are unknown: %v", err))
		return nil
	}
	return &counters
}

// round is a round under way.
type round struct {
	spec    RoundSpec
	bodies  [][]byte
	started time.Time
	next    atomic.Int64

	mu    sync.Mutex
	tally tally
}

// run works the requests off. Each worker sends its next request as soon as
// its last one is over.
func (r *round) run(ctx context.Context, workers int, exchange func() *exchange) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for range workers {
		x := exchange()
		group.Go(func() {
			<-start
			for ctx.Err() == nil {
				index := int(r.next.Add(1)) - 1
				if index >= len(r.bodies) {
					return
				}
				asked := time.Now()
				response, failure := x.do(ctx, r.bodies[index], false)
				if response.sent.IsZero() {
					response.sent = asked
				}
				if failure != nil && ctx.Err() != nil {
					return // cut off by the caller: neither completed nor failed
				}
				r.note(index, response, failure)
			}
		})
	}
	r.started = time.Now()
	close(start)
	group.Wait()
	if ctx.Err() != nil {
		r.tally.extend(time.Since(r.started))
	}
}

func (r *round) note(index int, response *response, failure *RequestError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.note(index, r.started, response, failure)
}
