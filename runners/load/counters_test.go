package load

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
)

// tables are those of three kinds of server.
var tables = map[string]CounterTable{
	"sglang": {Path: "/metrics", Families: map[Counter][]string{
		PrefixQueries: {"sglang:prompt_tokens_total"}, PrefixHits: {"sglang:cached_tokens_total"},
		Preemptions: {"sglang:num_retracted_requests_total"}, GeneratedTokens: {"sglang:generation_tokens_total"},
		VerifyCalls: {"sglang:spec_verify_calls_total"},
	}},
	"vllm": {Path: "/metrics", Families: map[Counter][]string{
		PrefixQueries: {"vllm:prefix_cache_queries_total"}, PrefixHits: {"vllm:prefix_cache_hits_total"},
		Preemptions: {"vllm:num_preemptions_total"}, GeneratedTokens: {"vllm:generation_tokens_total"},
		Drafts: {"vllm:spec_decode_num_drafts_total"}, DraftTokens: {"vllm:spec_decode_num_draft_tokens_total"},
		AcceptedTokens: {"vllm:spec_decode_num_accepted_tokens_total"},
	}, AcceptedByPosition: "vllm:spec_decode_num_accepted_tokens_per_pos_total", PositionLabel: "position"},
	"llamacpp": {Path: "/metrics", Families: map[Counter][]string{
		PrefixQueries: {"llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"},
		PrefixHits:    {"llamacpp:prompt_tokens_cached_total"}, GeneratedTokens: {"llamacpp:tokens_predicted_total"},
		Drafts: {"llamacpp:spec_decode_num_drafts_total"},
	}},
}

func parseCounters(t *testing.T, kind, file string) Counters {
	t.Helper()
	table := tables[kind]
	page, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	counters, err := table.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return counters
}

func TestCounters_Pages(t *testing.T) {
	for _, test := range []struct {
		kind, file string
		want       Counters
	}{
		{"vllm", "vllm.prom", Counters{
			Values: map[Counter]float64{PrefixQueries: 3000, PrefixHits: 300, Preemptions: 2, GeneratedTokens: 1234,
				Drafts: 400, DraftTokens: 1200, AcceptedTokens: 600},
			AcceptedByPosition: map[int]float64{0: 320, 1: 200, 2: 80},
		}},
		{"sglang", "sglang.prom", Counters{
			Values:             map[Counter]float64{PrefixQueries: 5000, PrefixHits: 40, GeneratedTokens: 9000, VerifyCalls: 3000},
			AcceptedByPosition: map[int]float64{},
		}},
		{"llamacpp", "llamacpp.prom", Counters{
			Values:             map[Counter]float64{PrefixQueries: 1200, PrefixHits: 200, GeneratedTokens: 512},
			AcceptedByPosition: map[int]float64{},
		}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseCounters(t, test.kind, test.file)); diff != "" {
				t.Error(diff)
			}
		})
	}
	table := tables["vllm"]
	if _, err := table.Parse(strings.NewReader("<html>\n")); err == nil {
		t.Error("a page that is no metrics page was parsed")
	}
}

func TestDelta(t *testing.T) {
	before := Counters{Values: map[Counter]float64{PrefixQueries: 100, PrefixHits: 50, Drafts: 10}, AcceptedByPosition: map[int]float64{0: 5}}
	after := Counters{Values: map[Counter]float64{PrefixQueries: 300, PrefixHits: 20, Drafts: 30, AcceptedTokens: 40, DraftTokens: 80},
		AcceptedByPosition: map[int]float64{0: 25, 1: 10}}
	d := Delta(before, after)
	want := CounterDelta{
		Values:             map[Counter]float64{PrefixQueries: 200, Drafts: 20, AcceptedTokens: 40, DraftTokens: 80},
		AcceptedByPosition: map[int]float64{0: 20, 1: 10},
		Fell:               []Counter{PrefixHits},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	m := runners.Metrics{}
	d.put(m)
	if diff := cmp.Diff(runners.Metrics{
		MetricPrefixQueries:    200,
		MetricAcceptanceLength: 3, MetricAcceptanceRate: 50, MetricDrafts: 20, MetricDraftTokens: 80, MetricAcceptedTokens: 40,
	}, m); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{1, 0.5}, d.PositionRates()); diff != "" {
		t.Error(diff)
	}
	sglang := CounterDelta{Values: map[Counter]float64{GeneratedTokens: 940, VerifyCalls: 470}}
	m = runners.Metrics{}
	sglang.put(m)
	if m[MetricAcceptanceLength] != 2 {
		t.Errorf("acceptance length %v, want 2", m[MetricAcceptanceLength])
	}
	sum := addDeltas(addDeltas(nil, &d, true), &d, false)
	if sum.Values[Drafts] != 40 || sum.AcceptedByPosition[1] != 20 || len(sum.Fell) != 1 {
		t.Errorf("sum %+v", sum)
	}
	if addDeltas(addDeltas(nil, &d, true), nil, false) != nil || addDeltas(addDeltas(nil, nil, true), &d, false) != nil {
		t.Error("a round without counters leaves the sum known")
	}
}

// counting serves a metrics page whose counters move between two readings.
func counting(pages ...string) http.Handler {
	var reads atomic.Int64
	answer := script(completion(ms, ms, 4, 4)...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			answer(w, r)
			return
		}
		page := pages[min(int(reads.Add(1))-1, len(pages)-1)]
		if page == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, page)
	})
}

func vllmPage(queries, hits int) string {
	return fmt.Sprintf("# TYPE vllm:prefix_cache_queries_total counter\nvllm:prefix_cache_queries_total{engine=\"0\"} %d\n"+
		"# TYPE vllm:prefix_cache_hits_total counter\nvllm:prefix_cache_hits_total{engine=\"0\"} %d\n"+
		"# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total 3\n", queries, hits)
}

func TestF24_PrefixCacheHits(t *testing.T) {
	table := tables["vllm"]
	for _, test := range []struct {
		name          string
		before, after string
		shared        bool
		want          runners.Outcome
	}{
		{"93 percent", vllmPage(1_000_000, 0), vllmPage(2_000_000, 930_000), false, runners.Invalid},
		{"93 percent by intention", vllmPage(1_000_000, 0), vllmPage(2_000_000, 930_000), true, runners.Complete},
		{"just over 1 percent", vllmPage(0, 0), vllmPage(10_000, 101), false, runners.Invalid},
		{"1 percent", vllmPage(0, 0), vllmPage(10_000, 100), false, runners.Complete},
		{"counters fell", vllmPage(2_000_000, 930_000), vllmPage(1_000, 10), false, runners.Complete},
		{"no metrics page", "", "", false, runners.Complete},
	} {
		t.Run(test.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, OpenAICompletions, counting(test.before, test.after))
				o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(3), Concurrency: 1, OutputTokens: 4,
					Counters: &table, SharedPrefixes: test.shared})
				if err != nil {
					t.Fatal(err)
				}
				if o.Verdict.Outcome != test.want {
					t.Errorf("verdict %+v, want %s", o.Verdict, test.want)
				}
				if test.want == runners.Invalid {
					f := o.Verdict.Failures[0]
					if f.Reason != ReasonPrefixCache || !strings.Contains(f.Message, "preemptions") {
						t.Errorf("failure %+v", f)
					}
				}
				switch test.name {
				case "93 percent":
					wantMetric(t, o, "prefix_cache_hit_rate", 0.93)
					wantMetric(t, o, "prefix_cache_hits", 930_000)
					wantMetric(t, o, "preemptions", 0)
				case "counters fell":
					wantAbsent(t, o, "prefix_cache_hit_rate", "prefix_cache_hits")
					if len(o.Counters.Fell) != 2 {
						t.Errorf("fell %v", o.Counters.Fell)
					}
				case "no metrics page":
					if o.Counters != nil || len(o.Notes) == 0 || !strings.Contains(o.Notes[0], "404") {
						t.Errorf("counters %+v, notes %q", o.Counters, o.Notes)
					}
				}
				wantMetric(t, o, "duration", 0.012) // reading counters is no part of it
			})
		})
	}
}

// Without counters, the responses tell; a chat template's own tokens are no
// fault.
func TestF24_CachedTokensInResponses(t *testing.T) {
	for cached, want := range map[int]runners.Outcome{0: runners.Complete, 40: runners.Complete, 300: runners.Invalid} {
		virtual(t, func(t *testing.T) {
			body := `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}` + "\n\n" +
				fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":320,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":%d}}}`, cached) + "\n\n" + doneEvent
			client := serve(t, OpenAIChat, script(step{ms, body}))
			o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(3), Concurrency: 1, OutputTokens: 1})
			if err != nil {
				t.Fatal(err)
			}
			wantMetric(t, o, "cached_input_tokens", float64(3*cached))
			if o.Verdict.Outcome != want {
				t.Errorf("%d cached: verdict %+v, want %s", cached, o.Verdict, want)
			}
		})
	}
}

func TestCounters_AreNotTakenFromNonsense(t *testing.T) {
	table := tables["vllm"]
	c, err := table.Parse(strings.NewReader("vllm:prefix_cache_hits_total NaN\nvllm:prefix_cache_queries_total +Inf\nvllm:num_preemptions_total -1\n" +
		"# TYPE vllm:generation_tokens_total histogram\nvllm:generation_tokens_total_sum 5\nvllm:generation_tokens_total_count 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for counter, v := range c.Values {
		t.Errorf("%s = %v, want it unknown", counter, v)
	}
	if math.IsNaN(c.Values[PrefixHits]) {
		t.Error("NaN kept")
	}
}
