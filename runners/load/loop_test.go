package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nocturne/runners"
)

// near checks a metric to within a hundredth, or a tenth of a millisecond.
func near(t *testing.T, o RoundOutcome, name string, want float64) {
	t.Helper()
	tolerance := 0.01 * math.Abs(want)
	if strings.HasSuffix(name, "_ms") {
		tolerance = max(tolerance, 0.1)
	}
	within(t, o, name, want, tolerance)
}

func within(t *testing.T, o RoundOutcome, name string, want, tolerance float64) {
	t.Helper()
	got, ok := o.Metrics[name]
	if !ok || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %g (there: %t), want %g", name, got, ok, want)
	}
}

// An open loop sends when requests are due, however many are in flight.
func TestOpenLoop_KeepsItsSchedule(t *testing.T) {
	for _, burstiness := range []float64{0.5, 1, math.Inf(1)} {
		t.Run(fmt.Sprint(burstiness), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, OpenAICompletions, script(completion(200*ms, 100*ms, 9, 9)...)) // 1 s each
				arrival := Arrival{Rate: 20, Burstiness: burstiness, Seed: 5}
				o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(400), Arrival: arrival, OutputTokens: 9, KeepDetails: true})
				if err != nil {
					t.Fatal(err)
				}
				for i, due := range arrival.schedule(400) {
					if late := o.Details[i].Start - due; late < -time.Microsecond || late > time.Microsecond {
						t.Fatalf("request %d was sent %v after it was due", i, late)
					}
				}
				wantMetric(t, o, "completed", 400)
				wantMetric(t, o, "request_rate", 20)
				wantMetric(t, o, "duration", 21) // 400 at 20 a second, and the last one's second
				wantMetric(t, o, "p99_schedule_delay_ms", 0)
				near(t, o, "mean_ttft_ms", 200)
				// As many end in the window as came a second before.
				within(t, o, "steady_request_throughput", 20, 1)
				within(t, o, "steady_output_throughput", 180, 9)
				near(t, o, "achieved_concurrency", 400.0/21)
				if o.Verdict.Outcome != runners.Complete {
					t.Errorf("verdict %+v", o.Verdict)
				}
				wantAbsent(t, o, "mean_client_queue_time_ms", "mean_e2el_including_client_queue_ms", "request_goodput")
			})
		})
	}
}

// With a bound, requests queue in the client. Their wait is told, and is no fault
// of the generator.
func TestOpenLoop_Bounded(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(50*ms, 50*ms, 2, 2)...)) // 100 ms each
		o, err := client.Round(t.Context(), RoundSpec{
			Prompts: prompts(10), Concurrency: 1, Arrival: Arrival{Rate: 20, Burstiness: math.Inf(1)}, OutputTokens: 2, KeepDetails: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		// Due every 50 ms, served every 100: the k-th waits 50 ms times k.
		wantMetric(t, o, "max_concurrent_requests", 1)
		wantMetric(t, o, "mean_client_queue_time_ms", 225)
		wantMetric(t, o, "mean_e2el_ms", 100)
		wantMetric(t, o, "mean_e2el_including_client_queue_ms", 325)
		wantMetric(t, o, "mean_schedule_delay_ms", 0)
		if got := o.Details[9].Queue; got != 450*ms {
			t.Errorf("the last request waited %v, want 450ms", got)
		}
		if o.Verdict.Outcome != runners.Complete {
			t.Errorf("verdict %+v", o.Verdict)
		}
	})
}

// The simulated server's second stands for many: arrivals come as much faster.
func TestOpenLoop_ServingScale(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(5*ms, 5*ms, 2, 2)...))
		began := time.Now()
		o, err := client.Round(t.Context(), RoundSpec{
			Prompts: prompts(40), Arrival: Arrival{Rate: 4, Burstiness: math.Inf(1)}, OutputTokens: 2, ServingScale: 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 1100*ms {
			t.Errorf("ten seconds at scale 10 took %v", took)
		}
		near(t, o, "duration", 10.1)
		within(t, o, "steady_request_throughput", 4, 0.1)
		wantMetric(t, o, "mean_e2el_ms", 100)
	})
}

// A window ends the sending; what is in flight then is waited for.
func TestRound_Window(t *testing.T) {
	for _, arrival := range []Arrival{{}, {Rate: 20, Burstiness: math.Inf(1)}} {
		t.Run(fmt.Sprint(arrival.Open()), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, OpenAICompletions, script(completion(20*ms, 20*ms, 5, 5)...)) // 100 ms each
				o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(1000), Concurrency: 2, Arrival: arrival, Window: 1050 * ms, OutputTokens: 5})
				if err != nil {
					t.Fatal(err)
				}
				want := map[bool]float64{false: 22, true: 21}[arrival.Open()]
				wantMetric(t, o, "completed", want)
				wantMetric(t, o, "failed", 0)
				within(t, o, "steady_output_throughput", 100, 3)
				if from := o.Metrics["steady_duration"]; from < 0.9 || from > 1.05 {
					t.Errorf("steady for %g s of a window of 1.05 s", from)
				}
			})
		})
	}
}

// One long answer at the end lowers the mean over the whole round, not the
// steady rate.
func TestF27_SteadyRateIgnoresTheLastStraggler(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var n atomic.Int64
		usual, straggler := script(completion(10*ms, 10*ms, 10, 10)...), script(completion(10*ms, 10*ms, 300, 300)...)
		client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 80 {
				straggler(w, r)
				return
			}
			usual(w, r)
		}))
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(80), Concurrency: 4, OutputTokens: 300})
		if err != nil {
			t.Fatal(err)
		}
		// 4 streams of 100 tokens/s.
		near(t, o, "steady_output_throughput", 400)
		if whole := o.Metrics["output_throughput"]; whole > 250 {
			t.Errorf("output_throughput %g: expected the straggler in it", whole)
		}
	})
}

// Few requests for each place leave no start out; a cancelled round has no window.
func TestSteady_ShortRounds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(10*ms, 10*ms, 10, 10)...))
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(4), Concurrency: 2, OutputTokens: 10})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, "steady_duration", 0.2)
		wantMetric(t, o, "steady_output_throughput", 200)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 250*ms, errors.New("over"))
		defer cancel()
		for _, arrival := range []Arrival{{}, {Rate: 50}} {
			o, _ = client.Round(ctx, RoundSpec{Prompts: prompts(100), Concurrency: 2, OutputTokens: 10, Arrival: arrival})
			wantAbsent(t, o, "steady_duration", "steady_output_throughput")
		}
	})
}

// Errors inside streams of status 200 are failures in an open loop as well.
func TestOpenLoop_CountsErrorsInStreams(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(step{10 * ms, chunkEvent}, step{20 * ms, `data: {"error":{"message":"out of memory","code":500}}` + "\n\n" + doneEvent}))
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(5), Arrival: Arrival{Rate: 100}, OutputTokens: 2})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, "completed", 0)
		wantMetric(t, o, "failed", 5)
		wantAbsent(t, o, "mean_ttft_ms", "mean_schedule_delay_ms", "steady_output_throughput")
		if o.Verdict.Outcome != runners.Failed || o.Failures[FailedStream].Count != 5 {
			t.Errorf("verdict %+v, failures %+v", o.Verdict, o.Failures)
		}
	})
}

func TestRound_RefusesArrivals(t *testing.T) {
	client, err := New(Target{BaseURL: "http://127.0.0.1:1", Protocol: OpenAIChat})
	if err != nil {
		t.Fatal(err)
	}
	for _, arrival := range []Arrival{{Rate: -1}, {Rate: math.NaN()}, {Rate: 1, Burstiness: -1}, {Rate: math.Inf(1)}} {
		if _, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(1), Arrival: arrival}); err == nil {
			t.Errorf("arrival %+v did not fail", arrival)
		}
	}
}

func TestGoodput(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var n atomic.Int64
		fast, slow := script(completion(20*ms, 10*ms, 9, 9)...), script(completion(60*ms, 5*ms, 9, 9)...) // 100 ms each
		client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%4 == 0 {
				slow(w, r)
				return
			}
			fast(w, r)
		}))
		for _, test := range []struct {
			limits []string
			want   float64 // of 10 requests/s
		}{
			{[]string{"ttft:50"}, 7.5}, {[]string{"tpot:7"}, 2.5}, {[]string{"ttft:50", "tpot:7"}, 0}, {[]string{"e2el:100"}, 10}, {[]string{"ttft:20", "tpot:10"}, 7.5},
		} {
			limits, err := ParseGoodput(test.limits)
			if err != nil {
				t.Fatal(err)
			}
			o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(40), Concurrency: 1, OutputTokens: 9, Goodput: limits})
			if err != nil {
				t.Fatal(err)
			}
			wantMetric(t, o, "request_goodput", test.want)
		}
	})
	for _, bad := range []string{"", "ttft", "ttft:", "itl:5", "ttft:-1", "ttft:NaN", "ttft:1e99"} {
		if _, err := ParseGoodput([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
