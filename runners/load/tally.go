package load

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// tally collects the requests of a round, and can be joined with others. All
// its times are in unscaled units: scaled is the only place that knows the
// serving scale.
type tally struct {
	scale          float64
	requested      int // output tokens asked of each request
	forced         bool
	sharedPrefixes bool
	chat           bool
	keepDetails    bool

	requests []sample // completed ones
	itl, gap distribution
	failures map[FailureKind]FailureCount
	details  []Detail
	connects []time.Duration

	duration time.Duration // of all rounds together
	busy     time.Duration // sum over requests, failed ones included
	spans    []span        // of the requests of one round
	peak     int           // greatest number of requests at once in a joined round
	// estimated says that the ITL of some response rests on its mean chunk.
	estimated bool
}

// sample is a completed request without its gaps.
type sample struct {
	ttft, latency           time.Duration // ttft negative: unknown
	input, produced, cached int           // tokens, or unknown
	chunks                  int
	speculation             Speculation
}

// span is when a request was under way, since the start of its round.
type span struct{ start, end time.Duration }

func newTally(spec RoundSpec, protocol Protocol) tally {
	scale := spec.ServingScale
	if scale == 0 {
		scale = 1
	}
	t := tally{
		scale: scale, requested: spec.OutputTokens, forced: spec.IgnoreEOS,
		sharedPrefixes: spec.SharedPrefixes, keepDetails: spec.KeepDetails,
		chat: protocol == OpenAIChat,
		itl:  newDistribution(), gap: newDistribution(),
		failures: map[FailureKind]FailureCount{},
	}
	if spec.KeepDetails {
		t.details = make([]Detail, len(spec.Prompts))
		for i := range t.details {
			t.details[i] = Detail{InputTokens: Unknown, OutputTokens: Unknown, Error: errUnfinished}
		}
	}
	return t
}

// scaled turns a measured time into unscaled units.
func (t *tally) scaled(d time.Duration) time.Duration {
	if t.scale == 1 {
		return d
	}
	return time.Duration(min(float64(d)*t.scale, math.MaxInt64/2))
}

// note adds a request that is over.
func (t *tally) note(index int, started time.Time, r *response, failure *RequestError) {
	s := span{start: t.scaled(r.sent.Sub(started)), end: t.scaled(r.end.Sub(started))}
	t.spans = append(t.spans, s)
	t.busy += s.end - s.start
	t.extendScaled(s.end)
	detail := Detail{Start: s.start, InputTokens: Unknown, OutputTokens: Unknown, Error: failure}
	if failure != nil {
		t.fail(failure.Kind, FailureCount{Count: 1, First: failure.Message})
	} else {
		t.complete(r, &detail)
	}
	if t.keepDetails {
		t.details[index] = detail
	}
}

func (t *tally) fail(kind FailureKind, more FailureCount) {
	known := t.failures[kind]
	if known.Count == 0 {
		known.First = more.First
	}
	known.Count += more.Count
	t.failures[kind] = known
}

func (t *tally) complete(r *response, detail *Detail) {
	s := sample{
		ttft: -1, latency: t.scaled(r.last.Sub(r.sent)),
		input: r.prompt, produced: r.produced, cached: r.cached,
		chunks: r.chunks, speculation: r.speculation,
	}
	if r.chunks > 0 {
		s.ttft = t.scaled(r.first.Sub(r.sent))
	}
	t.requests = append(t.requests, s)
	t.addGaps(r)
	detail.TTFT, detail.Latency = max(s.ttft, 0), s.latency
	detail.InputTokens, detail.OutputTokens = s.input, s.produced
	if t.keepDetails {
		detail.Gaps = make([]time.Duration, len(r.gaps))
		for i, g := range r.gaps {
			detail.Gaps[i] = t.scaled(g.length)
		}
	}
}

// addGaps adds the time between chunks, and for each token of them. Tokens of
// a chunk that the stream did not tell are the mean of the response, apportioned
// so that the whole is right.
func (t *tally) addGaps(r *response) {
	perChunk := 0.0
	if !r.counted && r.produced > 0 && r.chunks > 0 {
		perChunk = float64(r.produced) / float64(r.chunks)
		t.estimated = t.estimated || r.produced != r.chunks
	}
	given := int64(0)
	for i, g := range r.gaps {
		length := t.scaled(g.length)
		t.gap.add(length, 1)
		if r.counted {
			if g.tokens > 0 {
				t.itl.add(length/time.Duration(g.tokens), int64(g.tokens))
			}
			continue
		}
		if perChunk > 0 {
			due := int64(math.Round(perChunk * float64(i+1)))
			t.itl.add(time.Duration(float64(length)/perChunk), due-given)
			given = due
		}
	}
}

// extend lengthens the round to a measured time since its start.
func (t *tally) extend(d time.Duration) { t.extendScaled(t.scaled(d)) }

func (t *tally) extendScaled(d time.Duration) { t.duration = max(t.duration, d) }

// join adds the tally of another round.
func (t *tally) join(other *tally) {
	t.requests = append(t.requests, other.requests...)
	t.itl.merge(&other.itl)
	t.gap.merge(&other.gap)
	for kind, count := range other.failures {
		t.fail(kind, count)
	}
	t.details = append(t.details, other.details...)
	t.connects = append(t.connects, other.connects...)
	t.duration += other.duration
	t.busy += other.busy
	t.peak = max(t.peak, other.peak, peak(other.spans))
	t.estimated = t.estimated || other.estimated
}

// peak is the greatest number of spans that overlap; one that begins as
// another ends does not overlap it.
func peak(spans []span) int {
	type edge struct {
		at   time.Duration
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		edges = append(edges, edge{s.start, 1}, edge{s.end, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step))
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}

// Pool joins rounds of one load point: requests, failures, counters and
// durations of all of them, as if they were one round.
func Pool(rounds ...RoundOutcome) RoundOutcome {
	if len(rounds) == 0 {
		return RoundOutcome{}
	}
	first := &rounds[0].tally
	sum := tally{
		scale: first.scale, requested: first.requested, forced: first.forced,
		sharedPrefixes: first.sharedPrefixes, keepDetails: first.keepDetails, chat: first.chat,
		itl: newDistribution(), gap: newDistribution(), failures: map[FailureKind]FailureCount{},
	}
	var delta *CounterDelta
	for i := range rounds {
		sum.join(&rounds[i].tally)
		delta = addDeltas(delta, rounds[i].Counters, i == 0)
	}
	outcome := sum.outcome(delta)
	outcome.Started = rounds[0].Started
	return outcome
}
