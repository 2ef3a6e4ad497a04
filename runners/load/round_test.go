package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nocturne/runners"
)

const ms = time.Millisecond

// f25 is the stream of case F25 in each protocol: a first chunk at 50 ms and 99
// more 8 ms apart, every one of 4 tokens.
func f25(protocol Protocol) []step {
	var steps []step
	if protocol == OpenAIChat {
		steps = append(steps, step{10 * ms, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"})
	}
	text := ""
	for i := range 100 {
		at := 50*ms + time.Duration(i)*8*ms
		switch protocol {
		case OpenAICompletions:
			steps = append(steps, step{at, chunkEvent})
		case OpenAIChat:
			steps = append(steps, step{at, `data: {"choices":[{"index":0,"delta":{"content":"four more tokens here"},"finish_reason":null}]}` + "\n\n"})
		case SGLangGenerate:
			text += "four more tokens here "
			finish := "null"
			if i == 99 {
				finish = `{"type":"length","length":400}`
			}
			steps = append(steps, step{at, fmt.Sprintf(`data: {"text":%q,"output_ids":[1,2],"meta_info":{"id":"r","finish_reason":%s,"prompt_tokens":10,"completion_tokens":%d,"cached_tokens":0,"spec_verify_ct":%d}}`+"\n\n",
				text, finish, 4*(i+1), i+1)})
		}
	}
	end := 50*ms + 99*8*ms
	if protocol == SGLangGenerate {
		return append(steps, step{end, doneEvent})
	}
	return append(steps, step{end, strings.Replace(finishEvent, `"text":""`, `"text":"","delta":{}`, 1) + usageEvent(400) + doneEvent})
}

func TestF25_SpeculativeStream(t *testing.T) {
	for _, protocol := range []Protocol{OpenAICompletions, OpenAIChat, SGLangGenerate} {
		t.Run(string(protocol), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, protocol, script(f25(protocol)...))
				o, err := client.Round(t.Context(), RoundSpec{
					Prompts: prompts(1), Concurrency: 1, OutputTokens: 400, IgnoreEOS: true, KeepDetails: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				wantMetric(t, o, "mean_ttft_ms", 50)
				wantMetric(t, o, "mean_chunk_gap_ms", 8)
				wantMetric(t, o, "std_chunk_gap_ms", 0)
				wantMetric(t, o, "mean_tpot_ms", 792.0/399)
				wantMetric(t, o, "mean_itl_ms", 2)
				wantMetric(t, o, "mean_e2el_ms", 842)
				wantMetric(t, o, "total_output_tokens", 400)
				wantMetric(t, o, "tokens_per_chunk", 4)
				wantMetric(t, o, "output_throughput", 400/0.842)
				wantMetric(t, o, "output_length_ratio", 1)
				if n := len(o.Details[0].Gaps); n != 99 {
					t.Errorf("%d gaps, want 99", n)
				}
				if o.Verdict.Outcome != runners.Complete {
					t.Errorf("verdict %+v", o.Verdict)
				}
				// Only the native stream tells the tokens of each chunk.
				estimated := strings.Contains(strings.Join(o.Notes, "\n"), "itl is an estimate")
				if estimated != (protocol != SGLangGenerate) {
					t.Errorf("notes %q", o.Notes)
				}
				if protocol == SGLangGenerate {
					wantMetric(t, o, "spec_decode_acceptance_length", 4)
				}
			})
		})
	}
}

func TestF25_WithoutUsage(t *testing.T) {
	virtual(t, func(t *testing.T) {
		steps := f25(OpenAICompletions)
		steps[len(steps)-1].write = finishEvent + doneEvent
		client := serve(t, OpenAICompletions, script(steps...))
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(1), Concurrency: 1, OutputTokens: 400, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, "completed", 1)
		wantMetric(t, o, "mean_ttft_ms", 50)
		wantMetric(t, o, "mean_chunk_gap_ms", 8)
		wantAbsent(t, o, "total_output_tokens", "output_throughput", "total_token_throughput", "mean_tpot_ms",
			"mean_itl_ms", "tokens_per_chunk", "output_length_ratio")
		if len(o.Notes) == 0 || !strings.Contains(o.Notes[0], "usage") {
			t.Errorf("notes %q do not tell that usage is missing", o.Notes)
		}
	})
}

func TestF27_ShortAndFailedRequests(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var n atomic.Int64
		short := script(completion(10*ms, 0, 1, 90)...)
		long := script(completion(10*ms, 60*ms/11, 12, 92)...)
		client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			switch i := n.Add(1) - 1; {
			case i%5 >= 3: // 400 of 1000
				time.Sleep(20 * ms)
				http.Error(w, `{"error":{"message":"CUDA error"}}`, http.StatusInternalServerError)
			case i%2 == 0:
				short(w, r)
				time.Sleep(time.Until(start.Add(70 * ms)))
			default:
				long(w, r)
				time.Sleep(time.Until(start.Add(70 * ms)))
			}
		}))
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(1000), Concurrency: 1, OutputTokens: 128, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, "completed", 600)
		wantMetric(t, o, "failed", 400)
		wantMetric(t, o, "success_rate", 0.6)
		wantMetric(t, o, "duration", 50)
		wantMetric(t, o, "total_output_tokens", 54600)
		wantMetric(t, o, "output_throughput", 1092)
		wantMetric(t, o, "output_length_ratio", 91.0/128)
		wantMetric(t, o, "p99_ttft_ms", 10) // of completed requests only
		if o.Verdict.Outcome != runners.Failed || len(o.Verdict.Failures) != 2 ||
			o.Verdict.Failures[0].Reason != ReasonRequestsFailed || o.Verdict.Failures[1].Reason != ReasonLength {
			t.Fatalf("verdict %+v", o.Verdict)
		}
		if m := o.Verdict.Failures[0].Message; !strings.Contains(m, "400 of 1000") || !strings.Contains(m, "400 http_500") || !strings.Contains(m, "CUDA error") {
			t.Errorf("message %q", m)
		}
		if got := o.Failures["http_500"]; got.Count != 400 {
			t.Errorf("failures %+v", o.Failures)
		}
	})
}

func TestRound_ShortLengthAloneIsInvalid(t *testing.T) {
	for tokens, want := range map[int]runners.Outcome{
		91: runners.Invalid, 125: runners.Invalid, 126: runners.Complete, 128: runners.Complete,
		129: runners.Complete, 131: runners.Complete, 132: runners.Invalid, 256: runners.Invalid,
	} {
		t.Run(fmt.Sprint(tokens), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, OpenAICompletions, script(completion(ms, ms, 4, tokens)...))
				o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(3), Concurrency: 2, OutputTokens: 128, IgnoreEOS: true})
				if err != nil {
					t.Fatal(err)
				}
				if o.Verdict.Outcome != want {
					t.Errorf("verdict %+v, want %s", o.Verdict, want)
				}
				if want == runners.Invalid && o.Verdict.Failures[0].Reason != ReasonLength {
					t.Errorf("reason %q", o.Verdict.Failures[0].Reason)
				}
				o, err = client.Round(t.Context(), RoundSpec{Prompts: prompts(3), Concurrency: 2, OutputTokens: 128})
				if err != nil {
					t.Fatal(err)
				}
				if o.Verdict.Outcome != runners.Complete {
					t.Errorf("unforced length: verdict %+v", o.Verdict)
				}
			})
		})
	}
}

func TestRound_ClosedLoop(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64, 512} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			virtual(t, func(t *testing.T) { closedLoop(t, concurrency) })
		})
	}
}

// closedLoop sends four requests of 100 ms for each place.
func closedLoop(t *testing.T, concurrency int) {
	var connections atomic.Int64
	answer := script(completion(20*ms, 10*ms, 9, 9)...)
	client := serve(t, OpenAICompletions, answer)
	dial := client.dial
	client.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		time.Sleep(30 * ms) // set-up is told apart from TTFT
		return dial(ctx, network, address)
	}
	o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(4 * concurrency), Concurrency: concurrency, OutputTokens: 9})
	if err != nil {
		t.Fatal(err)
	}
	n := float64(concurrency)
	if connections.Load() != int64(n) {
		t.Errorf("%d connections, want %v", connections.Load(), n)
	}
	wantMetric(t, o, "duration", 0.4)
	wantMetric(t, o, "max_concurrent_requests", n)
	wantMetric(t, o, "achieved_concurrency", n)
	wantMetric(t, o, "request_throughput", 10*n)
	wantMetric(t, o, "output_throughput", 90*n)
	wantMetric(t, o, "total_token_throughput", (90+100)*n)
	wantMetric(t, o, "total_input_tokens", 40*n)
	wantMetric(t, o, "mean_ttft_ms", 20)
	wantMetric(t, o, "p99_ttft_ms", 20)
	wantMetric(t, o, "mean_tpot_ms", 10)
	wantMetric(t, o, "mean_itl_ms", 10)
	wantMetric(t, o, "p99_e2el_ms", 100)
	wantMetric(t, o, "mean_connect_ms", 30)
}

func TestRound_ServingScale(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(5*ms, ms, 11, 11)...))
		spec := RoundSpec{Prompts: prompts(10), Concurrency: 2, OutputTokens: 11, KeepDetails: true}
		plain, err := client.Round(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.ServingScale = 20
		scaled, err := client.Round(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range plain.Metrics {
			factor := 1.0
			switch {
			case strings.HasSuffix(name, "_connect_ms"):
			case name == MetricPeakOutput:
				continue // counts whole seconds, which are others
			case strings.HasSuffix(name, "_ms"), strings.HasSuffix(name, "duration"):
				factor = 20
			case strings.HasSuffix(name, "throughput"):
				factor = 1.0 / 20
			}
			// Percentiles of gaps come from a histogram of a thousandth's precision.
			if got, want := scaled.Metrics[name], v*factor; got < want*0.999-1e-9 || got > want*1.001+1e-9 {
				t.Errorf("%s = %g, want %g", name, got, want)
			}
		}
		if got := scaled.Details[9].Gaps[3]; got != 20*ms {
			t.Errorf("gap in details %v, want 20ms", got)
		}
	})
}

func TestRound_CancelledKeepsWhatWasMeasured(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(50*ms, 50*ms, 2, 2)...))
		stop := errors.New("the window has closed")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 250*ms, stop)
		defer cancel()
		o, err := client.Round(ctx, RoundSpec{Prompts: prompts(100), Concurrency: 3, OutputTokens: 2, KeepDetails: true})
		if !errors.Is(err, stop) {
			t.Fatalf("error %v, want the context's cause", err)
		}
		wantMetric(t, o, "completed", 6)
		wantMetric(t, o, "failed", 0)
		wantMetric(t, o, "duration", 0.25)
		if e := o.Details[50].Error; e == nil || e.Kind != unfinished {
			t.Errorf("a request that was not sent has error %v", e)
		}
	})
}

func TestRound_RefusesNothingToDo(t *testing.T) {
	client, err := New(Target{BaseURL: "http://127.0.0.1:1", Protocol: OpenAIChat})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []RoundSpec{{Concurrency: 1}, {Prompts: prompts(1)}} {
		if _, err := client.Round(t.Context(), spec); err == nil {
			t.Errorf("round %+v did not fail", spec)
		}
	}
}

func TestRound_DeadServer(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, http.NotFoundHandler())
		client.dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("connection refused")
		}
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(5), Concurrency: 2, OutputTokens: 2})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, "failed", 5)
		if v := o.Verdict; v.Outcome != runners.Failed || v.Failures[0].Class != runners.ClassTransient {
			t.Errorf("verdict %+v", v)
		}
		if f := o.Failures[FailedConnect]; f.Count != 5 || !strings.Contains(f.First, "refused") {
			t.Errorf("failures %+v", o.Failures)
		}
	})
}

func TestPool(t *testing.T) {
	virtual(t, func(t *testing.T) {
		fast := serve(t, OpenAICompletions, script(completion(10*ms, 10*ms, 10, 10)...))
		slow := serve(t, OpenAICompletions, script(completion(30*ms, 30*ms, 10, 10)...))
		spec := RoundSpec{Prompts: prompts(4), Concurrency: 2, OutputTokens: 10, IgnoreEOS: true}
		a, err := fast.Round(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		b, err := slow.Round(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		o := Pool(a, b)
		wantMetric(t, o, "completed", 8)
		wantMetric(t, o, "duration", 0.8)
		wantMetric(t, o, "output_throughput", 100)
		wantMetric(t, o, "mean_ttft_ms", 20)
		wantMetric(t, o, "std_ttft_ms", 10)
		wantMetric(t, o, "mean_itl_ms", 20)
		wantMetric(t, o, "std_itl_ms", 10)
		wantMetric(t, o, "max_concurrent_requests", 2)
		wantMetric(t, o, "achieved_concurrency", 2)
		merged, err := MergeHistograms(a.Histograms["itl"], b.Histograms["itl"])
		if err != nil {
			t.Fatal(err)
		}
		if merged != o.Histograms["itl"] {
			t.Error("merged histograms of the rounds differ from the pooled one")
		}
		if again := Pool(a, b); again.Metrics["completed"] != 8 || a.Metrics["completed"] != 4 {
			t.Error("pooling changed the rounds")
		}
	})
}
