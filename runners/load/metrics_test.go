package load

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/runners"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// anyTally is a round of arbitrary requests, extreme ones among them.
func anyTally(t *rapid.T) *tally {
	spec := RoundSpec{
		Prompts: prompts(20), OutputTokens: rapid.IntRange(0, 1000).Draw(t, "asked"), IgnoreEOS: rapid.Bool().Draw(t, "forced"),
		ServingScale: rapid.SampledFrom([]float64{0, 1, 3, 1e9}).Draw(t, "scale"), KeepDetails: true,
	}
	sum := newTally(spec, OpenAICompletions)
	length := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.SampledFrom([]int64{0, 1, 999, 1e6, 123456789, 1e13, 1e17}).Draw(t, "length"))
	})
	count := rapid.SampledFrom([]int{unknown, 0, 1, 2, 7, 100, 1 << 40})
	started := time.Now()
	for i := range rapid.IntRange(0, 20).Draw(t, "requests") {
		r := response{sent: started.Add(length.Draw(t, "sent")), counted: true}
		at := r.sent
		for range rapid.IntRange(0, 5).Draw(t, "chunks") {
			at = at.Add(length.Draw(t, "gap"))
			r.chunk(at, rapid.SampledFrom([]int{unknown, r.running, r.running + 1, r.running + 4}).Draw(t, "running"))
		}
		r.last, r.end = at, at
		r.summary = summary{prompt: count.Draw(t, "prompt"), produced: count.Draw(t, "produced"), cached: count.Draw(t, "cached"),
			speculation: Speculation{Drafted: max(count.Draw(t, "drafted"), 0), Verifications: max(count.Draw(t, "verified"), 0)}}
		var failure *RequestError
		if rapid.Bool().Draw(t, "failed") {
			failure = &RequestError{Kind: FailedConnect, Message: "refused"}
		}
		sum.note(i, started, timing{ready: r.sent}, &r, failure)
	}
	return &sum
}

func TestOutcome_IsAlwaysFiniteAndConsistent(t *testing.T) {
	names := MetricNames()
	rapid.Check(t, func(t *rapid.T) {
		o := anyTally(t).outcome(nil)
		for name, v := range o.Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s = %v", name, v)
			}
			if !slices.Contains(names, name) {
				t.Fatalf("%s is not among the metric names", name)
			}
		}
		if _, err := json.Marshal(o.Metrics); err != nil {
			t.Fatal(err)
		}
		for _, family := range []string{"ttft", "tpot", "itl", "e2el", "chunk_gap"} {
			p50, p90 := o.Metrics["median_"+family+"_ms"], o.Metrics["p90_"+family+"_ms"]
			p95, p99 := o.Metrics["p95_"+family+"_ms"], o.Metrics["p99_"+family+"_ms"]
			if p50 > p90 || p90 > p95 || p95 > p99 {
				t.Fatalf("%s: percentiles fall: %v %v %v %v", family, p50, p90, p95, p99)
			}
			if _, err := hdrhistogram.Decode([]byte(o.Histograms[family])); err != nil {
				t.Fatalf("%s: %v", family, err)
			}
		}
		if (o.Verdict.Outcome == runners.Complete) != (len(o.Verdict.Failures) == 0) {
			t.Fatalf("verdict %+v", o.Verdict)
		}
		if o.Metrics[MetricSuccessRate] < MinSuccessRate && o.Verdict.Outcome != runners.Failed {
			t.Fatalf("success rate %v is %s", o.Metrics[MetricSuccessRate], o.Verdict.Outcome)
		}
		var file bytes.Buffer
		if err := WriteVLLMResult(&file, o, VLLMMeta{}); err != nil {
			t.Fatal(err)
		}
	})
}

// Pooling is the same as having had one round.
func TestPool_EqualsOneRound(t *testing.T) {
	tallies := rapid.Custom(anyTally)
	for seed := range 5 { // merging histograms is slow under the race detector
		a, b := tallies.Example(2*seed), tallies.Example(2*seed+1)
		pooled := Pool(a.outcome(nil), b.outcome(nil))
		if got, want := pooled.Metrics[MetricCompleted], float64(len(a.requests)+len(b.requests)); got != want {
			t.Errorf("completed %v, want %v", got, want)
		}
		if got, want := pooled.Metrics[MetricDuration], (a.duration + b.duration).Seconds(); got != want {
			t.Errorf("duration %v, want %v", got, want)
		}
		if got := pooled.tally.gap.histogram.TotalCount(); got != a.gap.histogram.TotalCount()+b.gap.histogram.TotalCount() {
			t.Errorf("%d gaps pooled", got)
		}
	}
}

func TestDistribution_AgreesWithSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(1000, 1e11), 1, 300).Draw(t, "nanoseconds")
		split := rapid.IntRange(0, len(values)).Draw(t, "split")
		d, rest := newDistribution(), newDistribution()
		var lengths []time.Duration
		for i, v := range values {
			lengths = append(lengths, time.Duration(v))
			if i < split {
				d.add(time.Duration(v), 1)
			} else {
				rest.add(time.Duration(v), 1)
			}
		}
		d.merge(&rest)
		got, want := runners.Metrics{}, runners.Metrics{}
		d.put(got, "x")
		put(want, "x", slices.Clone(lengths))
		for _, statistic := range []string{"mean_x_ms", "std_x_ms"} {
			if math.Abs(got[statistic]-want[statistic]) > 1e-9*(1+want[statistic]) {
				t.Fatalf("%s = %v, want %v", statistic, got[statistic], want[statistic])
			}
		}
		// A histogram's percentile is a recorded value, to its precision.
		slices.Sort(lengths)
		for name, percent := range percentiles {
			rank := percent / 100 * float64(len(lengths))
			low := milliseconds(lengths[max(int(math.Floor(rank))-1, 0)])
			high := milliseconds(lengths[max(int(math.Ceil(rank))-1, 0)])
			if p := got[name+"_x_ms"]; p < 0.9995*low-0.001 || p > 1.0005*high+0.001 {
				t.Fatalf("%s = %v, want %v to %v", name, p, low, high)
			}
		}
	})
}

// Values as numpy gives them for the same list.
func TestPut_NumpyPercentiles(t *testing.T) {
	m := runners.Metrics{}
	put(m, "x", []time.Duration{40 * ms, 10 * ms, 20 * ms, 30 * ms})
	want := runners.Metrics{"mean_x_ms": 25, "std_x_ms": math.Sqrt(125), "median_x_ms": 25, "p90_x_ms": 37, "p95_x_ms": 38.5, "p99_x_ms": 39.7}
	for name, v := range want {
		if math.Abs(m[name]-v) > 1e-9 {
			t.Errorf("%s = %v, want %v", name, m[name], v)
		}
	}
}

func TestF30_NonFiniteIsNeverEmitted(t *testing.T) {
	// A round that took no time at all: every rate is 1/0.
	sum := newTally(RoundSpec{Prompts: prompts(1)}, OpenAICompletions)
	now := time.Now()
	sum.note(0, now, timing{ready: now}, &response{sent: now, last: now, end: now, first: now, chunks: 1, summary: summary{produced: 1}}, nil)
	o := sum.outcome(nil)
	wantAbsent(t, o, MetricRequestThroughput, MetricOutputThroughput, MetricAchievedConcurrency)
	if o.Verdict.Outcome != runners.Failed || o.Verdict.Failures[0].Reason != ReasonNonFinite {
		t.Errorf("verdict %+v", o.Verdict)
	}
}

func TestMergeHistograms_Refuses(t *testing.T) {
	wide := hdrhistogram.New(1, 10*histogramHighest, histogramDigits)
	_ = wide.RecordValue(9 * histogramHighest)
	for _, bad := range []string{"", "no base64", encode(wide)} {
		if _, err := MergeHistograms(bad); err == nil {
			t.Errorf("merging %.20q did not fail", bad)
		}
	}
}

func TestWriteVLLMResult(t *testing.T) {
	virtual(t, func(t *testing.T) {
		served := 0
		good, bad := script(completion(20*ms, 10*ms, 3, 6)...), script(step{ms, chunkEvent})
		client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served++; served == 3 {
				bad(w, r)
			} else {
				good(w, r)
			}
		}))
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(3), Concurrency: 1, OutputTokens: 6, KeepDetails: true, KeepTexts: true})
		if err != nil {
			t.Fatal(err)
		}
		o.Counters = &CounterDelta{Values: map[Counter]float64{Drafts: 4}, AcceptedByPosition: map[int]float64{0: 3, 1: 1}}
		o.Metrics[MetricAcceptanceLength] = 2
		for name, keep := range map[string]bool{"vllm-detailed.json": true, "vllm.json": false} {
			outcome := o
			if !keep {
				outcome.Details = nil
			}
			var file bytes.Buffer
			if err := WriteVLLMResult(&file, outcome, VLLMMeta{
				Date: time.Date(2026, 12, 1, 22, 0, 5, 0, time.UTC), Backend: "openai", Model: "org/m", MaxConcurrency: 1,
				Metadata: map[string]string{"note": "night", "completed": "an override"},
			}); err != nil {
				t.Fatal(err)
			}
			golden(t, name, file.Bytes())
		}
	})
}

// The table is that of `vllm bench serve`, line by line.
func TestWriteVLLMTable(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(20*ms, 10*ms, 3, 6)...))
		arrival := Arrival{Rate: 50, Burstiness: math.Inf(1)}
		limits := Goodput{TTFT: 20 * ms}
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(10), Concurrency: 2, Arrival: arrival, OutputTokens: 6, Goodput: limits})
		if err != nil {
			t.Fatal(err)
		}
		o.Counters = &CounterDelta{Values: map[Counter]float64{Drafts: 30, DraftTokens: 60, AcceptedTokens: 30}, AcceptedByPosition: map[int]float64{0: 20, 1: 10}}
		o.Counters.put(o.Metrics)
		meta := VLLMMeta{
			Date: time.Date(2026, 12, 1, 22, 0, 5, 0, time.UTC), Backend: "openai", Label: "night", Model: "org/m", Arrival: arrival, MaxConcurrency: 2,
			Percentiles: []float64{50, 99.9}, Families: VLLMFamilies(),
		}
		var table, file bytes.Buffer
		if err := WriteVLLMTable(&table, o, meta); err != nil {
			t.Fatal(err)
		}
		goldenText(t, "vllm-table.txt", table.Bytes())
		if err := WriteVLLMResult(&file, o, meta); err != nil {
			t.Fatal(err)
		}
		golden(t, "vllm-open.json", file.Bytes())
		for name := range BeyondVLLM(o, meta) {
			if strings.Contains(name, "ttft") || strings.Contains(name, "spec_decode") || strings.Contains(name, "throughput") && !strings.HasPrefix(name, "steady") {
				t.Errorf("%s is in the table and beside it", name)
			}
		}
	})
}

func TestPercentile(t *testing.T) {
	o := observed(func(*tally) {})
	for family, want := range map[string]float64{"ttft": 100, "tpot": 20, "itl": 20, "chunk_gap": 20, "e2el": 1000, "schedule_delay": 0} {
		if got, ok := o.Percentile(family, 37.5); !ok || math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %v %t, want %v", family, got, ok, want)
		}
	}
	if v, ok := o.Percentile("client_queue_time", 50); ok {
		t.Errorf("a closed loop has a queue of %v", v)
	}
	empty := Pool(RoundOutcome{})
	if _, ok := empty.Percentile("ttft", 50); ok {
		t.Error("an empty round has a percentile")
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	goldenText(t, name, indented.Bytes())
}

func goldenText(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (run with -update to accept): %s", name, diff)
	}
}

func TestRequestError(t *testing.T) {
	cause := fmt.Errorf("reset")
	e := &RequestError{Kind: FailedCutOff, Message: "m", cause: cause}
	if e.Error() != "cut_off: m" || e.Unwrap() != cause {
		t.Errorf("%v, %v", e, e.Unwrap())
	}
}
