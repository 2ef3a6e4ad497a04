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
	inputTokens    int   // that prompts were to be fitted to; 0: none were
	fitted         []int // of the prompts of a round, by the tokenizer
	sharedPrefixes bool
	chat           bool
	keepDetails    bool
	open           bool // an open loop
	capped         bool // with a bound on the requests in flight
	goodput        Goodput
	rate           float64 // of an open loop, requests/s

	requests []sample // completed ones
	itl, gap distribution
	failures map[FailureKind]FailureCount
	details  []Detail
	connects []time.Duration

	duration time.Duration // of all rounds together
	busy     time.Duration // sum over requests, failed ones included
	spans    []span        // of the requests of one round
	// perSecond are the output tokens of each second of one round.
	perSecond map[int64]float64
	steady    steady
	client    clientLoad
	gpus      gpuTallies
	// lastDelay is how late the request that was due last was sent.
	lastDue, lastDelay time.Duration
	// estimated says that the ITL of some response rests on its mean chunk.
	estimated bool

	// What settle makes of spans, perSecond and steady.
	settled    bool
	peak       int     // greatest number of requests at once
	peakTokens float64 // greatest number of tokens in a second
	steadySum  steadySum
}

// sample is a completed request without its gaps.
type sample struct {
	ttft, latency           time.Duration // ttft negative: unknown
	input, produced, cached int           // tokens, or unknown
	chunks                  int
	speculation             Speculation
	fitted                  int           // its length by the tokenizer; 0: not asked
	delay, queue            time.Duration // of its sending; delay is real time
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
		chat: protocol == OpenAIChat, inputTokens: spec.InputTokens,
		open: spec.Arrival.Open(), capped: spec.Concurrency > 0, goodput: spec.Goodput,
		itl: newDistribution(), gap: newDistribution(), client: newClientLoad(),
		failures: map[FailureKind]FailureCount{}, perSecond: map[int64]float64{},
		steady: newSteady(spec),
	}
	if t.open {
		t.rate = spec.Arrival.Rate
	}
	t.fitted = make([]int, len(spec.Prompts))
	for i, prompt := range spec.Prompts {
		t.fitted[i] = prompt.Tokens
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

// real turns a time in unscaled units into one of the clock.
func (t *tally) real(d time.Duration) time.Duration {
	if t.scale == 1 {
		return d
	}
	return time.Duration(float64(d) / t.scale)
}

// note adds a request that is over.
func (t *tally) note(index int, started time.Time, when timing, r *response, failure *RequestError) {
	s := span{start: t.scaled(r.sent.Sub(started)), end: t.scaled(r.end.Sub(started))}
	t.spans = append(t.spans, s)
	t.busy += s.end - s.start
	t.extendScaled(s.end)
	t.steady.end(s.end)
	delay, queue := max(r.sent.Sub(when.ready), 0), time.Duration(0)
	if !when.due.IsZero() {
		queue = t.scaled(max(when.ready.Sub(when.due), 0))
		if due := when.due.Sub(started); due >= t.lastDue {
			t.lastDue, t.lastDelay = due, delay
		}
	}
	detail := Detail{Start: s.start, Queue: queue, InputTokens: Unknown, OutputTokens: Unknown, Error: failure}
	if failure != nil {
		t.fail(failure.Kind, FailureCount{Count: 1, First: failure.Message})
	} else {
		at := func(instant time.Time) time.Duration { return t.scaled(instant.Sub(started)) }
		t.steady.complete(r, s.end, at)
		t.spread(r, at)
		t.complete(r, &detail)
		last := &t.requests[len(t.requests)-1]
		last.delay, last.queue, last.fitted = delay, queue, t.fitted[index]
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
	detail.InputTokens, detail.OutputTokens, detail.Text = s.input, s.produced, r.text
	if t.keepDetails {
		detail.Gaps = make([]time.Duration, len(r.gaps))
		for i, g := range r.gaps {
			detail.Gaps[i] = t.scaled(g.length)
		}
	}
}

// spread adds the tokens of a response to the seconds in which they came. Those
// of a chunk that the stream did not tell are the mean of the response.
func (t *tally) spread(r *response, at func(time.Time) time.Duration) {
	if r.produced <= 0 || r.chunks == 0 {
		return
	}
	perChunk := float64(r.produced) / float64(r.chunks)
	chunk := r.first
	second, tokens := int64(at(chunk)/time.Second), perChunk
	for _, g := range r.gaps {
		chunk = chunk.Add(g.length)
		if now := int64(at(chunk) / time.Second); now != second {
			t.perSecond[second] += tokens
			second, tokens = now, 0
		}
		tokens += perChunk
	}
	t.perSecond[second] += tokens
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
	t.peak, t.peakTokens = max(t.peak, other.peak), max(t.peakTokens, other.peakTokens)
	t.steadySum.join(other.steadySum)
	t.client.join(&other.client)
	t.gpus = t.gpus.join(other.gpus)
	t.lastDue, t.lastDelay = t.lastDue+other.lastDue, t.lastDelay+other.lastDelay
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

func mostOf(perSecond map[int64]float64) float64 {
	most := 0.0
	for _, tokens := range perSecond {
		most = max(most, tokens)
	}
	return most
}

// settle draws from a round what needs its time axis, which ends with it.
func (t *tally) settle() {
	if t.settled {
		return
	}
	t.settled = true
	t.peak, t.peakTokens, t.steadySum = peak(t.spans), mostOf(t.perSecond), t.steady.sum()
	t.spans, t.perSecond = nil, nil
}

// Pool joins rounds of one load point: requests, failures, counters and
// durations of all of them, as if they were one round.
func Pool(rounds ...RoundOutcome) RoundOutcome {
	if len(rounds) == 0 {
		return RoundOutcome{}
	}
	first := &rounds[0].tally
	sum := tally{
		settled: true, scale: first.scale, requested: first.requested, forced: first.forced,
		sharedPrefixes: first.sharedPrefixes, keepDetails: first.keepDetails, chat: first.chat,
		inputTokens: first.inputTokens, open: first.open, capped: first.capped, goodput: first.goodput, rate: first.rate,
		itl: newDistribution(), gap: newDistribution(), client: newClientLoad(), failures: map[FailureKind]FailureCount{},
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
