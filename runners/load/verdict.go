package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// templateTokens is what a chat template may put before the first word of the
// prompt, which all requests share rightly.
const templateTokens = 64

// Reasons of a round that does not count.
const (
	ReasonRequestsFailed = "requests_failed"
	ReasonLength         = "length"
	ReasonPrefixCache    = "prefix_cache"
	ReasonNonFinite      = "non_finite"
)

// Verdict says whether the numbers of a round may count.
type Verdict struct {
	// Outcome is Complete, Failed, or Invalid.
	Outcome runners.Outcome
	// Failures are all that is wrong, the worst first; empty when complete.
	Failures []runners.Failure
}

// verdict applies the rules to the round.
func (t *tally) verdict(sum totals, delta *CounterDelta, nonFinite []string) Verdict {
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
	return v
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
