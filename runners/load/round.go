package load

import (
	"context"
	"fmt"
	"time"

	"nocturne/runners"
)

// RoundSpec is one pass of a workload at one load point.
type RoundSpec struct {
	Prompts []Prompt
	// Concurrency is the number of requests kept in flight in a closed loop. In an
	// open loop it bounds them, and 0 sets no bound.
	Concurrency int
	// Arrival, when it has a rate, makes the loop an open one.
	Arrival Arrival
	// Window, when it is positive, ends the sending after so long, in unscaled
	// units: what is in flight then is waited for, further prompts are not sent.
	Window       time.Duration
	OutputTokens int
	IgnoreEOS    bool
	Temperature  float64
	// InputTokens is the length that prompts were to be fitted to, so that others
	// are worth a note; 0 when none were.
	InputTokens int
	// Goodput is what a request must keep to count as good.
	Goodput Goodput
	// ServingScale above 1 is for the simulated server only: one second of its
	// serving stands for so many. Latencies are multiplied and rates divided by
	// it, so that all results are in unscaled units, and arrivals come so much
	// faster. Connection set-up, schedule delay and the generator's own lag are not
	// served by the model and are left as they are.
	ServingScale float64
	// Counters, when given, names the server's counters to read before and after
	// the round.
	Counters *CounterTable
	// Sampler, when given, watches the GPUs during the round.
	Sampler Sampler
	// SharedPrefixes says that the prompts share prefixes by intention, so that
	// prefix-cache hits are no fault.
	SharedPrefixes bool
	// KeepDetails keeps a record of each request with all its gaps, and KeepTexts
	// its text as well, for which every event must be decoded in full.
	KeepDetails, KeepTexts bool
}

func (s *RoundSpec) check() error {
	if len(s.Prompts) == 0 || s.Concurrency < 0 || s.Concurrency == 0 && !s.Arrival.Open() {
		return fmt.Errorf("a round of %d prompts at concurrency %d: both must be positive", len(s.Prompts), s.Concurrency)
	}
	return s.Arrival.check()
}

// SpecFor is the spec of a round of the workload at one of its load points.
func SpecFor(workload runners.Workload, point runners.LoadPoint, prompts []Prompt) RoundSpec {
	spec := RoundSpec{
		Prompts: prompts, Concurrency: point.Concurrency, OutputTokens: workload.OutputTokens,
		IgnoreEOS: workload.IgnoreEOS, Temperature: workload.Temperature, Window: workload.Window,
		Goodput: Goodput(workload.Goodput), SharedPrefixes: workload.Dataset == DatasetSharedPrefix,
	}
	if point.RequestRate > 0 {
		spec.Arrival = Arrival{Rate: point.RequestRate, Burstiness: workload.Burstiness, Seed: workload.Seed}
	}
	return spec
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
	// GPUs is what each GPU did during the round; nil when nobody looked.
	GPUs []GPUState
	// Details of each request in the order of the prompts, when kept.
	Details []Detail
	Started time.Time

	tally tally
}

// Detail is one request of a round. Times are in unscaled units.
type Detail struct {
	Start   time.Duration // since the start of the round
	Queue   time.Duration // from when it was due to when Concurrency let it go
	TTFT    time.Duration
	Latency time.Duration
	Gaps    []time.Duration
	// Token counts, or Unknown.
	InputTokens, OutputTokens int
	Text                      string        // with KeepTexts
	Error                     *RequestError // nil: completed
}

// Round sends the prompts, each at most once, and reports what was measured. The
// caller bounds it with the context; when that ends early, the outcome covers the
// requests that had completed and the error is the context's cause. Any other
// error means that the round did not start.
func (c *Client) Round(ctx context.Context, spec RoundSpec) (RoundOutcome, error) {
	if err := spec.check(); err != nil {
		return RoundOutcome{}, err
	}
	r := &round{client: c, spec: spec, tally: newTally(spec, c.target.Protocol)}
	if _, err := r.body(0); err != nil {
		return RoundOutcome{}, err
	}
	var notes []string
	before := c.readCounters(ctx, spec.Counters, &notes)

	connections := &connections{dial: c.dial, address: c.address}
	defer connections.close()
	transport := connections.transport(r.widest())
	defer transport.CloseIdleConnections()
	// A failure to connect shows again as failed requests, each with its kind.
	_ = connections.warm(ctx, min(r.widest(), openAhead(spec)))

	self, gpus := c.watchSelf(), watchGPUs(ctx, spec.Sampler)
	r.run(ctx, func() *exchange { return newExchange(c, transport) })
	r.tally.client = self.stop()
	r.tally.gpus = gpus.stop(&notes)
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
