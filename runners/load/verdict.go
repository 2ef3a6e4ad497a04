package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nocturne/runners"
)

// Limits of a round whose numbers may count.
const (
	// MinSuccessRate is the least share of requests that must complete.
	MinSuccessRate = 0.99
	// LengthTolerance is how far the output length may lie from a forced one.
	LengthTolerance = 0.02
	// MaxPrefixHitRate is the greatest share of input tokens served from the
	// prefix cache when prompts share no prefix by intention.
	MaxPrefixHitRate = 0.01
)

// A point at which the generator is the bottleneck measures the generator. These
// are the bounds on what it may do to the numbers; each holds only where the
// effect is also more than the timers' own grain.
const (
	// MaxClientBusy is the greatest share of the processor time at hand that the
	// generator may use: beyond it chunks wait for their stamp.
	MaxClientBusy = 0.9
	// MaxClientLag is the greatest mean lag of the generator, as a share of the
	// shortest thing that is measured: the mean TTFT or the mean time between chunks.
	MaxClientLag = 0.1
	// MaxScheduleDelay is the greatest mean time for which a request is late by the
	// generator's fault, as a share of the mean E2EL: requests in flight lack then.
	MaxScheduleDelay = 0.05
	// MaxRateShortfall is the greatest share by which an open loop may take longer
	// over its schedule than it should.
	MaxRateShortfall = 0.05

	// timerGrain is what a sleep may be late by on an idle machine, twice over.
	timerGrain = 2 * time.Millisecond
	// leastJudged is the shortest round whose generator is judged: processor time
	// and lag are too coarse for less.
	leastJudged = time.Second
)

// A GPU that the hardware slows down measures the cooling. One sample may show
// the change of a power state (NVML, nvmlClocksEventReasonHwSlowdown).
const (
	leastSlowdowns = 2
	// MaxSlowedDown is the greatest share of samples under a hardware slowdown.
	MaxSlowedDown = 0.05
)

// templateTokens is what a chat template may put before the first word of the
// prompt, which all requests share rightly.
const templateTokens = 64

// Reasons of a round that does not count.
const (
	ReasonRequestsFailed = "requests_failed"
	ReasonLength         = "length"
	ReasonPrefixCache    = "prefix_cache"
	ReasonNonFinite      = "non_finite"
	ReasonClientLimited  = "client_limited"
	ReasonGPUSlowdown    = "gpu_slowdown"
)

// Verdict says whether the numbers of a round may count.
type Verdict struct {
	// Outcome is Complete, Failed, or Invalid.
	Outcome runners.Outcome
	// Failures are all that is wrong, the worst first; empty when complete.
	Failures []runners.Failure
}

// verdict applies the rules to the round, and takes what is not finite out of
// its metrics.
func (t *tally) verdict(m runners.Metrics, sum totals, delta *CounterDelta, gpus []GPUState) Verdict {
	nonFinite := keepFinite(m)
	v := Verdict{Outcome: runners.Complete}
	find := func(outcome runners.Outcome, failure *runners.Failure) {
		if failure == nil {
			return
		}
		if v.Outcome == runners.Complete {
			v.Outcome = outcome
		}
		failure.Stage = runners.Measuring
		v.Failures = append(v.Failures, *failure)
	}
	find(runners.Failed, t.requestsFailed())
	if len(t.requests) > 0 && len(nonFinite) > 0 {
		find(runners.Failed, &runners.Failure{Class: runners.ClassTransient, Reason: ReasonNonFinite,
			Message: "not a finite number: " + strings.Join(nonFinite, ", ")})
	}
	find(runners.Invalid, t.wrongLength(sum))
	find(runners.Invalid, t.prefixHits(sum, delta))
	find(runners.Invalid, t.clientLimited(m))
	find(runners.Invalid, slowedDown(gpus))
	return v
}

// clientLimited finds a round whose numbers are the generator's doing. The time
// of a simulated server is compressed, so nothing follows from it.
func (t *tally) clientLimited(m runners.Metrics) *runners.Failure {
	if t.scale > 1 || t.client.wall < leastJudged || len(t.requests) == 0 {
		return nil
	}
	var found []string
	if busy := t.client.busy(); busy > MaxClientBusy {
		found = append(found, fmt.Sprintf("it used %.0f %% of its %d cores, at most %.0f %% may be", 100*busy, t.client.cores, 100*MaxClientBusy))
	}
	exceeds := func(lateMs, share, ofMs float64) bool {
		return lateMs > max(milliseconds(timerGrain), share*ofMs)
	}
	shortest := m["mean_ttft_ms"]
	if gap, ok := m["mean_chunk_gap_ms"]; ok && gap < shortest {
		shortest = gap
	}
	if lag := m["mean_client_lag_ms"]; exceeds(lag, MaxClientLag, shortest) {
		found = append(found, fmt.Sprintf("it woke up %.1f ms late on average, where times of %.1f ms are measured", lag, shortest))
	}
	if delay, whole := m["mean_schedule_delay_ms"], m["mean_e2el_ms"]; exceeds(delay, MaxScheduleDelay, whole) {
		found = append(found, fmt.Sprintf("it sent requests of %.0f ms %.1f ms late on average", whole, delay))
	}
	if late := t.lastDelay; late > timerGrain && late.Seconds() > MaxRateShortfall*t.lastDue.Seconds() {
		found = append(found, fmt.Sprintf("it sent the last request %.2f s after its time, on a schedule of %.2f s", late.Seconds(), t.lastDue.Seconds()))
	}
	if len(found) == 0 {
		return nil
	}
	return &runners.Failure{Class: runners.ClassTransient, Reason: ReasonClientLimited, Message: "the load generator was the bottleneck: " +
		strings.Join(found, "; ") + ": give it cores of its own, or ask for less"}
}

// slowedDown finds GPUs that the hardware slowed down.
func slowedDown(gpus []GPUState) *runners.Failure {
	var found []string
	for _, g := range gpus {
		if g.slowdowns >= leastSlowdowns && float64(g.slowdowns) > MaxSlowedDown*float64(g.Samples) {
			found = append(found, fmt.Sprintf("%s (in %d of %d samples)", g, g.slowdowns, g.Samples))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &runners.Failure{Class: runners.ClassTransient, Reason: ReasonGPUSlowdown,
		Message: "the hardware slowed GPUs down, for heat or power: " + strings.Join(found, "; ")}
}

func (t *tally) requestsFailed() *runners.Failure {
	completed, failed := len(t.requests), t.failed()
	if completed > 0 && float64(completed) >= MinSuccessRate*float64(completed+failed) {
		return nil
	}
	kinds := slices.SortedFunc(maps.Keys(t.failures), func(a, b FailureKind) int {
		if more := t.failures[b].Count - t.failures[a].Count; more != 0 {
			return more
		}
		return strings.Compare(string(a), string(b))
	})
	message := fmt.Sprintf("%d of %d requests failed, at most %g %% may", failed, completed+failed, 100*(1-MinSuccessRate))
	for _, kind := range kinds {
		message += fmt.Sprintf("; %d %s, first: %s", t.failures[kind].Count, kind, t.failures[kind].First)
	}
	// What the server answers is the configuration's doing. A connection that
	// cannot be had or breaks may be anything; who watches the process knows more.
	class := runners.ClassInfeasible
	if len(kinds) == 0 || kinds[0] == FailedConnect || kinds[0] == FailedCutOff {
		class = runners.ClassTransient
	}
	return &runners.Failure{Class: class, Reason: ReasonRequestsFailed, Message: message}
}

// wrongLength finds forced output lengths that were not kept. One token more
// for each request is allowed: servers differ on whether the end counts.
func (t *tally) wrongLength(sum totals) *runners.Failure {
	if !t.forced || len(t.requests) == 0 || sum.produced == unknown || t.requested == 0 {
		return nil
	}
	asked := t.requested * len(t.requests)
	ratio := float64(sum.produced) / float64(asked)
	if ratio >= 1-LengthTolerance &&
		float64(sum.produced-len(t.requests)) <= (1+LengthTolerance)*float64(asked) {
		return nil
	}
	return &runners.Failure{Class: runners.ClassInfeasible, Reason: ReasonLength, Message: fmt.Sprintf(
		"%d output tokens where %d were forced (ratio %.3f, expected %.2f to %.2f): the rates describe another workload",
		sum.produced, asked, ratio, 1-LengthTolerance, 1+LengthTolerance)}
}

// prefixHits finds a round that was served from the prefix cache, by the
// server's counters, else by what the responses say.
func (t *tally) prefixHits(sum totals, delta *CounterDelta) *runners.Failure {
	if t.sharedPrefixes {
		return nil
	}
	hits, queries, source := float64(sum.cached), float64(sum.input), "responses"
	known := sum.cached != unknown && sum.input != unknown
	if delta != nil {
		h, okH := delta.Values[PrefixHits]
		q, okQ := delta.Values[PrefixQueries]
		if okH && okQ {
			hits, queries, known, source = h, q, true, "server counters"
		}
	}
	if !known || queries == 0 {
		return nil
	}
	allowed := MaxPrefixHitRate * queries
	if t.chat {
		allowed = max(allowed, templateTokens*float64(len(t.requests)+t.failed()))
	}
	if hits <= allowed {
		return nil
	}
	message := fmt.Sprintf("%.1f %% of input tokens came from the prefix cache (%.0f of %.0f, by the %s), at most %g %% may",
		100*hits/queries, hits, queries, source, 100*MaxPrefixHitRate)
	if delta != nil {
		if n, ok := delta.Values[Preemptions]; ok {
			message += fmt.Sprintf("; %.0f preemptions, whose recomputation can count as hits", n)
		}
	}
	return &runners.Failure{Class: runners.ClassInfeasible, Reason: ReasonPrefixCache, Message: message}
}
