package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// failing are responses that must not count as completed, in the shapes that
// servers send them.
var failing = []struct {
	name     string
	protocol Protocol
	status   int
	body     string
	kind     FailureKind
	message  string
}{
	{"status 500", OpenAICompletions, 500, `{"error":{"message":"engine dead","type":"x","code":500}}`, "http_500", "engine dead"},
	{"status 400, message at the top", OpenAICompletions, 400, `{"object":"error","message":"too long"}`, "http_400", "too long"},
	{"status 404, FastAPI's detail", OpenAICompletions, 404, `{"detail":"Not Found"}`, "http_404", "Not Found"},
	{"status 503, plain text", OpenAIChat, 503, "loading\n  model", "http_503", "loading model"},
	{"redirect", OpenAIChat, 307, "", "http_307", "Temporary Redirect"},
	{"error event, then the marker", OpenAICompletions, 200, chunkEvent + `data: {"error":{"message":"CUDA out of memory","code":500}}` + "\n\n" + doneEvent, FailedStream, "CUDA out of memory"},
	{"error event that has text", OpenAICompletions, 200, `data: {"choices":[{"text":"x"}],"error":"broken"}` + "\n\n" + doneEvent, FailedStream, "broken"},
	{"vLLM's older error event", OpenAICompletions, 200, `data: {"object":"error","message":"bad request","code":400}` + "\n\n" + doneEvent, FailedStream, "bad request"},
	{"error event by its name", OpenAIChat, 200, "event: error\ndata: {\"message\":\"gone\"}\n\n", FailedStream, "gone"},
	{"error field of llama.cpp", OpenAIChat, 200, chunkEvent + "error: {\"code\":500,\"message\":\"slot lost\"}\n\n", FailedStream, "slot lost"},
	{"native error event", SGLangGenerate, 200, `data: {"error": {"message": "queue is full"}}` + "\n\n" + doneEvent, FailedStream, "queue is full"},
	{"no terminal marker", OpenAICompletions, 200, chunkEvent + finishEvent + usageEvent(1), FailedCutOff, "after 3 events"},
	{"cut within an event", OpenAICompletions, 200, chunkEvent + `data: {"choices":[{"text":"wo`, FailedMalformed, "wo"},
	{"nothing at all", OpenAICompletions, 200, "", FailedCutOff, "after 0 events"},
	{"an answer that is no stream", OpenAICompletions, 200, `{"choices":[{"text":"all of it"}]}`, FailedMalformed, "all of it"},
	{"an event that is not JSON", OpenAICompletions, 200, "data: hello\n\n" + doneEvent, FailedMalformed, "hello"},
	{"an event of another shape", OpenAICompletions, 200, "data: {\"choices\":7}\n\n" + doneEvent, FailedMalformed, "choices"},
	{"native event that is not JSON", SGLangGenerate, 200, "data: {]\n\n", FailedMalformed, "{]"},
	{"aborted", OpenAICompletions, 200, chunkEvent + strings.Replace(finishEvent, "length", "abort", 1) + usageEvent(1) + doneEvent, FailedAborted, "abort"},
	{"natively aborted", SGLangGenerate, 200, `data: {"text":"a","meta_info":{"finish_reason":{"type":"abort","message":"Input length exceeds"},"completion_tokens":1}}` + "\n\n" + doneEvent, FailedAborted, "Input length exceeds"},
	{"no token", OpenAICompletions, 200, finishEvent + usageEvent(0) + doneEvent, FailedEmpty, "no token"},
	{"a role and no token", OpenAIChat, 200, `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n" + doneEvent, FailedEmpty, "no token"},
	{"no native token", SGLangGenerate, 200, `data: {"text":"","meta_info":{"finish_reason":null,"completion_tokens":0}}` + "\n\n" + doneEvent, FailedEmpty, "no token"},
}

func TestRound_FailureKinds(t *testing.T) {
	for _, test := range failing {
		t.Run(test.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, test.protocol, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(test.status)
					fmt.Fprint(w, test.body)
				}))
				o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(2), Concurrency: 1, OutputTokens: 1})
				if err != nil {
					t.Fatal(err)
				}
				wantMetric(t, o, "completed", 0)
				f := o.Failures[test.kind]
				if f.Count != 2 || !strings.Contains(f.First, test.message) {
					t.Errorf("failures %+v, want 2 %s about %q", o.Failures, test.kind, test.message)
				}
				wantAbsent(t, o, "mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "mean_chunk_gap_ms")
				if _, err := client.Complete(t.Context(), Request{Prompt: "p", OutputTokens: 1}); err == nil {
					t.Error("Complete found nothing wrong")
				}
			})
		})
	}
}

func TestComplete(t *testing.T) {
	for _, test := range []struct {
		name     string
		protocol Protocol
		body     string
		want     Completion
	}{
		{"completions", OpenAICompletions,
			`data: {"choices":[{"text":"He said"}]}` + "\n\n" + `data: {"choices":[{"text":" \"text\":\"hi\""}]}` + "\n\n" + finishEvent + usageEvent(5) + doneEvent,
			Completion{Text: `He said "text":"hi"`, FinishReason: "length", InputTokens: 10, OutputTokens: 5, CachedTokens: Unknown, Chunks: 2}},
		{"chat with reasoning, cached tokens, a tool call", OpenAIChat,
			`data:{"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n" +
				`data:{"choices":[{"delta":{"reasoning_content":"Hmm"}}]}` + "\n\n" +
				`data:{"choices":[{"delta":{"reasoning":"."}}]}` + "\n\n" +
				`data:{"choices":[{"delta":{"content":"Yes","tool_calls":[]}}]}` + "\n\n" +
				`data:{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}` + "\n\n" +
				`data:{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n" + doneEvent,
			Completion{Text: "Yes", Reasoning: "Hmm.", FinishReason: "tool_calls", InputTokens: 9, OutputTokens: 6, CachedTokens: 4, Chunks: 4}},
		{"llama.cpp's timings without usage", OpenAICompletions,
			": ping\n\n" + `data: {"choices":[{"text":"a"}]}` + "\n\n" +
				`data: {"choices":[{"text":"","finish_reason":"stop"}],"timings":{"cache_n":3,"prompt_n":7,"predicted_n":2,"draft_n":8,"draft_n_accepted":6}}` + "\n\n" + doneEvent,
			Completion{Text: "a", FinishReason: "stop", InputTokens: 10, OutputTokens: 2, CachedTokens: 3, Chunks: 1, Speculation: Speculation{Drafted: 8, Accepted: 6}}},
		{"continuous usage with a token without text", OpenAICompletions,
			`data: {"choices":[{"text":"a"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" +
				`data: {"choices":[{"text":""}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n" +
				`data: {"choices":[{"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n" + doneEvent,
			Completion{Text: "a", FinishReason: "length", InputTokens: 1, OutputTokens: 2, CachedTokens: Unknown, Chunks: 2}},
		{"native, cumulative", SGLangGenerate,
			`data: {"text":"a","meta_info":{"finish_reason":null,"prompt_tokens":3,"completion_tokens":1,"cached_tokens":0}}` + "\n\n" +
				`data: {"text":"a b","meta_info":{"finish_reason":null,"prompt_tokens":3,"completion_tokens":2,"cached_tokens":0}}` + "\n\n" +
				`data: {"text":"a b c","meta_info":{"finish_reason":{"type":"length","length":4},"prompt_tokens":3,"completion_tokens":4,"cached_tokens":1,"spec_verify_ct":2,"spec_num_correct_drafts":2,"spec_num_proposed_drafts":6}}` + "\n\n" + doneEvent,
			Completion{Text: "a b c", FinishReason: "length", InputTokens: 3, OutputTokens: 4, CachedTokens: 1, Chunks: 3,
				Speculation: Speculation{Verifications: 2, Produced: 4, Drafted: 6, Accepted: 2}}},
		{"native, incremental", SGLangGenerate,
			`data: {"text":"ha","meta_info":{"finish_reason":null,"completion_tokens":1}}` + "\n\n" +
				`data: {"text":"ha","meta_info":{"finish_reason":null,"completion_tokens":2}}` + "\n\n" +
				`data: {"text":"ha","meta_info":{"finish_reason":"stop","completion_tokens":3}}` + "\n\n" + doneEvent,
			Completion{Text: "hahaha", FinishReason: "stop", InputTokens: Unknown, OutputTokens: 3, CachedTokens: Unknown, Chunks: 3}},
		{"native without counts", SGLangGenerate,
			`data: {"text":"a","meta_info":{}}` + "\n\n" + `data: {"text":"a b","meta_info":{}}` + "\n\n" + `data: {"text":"a b","meta_info":{"finish_reason":"stop"}}` + "\n\n" + doneEvent,
			Completion{Text: "a b", FinishReason: "stop", InputTokens: Unknown, OutputTokens: Unknown, CachedTokens: Unknown, Chunks: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, test.protocol, script(step{0, test.body}))
				got, err := client.Complete(t.Context(), Request{Prompt: "p", OutputTokens: 8})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got, cmpopts.EquateComparable()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The cheap reading of an event must agree with decoding it, whatever its text
// says and however it is spaced.
func TestDecode_CheapAgreesWithWhole(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", `"text":"x"`, `"error":{}`, `"finish_reason":"stop"`, `text`, `error`, "\\", `\"text\":`, "null", `"usage":{"completion_tokens":9}`, `"meta_info"`, "\u2028", "{}",
	}))
	rapid.Check(t, func(t *rapid.T) {
		for _, protocol := range []Protocol{OpenAICompletions, OpenAIChat, SGLangGenerate} {
			data := anyEvent(t, protocol, text)
			cheap, whole := newDecoder(protocol), newDecoder(protocol)
			cheap.reset(false)
			whole.reset(true)
			got, gotFailure := cheap.decode(data)
			want, wantFailure := whole.decode(data)
			if got != want || (gotFailure == nil) != (wantFailure == nil) {
				t.Fatalf("%s: %s\ncheap %+v %v\nwhole %+v %v", protocol, data, got, gotFailure, want, wantFailure)
			}
			a, b := cheap.summary(), whole.summary()
			if protocol == SGLangGenerate && b.finish == "" {
				b.prompt = unknown // read from the event that ends the response
			}
			if wantFailure == nil && (a.finish != b.finish || a.produced != b.produced || a.prompt != b.prompt) {
				t.Fatalf("%s: %s\ncheap %+v\nwhole %+v", protocol, data, a, b)
			}
		}
	})
}

// anyEvent is an event of a well-behaved server in any of its variations.
func anyEvent(t *rapid.T, protocol Protocol, text *rapid.Generator[string]) []byte {
	event := map[string]any{"id": text.Draw(t, "id"), "object": text.Draw(t, "object")}
	var finish any
	if rapid.Bool().Draw(t, "finished") {
		finish = "length"
	}
	count := rapid.IntRange(0, 500).Draw(t, "count")
	if protocol == SGLangGenerate {
		event["text"] = text.Draw(t, "text")
		event["meta_info"] = map[string]any{"id": text.Draw(t, "meta id"), "finish_reason": finish, "prompt_tokens": 3, "completion_tokens": count}
	} else {
		choice := map[string]any{"index": 0, "finish_reason": finish, "logprobs": map[string]any{"content": []any{map[string]any{"token": text.Draw(t, "token")}}}}
		if protocol == OpenAIChat {
			choice["delta"] = map[string]any{
				"content": text.Draw(t, "content"), "reasoning_content": text.Draw(t, "reasoning"), "tool_calls": nil,
			}
		} else {
			choice["text"] = text.Draw(t, "text")
		}
		event["choices"] = []any{choice}
		event["usage"] = nil
		if rapid.Bool().Draw(t, "usage") {
			event["usage"] = map[string]any{"prompt_tokens": 3, "completion_tokens": count}
		}
	}
	if rapid.Bool().Draw(t, "error") {
		event["error"] = rapid.SampledFrom([]any{nil, map[string]any{"message": "m"}}).Draw(t, "error value")
	}
	encode := json.Marshal
	if rapid.Bool().Draw(t, "spaced") {
		encode = func(v any) ([]byte, error) { return json.MarshalIndent(v, "", " ") }
	}
	data, err := encode(event)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzDecode checks that no event makes a decoder panic or count backwards.
func FuzzDecode(f *testing.F) {
	for _, test := range failing {
		for line := range strings.Lines(test.body) {
			f.Add([]byte(strings.TrimSpace(strings.TrimPrefix(line, "data: "))))
		}
	}
	f.Add([]byte(`{"choices":[{"text":"a"}],"usage":{"completion_tokens":99999999999999999999}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, protocol := range []Protocol{OpenAICompletions, OpenAIChat, SGLangGenerate} {
			d := newDecoder(protocol)
			d.reset(false)
			m, failure := d.decode(data)
			if failure == nil && m.produced < unknown {
				t.Errorf("%s: %q counts %d tokens", protocol, data, m.produced)
			}
			d.summary()
		}
	})
}
