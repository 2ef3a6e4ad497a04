package load

import (
	"fmt"
	"math"
	"slices"

	"nocturne/runners"
)

// outcome computes everything that a round reports.
func (t *tally) outcome(delta *CounterDelta) RoundOutcome {
	t.settle()
	o := RoundOutcome{
		Metrics: runners.Metrics{}, Histograms: map[string]string{}, Failures: t.failures,
		Counters: delta, GPUs: t.gpus.states(), Details: t.details, tally: *t,
	}
	totals := t.totals()
	t.putCounts(o.Metrics, totals)
	t.putLatencies(o.Metrics, o.Histograms)
	t.putSending(o.Metrics)
	t.steadySum.put(o.Metrics)
	t.putClient(o.Metrics)
	putSpeculation(o.Metrics, totals, delta)
	putGPUs(o.Metrics, o.GPUs)
	o.Notes = t.notes(totals)
	o.Verdict = t.verdict(o.Metrics, totals, delta, o.GPUs)
	return o
}

// totals are sums over completed requests; unknown where any of them is.
type totals struct {
	input, produced, cached int
	chunks                  int
	speculation             Speculation
}

func (t *tally) totals() totals {
	var sum totals
	for _, s := range t.requests {
		sum.input = plus(sum.input, s.input)
		sum.produced = plus(sum.produced, s.produced)
		sum.cached = plus(sum.cached, s.cached)
		sum.chunks += s.chunks
		sum.speculation.add(s.speculation)
	}
	return sum
}

func plus(sum, more int) int {
	if sum == unknown || more == unknown {
		return unknown
	}
	return sum + more
}

func (t *tally) failed() int {
	n := 0
	for _, count := range t.failures {
		n += count.Count
	}
	return n
}

func (t *tally) putCounts(m runners.Metrics, sum totals) {
	completed, failed := float64(len(t.requests)), float64(t.failed())
	seconds := t.duration.Seconds()
	m[MetricDuration], m[MetricCompleted], m[MetricFailed] = seconds, completed, failed
	m[MetricMaxConcurrent] = float64(t.peak)
	m[MetricSuccessRate] = completed / (completed + failed)
	m[MetricRequestThroughput] = completed / seconds
	m[MetricAchievedConcurrency] = t.busy.Seconds() / seconds
	if sum.input != unknown {
		m[MetricInputTokens] = float64(sum.input)
	}
	if sum.cached != unknown && completed > 0 {
		m[MetricCachedTokens] = float64(sum.cached)
	}
	if sum.produced == unknown {
		return
	}
	produced := float64(sum.produced)
	m[MetricOutputTokens], m[MetricPeakOutput] = produced, t.peakTokens
	m[MetricOutputThroughput] = produced / seconds
	if sum.chunks > 0 {
		m[MetricTokensPerChunk] = produced / float64(sum.chunks)
	}
	if completed > 0 && t.requested > 0 {
		m[MetricLengthRatio] = produced / (completed * float64(t.requested))
	}
	if sum.input != unknown {
		m[MetricTotalTokenThroughput] = (produced + float64(sum.input)) / seconds
	}
}

func (t *tally) putLatencies(m runners.Metrics, histograms map[string]string) {
	for _, family := range []string{"ttft", "tpot", "e2el"} {
		lengths := t.lengths(family)
		put(m, family, lengths)
		h := newHistogram()
		for _, length := range lengths {
			record(h, length, 1)
		}
		histograms[family] = encode(h)
	}
	put(m, "connect", slices.Clone(t.connects))
	for family, d := range map[string]*distribution{"itl": &t.itl, "chunk_gap": &t.gap} {
		d.put(m, family)
		histograms[family] = encode(d.histogram)
	}
}

// putSending writes what became of the schedule, and goodput.
func (t *tally) putSending(m runners.Metrics) {
	put(m, "schedule_delay", t.lengths("schedule_delay"))
	if t.open {
		m[MetricRequestRate] = t.rate
	}
	if t.open && t.capped {
		for _, family := range []string{"client_queue_time", "e2el_including_client_queue"} {
			put(m, family, t.lengths(family))
		}
	}
	if t.goodput.set() {
		good := 0
		for _, s := range t.requests {
			if t.goodput.kept(s) {
				good++
			}
		}
		m[MetricGoodput] = float64(good) / t.duration.Seconds()
	}
}

// putClient writes how busy the generator itself was.
func (t *tally) putClient(m runners.Metrics) {
	if t.client.wall > 0 {
		m[MetricClientBusy] = t.client.busy()
	}
	t.client.lag.put(m, "client_lag")
}

// putSpeculation fills in acceptance, from the server's counters where they
// tell it, else from what the responses told. Ratios are of sums.
func putSpeculation(m runners.Metrics, sum totals, delta *CounterDelta) {
	s := sum.speculation
	if s.Verifications > 0 {
		m[MetricDrafts] = float64(s.Verifications)
		m[MetricAcceptanceLength] = float64(s.Produced) / float64(s.Verifications)
	}
	if s.Drafted > 0 {
		m[MetricDraftTokens], m[MetricAcceptedTokens] = float64(s.Drafted), float64(s.Accepted)
		m[MetricAcceptanceRate] = 100 * float64(s.Accepted) / float64(s.Drafted)
	}
	if delta != nil {
		delta.put(m)
	}
}

func (t *tally) notes(sum totals) []string {
	var notes []string
	if sum.produced == unknown {
		notes = append(notes, "the server gave no token counts (usage) for some responses: token metrics are absent")
	}
	if t.estimated {
		notes = append(notes, "itl is an estimate: the stream does not tell the tokens of each chunk, the mean of each response stands in")
	}
	return append(notes, t.lengthNotes(sum)...)
}

// lengthNotes tells of prompts that do not have the length asked for, and of a
// server that counts otherwise than its tokenizer. Around a chat the server puts
// its template, which is no news.
func (t *tally) lengthNotes(sum totals) []string {
	var notes []string
	fitted, off := 0, 0
	least, most := math.MaxInt, 0
	for _, s := range t.requests {
		if s.fitted == 0 {
			return nil
		}
		fitted += s.fitted
		least, most = min(least, s.fitted), max(most, s.fitted)
		if t.inputTokens > 0 && s.fitted != t.inputTokens {
			off++
		}
	}
	if off > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d prompts do not have the %d tokens asked for, but %d to %d: the server's tokenizer has no text of that length here",
			off, len(t.requests), t.inputTokens, least, most))
	}
	if fitted > 0 && !t.chat && sum.input != unknown && sum.input != fitted {
		notes = append(notes, fmt.Sprintf("the server counts %d input tokens where its tokenizer gave %d: "+
			"what it puts around a prompt is not counted by the tokenizer", sum.input, fitted))
	}
	return notes
}

// keepFinite removes what is not a finite number, and names what was removed
// though it is not the plain 0/0 of a round in which nothing happened.
func keepFinite(m runners.Metrics) []string {
	var removed []string
	for name, v := range m {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(m, name)
			removed = append(removed, name)
		}
	}
	slices.Sort(removed)
	return removed
}
