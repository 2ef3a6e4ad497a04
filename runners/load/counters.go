package load

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"nocturne/runners"
)

// Counter is a count that a server keeps, by our name for it.
type Counter string

// Counters.
const (
	PrefixQueries   Counter = "prefix_queries"   // input tokens looked up in the prefix cache
	PrefixHits      Counter = "prefix_hits"      // input tokens found there
	Preemptions     Counter = "preemptions"      // requests evicted and computed again
	GeneratedTokens Counter = "generated_tokens" // output tokens
	VerifyCalls     Counter = "verify_calls"     // verify passes of requests
	Drafts          Counter = "drafts"           // drafted sequences
	DraftTokens     Counter = "draft_tokens"
	AcceptedTokens  Counter = "accepted_tokens" // without the bonus token
)

// CounterTable says where a kind of server keeps its counters.
type CounterTable struct {
	// Path of the metrics page, in Prometheus text format.
	Path string
	// Families to add up for each counter, over all their labels (ranks,
	// engines). A counter is unknown while any of its families is missing.
	Families map[Counter][]string
	// AcceptedByPosition counts accepted draft tokens by their position, which
	// is in the label named PositionLabel.
	AcceptedByPosition, PositionLabel string
}

// Counters is a reading of a server's counters. What is absent is unknown.
type Counters struct {
	Values map[Counter]float64
	// AcceptedByPosition counts accepted draft tokens by position, from the
	// position that the server calls 0.
	AcceptedByPosition map[int]float64
}

// Limits of reading a metrics page. It is not part of any measured time.
const (
	countersTimeout  = 10 * time.Second
	countersAttempts = 3
	maxCounterBytes  = 32 << 20
)

// Counters reads the counters of the table from the server.
func (c *Client) Counters(ctx context.Context, table CounterTable) (Counters, error) {
	ctx, cancel := context.WithTimeout(ctx, countersTimeout)
	defer cancel()
	connections := &connections{dial: c.dial, address: c.address}
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: connections.transport(0)}
	client.Logger = nil
	client.RetryMax = countersAttempts - 1
	client.RetryWaitMin, client.RetryWaitMax = 50*time.Millisecond, 500*time.Millisecond
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, c.root+table.Path, nil)
	if err != nil {
		return Counters{}, fmt.Errorf("reading %s: %w", table.Path, err)
	}
	c.decorate(request.Request)
	answer, err := client.Do(request)
	if err != nil {
		return Counters{}, fmt.Errorf("reading %s: %w", table.Path, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Counters{}, fmt.Errorf("reading %s: the server answered %s; its metrics may have to be switched on", table.Path, answer.Status)
	}
	counters, err := table.Parse(io.LimitReader(answer.Body, maxCounterBytes))
	if err != nil {
		return Counters{}, fmt.Errorf("reading %s: %w", table.Path, err)
	}
	return counters, nil
}

// Parse reads the counters of the table from a page in Prometheus text format.
func (t CounterTable) Parse(page io.Reader) (Counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return Counters{}, fmt.Errorf("parsing Prometheus text: %w", err)
	}
	c := Counters{Values: map[Counter]float64{}, AcceptedByPosition: map[int]float64{}}
	for counter, names := range t.Families {
		sum, known := 0.0, true
		for _, name := range names {
			family, ok := families[name]
			known = known && ok
			for _, m := range family.GetMetric() {
				sum += sampleValue(m)
			}
		}
		if known && counts(sum) {
			c.Values[counter] = sum
		}
	}
	for _, m := range families[t.AcceptedByPosition].GetMetric() {
		for _, label := range m.GetLabel() {
			position, err := strconv.Atoi(label.GetValue())
			if label.GetName() == t.PositionLabel && err == nil && counts(sampleValue(m)) {
				c.AcceptedByPosition[position] += sampleValue(m)
			}
		}
	}
	return c, nil
}

// sampleValue reads a sample of a counter, or of a family without a type.
func sampleValue(m *dto.Metric) float64 {
	if m.GetCounter() != nil {
		return m.GetCounter().GetValue()
	}
	if m.GetUntyped() != nil {
		return m.GetUntyped().GetValue()
	}
	return math.NaN() // not a counter
}

// counts tells whether a value can be a count.
func counts(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// CounterDelta is what counters moved by over a window. What is absent is
// unknown.
type CounterDelta struct {
	Values map[Counter]float64
	// AcceptedByPosition as in [Counters].
	AcceptedByPosition map[int]float64
	// Fell names counters that were lower after than before, which a restart
	// does: their movement is unknown, not negative.
	Fell []Counter
}

// Delta is the movement from one reading to a later one. A counter that only
// the later one has was created, at zero, in between.
func Delta(before, after Counters) CounterDelta {
	d := CounterDelta{Values: map[Counter]float64{}, AcceptedByPosition: map[int]float64{}}
	for counter, v := range after.Values {
		if moved := v - before.Values[counter]; moved >= 0 {
			d.Values[counter] = moved
		} else {
			d.Fell = append(d.Fell, counter)
		}
	}
	slices.Sort(d.Fell)
	for position, v := range after.AcceptedByPosition {
		if moved := v - before.AcceptedByPosition[position]; moved >= 0 {
			d.AcceptedByPosition[position] = moved
		}
	}
	return d
}

// addDeltas adds a round's movement to a sum. A counter that is unknown in one
// round is unknown in the sum.
func addDeltas(sum, more *CounterDelta, first bool) *CounterDelta {
	if more == nil || sum == nil && !first {
		return nil
	}
	if first {
		return more
	}
	d := &CounterDelta{Values: map[Counter]float64{}, AcceptedByPosition: maps.Clone(sum.AcceptedByPosition)}
	for counter, v := range sum.Values {
		if w, ok := more.Values[counter]; ok {
			d.Values[counter] = v + w
		}
	}
	for position, v := range more.AcceptedByPosition {
		d.AcceptedByPosition[position] += v
	}
	d.Fell = slices.Compact(slices.Sorted(slices.Values(slices.Concat(sum.Fell, more.Fell))))
	return d
}

// ratio of two counters, when both are known and there is something to divide
// by.
func (d *CounterDelta) ratio(over, under Counter) (float64, bool) {
	a, okA := d.Values[over]
	b, okB := d.Values[under]
	return a / b, okA && okB && b > 0
}

// put writes what the counters tell about the prefix cache, preemption and
// speculation. The acceptance length
// includes the bonus token: 1 + accepted / drafts (vLLM, llama.cpp), or
// generated tokens / verify passes (SGLang).
func (d *CounterDelta) put(m runners.Metrics) {
	for counter, name := range map[Counter]string{
		PrefixQueries: MetricPrefixQueries, PrefixHits: MetricPrefixHits, Preemptions: MetricPreemptions,
	} {
		if n, ok := d.Values[counter]; ok {
			m[name] = n
		}
	}
	if rate, ok := d.ratio(PrefixHits, PrefixQueries); ok {
		m[MetricPrefixHitRate] = rate
	}
	if n, ok := d.Values[VerifyCalls]; ok && n > 0 {
		m[MetricDrafts] = n
	}
	if length, ok := d.ratio(GeneratedTokens, VerifyCalls); ok {
		m[MetricAcceptanceLength] = length
	}
	if n, ok := d.Values[Drafts]; ok && n > 0 {
		m[MetricDrafts] = n
	}
	if accepted, ok := d.ratio(AcceptedTokens, Drafts); ok {
		m[MetricAcceptanceLength] = 1 + accepted
	}
	if rate, ok := d.ratio(AcceptedTokens, DraftTokens); ok {
		m[MetricAcceptanceRate] = 100 * rate
		m[MetricDraftTokens], m[MetricAcceptedTokens] = d.Values[DraftTokens], d.Values[AcceptedTokens]
	}
}

// PositionRates is the share of drafts whose token at each position was
// accepted, from the first position on; nil when the server does not tell.
func (d *CounterDelta) PositionRates() []float64 {
	drafts := d.Values[Drafts]
	if drafts <= 0 {
		return nil
	}
	var rates []float64
	for position := range len(d.AcceptedByPosition) {
		accepted, ok := d.AcceptedByPosition[position]
		if !ok {
			return nil
		}
		rates = append(rates, accepted/drafts)
	}
	return rates
}
