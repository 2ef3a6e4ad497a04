package sim

import (
	"net/http"
	"strings"
	"testing"
)

const completionBody = `{"model":"/models/k","prompt":"alpha beta gamma","max_tokens":40,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`

func TestCompletionsStream(t *testing.T) {
	r := start(t, nil, eagle(2)...)
	status, body := r.post(t, "/v1/completions", completionBody)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	got := events(t, body)
	if len(got) < 4 || got[len(got)-1] != "[DONE]" {
		t.Fatalf("events %q", got)
	}
	var text strings.Builder
	for _, event := range got[:len(got)-3] {
		chunk := decode[completion](t, event)
		if chunk.Usage != nil || chunk.Choices[0].FinishReason != nil || *chunk.Choices[0].Text == "" {
			t.Errorf("chunk %s", event)
		}
		text.WriteString(*chunk.Choices[0].Text)
	}
	if reason := decode[completion](t, got[len(got)-3]).Choices[0].FinishReason; reason == nil || *reason != "length" {
		t.Errorf("finish chunk %s", got[len(got)-3])
	}
	last := decode[completion](t, got[len(got)-2])
	if len(last.Choices) != 0 || *last.Usage != (usage{3, 40, 43}) {
		t.Errorf("usage chunk %s", got[len(got)-2])
	}
	if n := len(strings.Fields(text.String())); n != 40 {
		t.Errorf("%d words in the text, want 40", n)
	}
	_, whole := r.post(t, "/v1/completions", strings.Replace(completionBody, `"stream":true`, `"stream":false`, 1))
	if c := decode[completion](t, whole); *c.Choices[0].Text != text.String() || c.Usage.CompletionTokens != 40 {
		t.Errorf("the answer in one piece differs: %s", whole)
	}
}

func TestContinuousUsage(t *testing.T) {
	r := start(t, nil)
	_, body := r.post(t, "/v1/completions", strings.Replace(completionBody, `"include_usage":true`, `"continuous_usage_stats":true`, 1))
	words := 0
	for _, event := range events(t, body) {
		if event == "[DONE]" {
			break
		}
		chunk := decode[completion](t, event)
		if len(chunk.Choices) > 0 {
			words += len(strings.Fields(*chunk.Choices[0].Text))
		}
		if chunk.Usage == nil || chunk.Usage.CompletionTokens != words {
			t.Fatalf("after %d tokens: %s", words, event)
		}
	}
}

func TestChat(t *testing.T) {
	r := start(t, nil)
	body := `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"one two"}]}],"max_completion_tokens":9,"ignore_eos":true,"stream":STREAM,"stream_options":{"include_usage":true}}`
	_, stream := r.post(t, "/v1/chat/completions", strings.Replace(body, "STREAM", "true", 1))
	got := events(t, stream)
	first := decode[completion](t, got[0])
	if first.Choices[0].Delta.Role != "assistant" || *first.Choices[0].Delta.Content != "" {
		t.Errorf("the first event is %s, want the role", got[0])
	}
	var text strings.Builder
	for _, event := range got[1 : len(got)-3] {
		text.WriteString(*decode[completion](t, event).Choices[0].Delta.Content)
	}
	_, whole := r.post(t, "/v1/chat/completions", strings.Replace(body, "STREAM", "false", 1))
	answer := decode[completion](t, whole)
	if *answer.Choices[0].Message.Content != text.String() || answer.Object != "chat.completion" || answer.Usage.CompletionTokens != 9 {
		t.Errorf("stream %q, whole %s", text.String(), whole)
	}
}

func TestNativeGenerateIsCumulative(t *testing.T) {
	r := start(t, nil, eagle(3)...)
	_, body := r.post(t, "/generate", `{"text":"a b c d","sampling_params":{"max_new_tokens":60,"ignore_eos":true},"stream":true}`)
	type event struct {
		Text string         `json:"text"`
		Meta map[string]any `json:"meta_info"`
	}
	got := events(t, body)
	previous := event{}
	for _, data := range got[:len(got)-1] {
		now := decode[event](t, data)
		if !strings.HasPrefix(now.Text, previous.Text) || int(now.Meta["completion_tokens"].(float64)) != len(strings.Fields(now.Text)) {
			t.Fatalf("event %s after %q", data, previous.Text)
		}
		if _, early := now.Meta["spec_verify_ct"]; early != (now.Meta["finish_reason"] != nil) {
			t.Errorf("statistics of speculation belong to the last event alone: %s", data)
		}
		previous = now
	}
	cycles := previous.Meta["spec_verify_ct"].(float64)
	if length := previous.Meta["spec_accept_length"].(float64); length != 60/cycles || length < 2 || length > 2.6 {
		t.Errorf("acceptance length %.2f over %.0f cycles", length, cycles)
	}
	if n := len(previous.Meta["spec_correct_drafts_histogram"].([]any)); n != 4 {
		t.Errorf("a histogram of %d bins for 3 steps", n)
	}
	_, ids := r.post(t, "/generate", `{"input_ids":[1,2,3],"sampling_params":{"max_new_tokens":5}}`)
	if one := decode[event](t, ids); one.Meta["prompt_tokens"].(float64) != 3 || one.Meta["completion_tokens"].(float64) != 5 {
		t.Errorf("token ids: %s", ids)
	}
}

func TestStreamInterval(t *testing.T) {
	r := start(t, nil, "--stream-interval=8", "--sim-serving-scale=50")
	_, body := r.post(t, "/v1/completions", completionBody)
	got := events(t, body)
	for i, event := range got[1 : len(got)-4] {
		if n := len(strings.Fields(*decode[completion](t, event).Choices[0].Text)); n < 8 {
			t.Errorf("event %d carries %d tokens, want at least 8", i+1, n)
		}
	}
}

func TestNaturalEnd(t *testing.T) {
	r := start(t, nil, "--sim-serving-scale=5000")
	_, body := r.post(t, "/v1/completions", `{"prompt":"where does this end","max_tokens":5000}`)
	c := decode[completion](t, body)
	if *c.Choices[0].FinishReason != "stop" || c.Usage.CompletionTokens >= 5000 {
		t.Errorf("%s after %d tokens, want a stop", *c.Choices[0].FinishReason, c.Usage.CompletionTokens)
	}
}

func TestRefusals(t *testing.T) {
	r := start(t, nil, "--api-key=k")
	if status, _ := r.get(t, "/v1/models"); status != http.StatusUnauthorized {
		t.Errorf("without the key: %d", status)
	}
	if status, _ := r.get(t, "/health"); status != http.StatusOK {
		t.Errorf("health without the key: %d", status)
	}
	r = start(t, nil)
	for path, body := range map[string]string{
		"/v1/completions":      `{"prompt":"x","max_tokens":0}`,
		"/v1/chat/completions": `{"messages":[]}`,
		"/generate":            `{"text":"x","sampling_params":{"max_new_tokens":999999}}`,
	} {
		if status, answer := r.post(t, path, body); status != http.StatusBadRequest || !strings.Contains(answer, "message") {
			t.Errorf("%s %s: %d %s", path, body, status, answer)
		}
	}
	if status, _ := r.post(t, "/v1/completions", `not JSON`); status != http.StatusBadRequest {
		t.Errorf("a body that is not JSON: %d", status)
	}
	if status, _ := r.get(t, "/metrics"); status != http.StatusNotFound {
		t.Errorf("metrics without --enable-metrics: %d", status)
	}
}

func TestPagesTellWhatIsInForce(t *testing.T) {
	r := start(t, nil, with(eagle(2), "--served-model-name=k25", "--enable-metrics", "--sim-driver=575.57.08", "--sim-nccl=2.27.7")...)
	_, models := r.get(t, "/v1/models")
	if !strings.Contains(models, `"id":"k25"`) {
		t.Errorf("models: %s", models)
	}
	r.post(t, "/v1/completions", completionBody)
	_, body := r.get(t, "/server_info")
	info := decode[struct {
		Version   string
		Draft     *int             `json:"speculative_num_draft_tokens"`
		States    []map[string]any `json:"internal_states"`
		Simulated map[string]any
	}](t, body)
	state := info.States[0]
	if info.Version != version || info.Draft != nil || state["speculative_num_draft_tokens"] != 3.0 || state["max_running_requests"] != 48.0 {
		t.Errorf("server_info: %s", body)
	}
	if length, _ := state["avg_spec_accept_length"].(float64); length < 1.7 || length > 2.2 {
		t.Errorf("acceptance length %v, want about 1.94", state["avg_spec_accept_length"])
	}
	want := map[string]any{"gpu": machines[defaultMachine].name, "count": 8.0, "driver": "575.57.08", "cuda": "13.0", "nccl": "2.27.7"}
	for name, value := range want {
		if info.Simulated[name] != value {
			t.Errorf("simulated.%s is %v, want %v", name, info.Simulated[name], value)
		}
	}
	if _, old := r.get(t, "/get_server_info"); !strings.Contains(old, `"simulated"`) {
		t.Error("/get_server_info is not the same page")
	}
	if status, body := r.get(t, "/get_model_info"); status != http.StatusOK || !strings.Contains(body, "/models/Kimi-K2.5-INT4") {
		t.Errorf("model info: %d %s", status, body)
	}
	if status, _ := r.get(t, "/health_generate"); status != http.StatusOK {
		t.Errorf("health_generate: %d", status)
	}
}

func TestPrefixCache(t *testing.T) {
	r := start(t, nil, "--enable-metrics")
	prompt := `{"prompt":"` + strings.Repeat("word ", 100) + `","max_tokens":4,"ignore_eos":true}`
	counter := func(name string) string {
		_, page := r.get(t, "/metrics")
		_, after, _ := strings.Cut(page, "\nsglang:"+name+"{")
		_, value, _ := strings.Cut(after, "} ")
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	r.post(t, "/v1/completions", prompt)
	if got := counter("cached_tokens_total"); got != "0" {
		t.Errorf("%s tokens cached after the first prompt", got)
	}
	r.post(t, "/v1/completions", prompt)
	if got := counter("cached_tokens_total"); got != "96" { // six blocks of 16
		t.Errorf("%s tokens cached after the second prompt, want 96", got)
	}
	if status, _ := r.post(t, "/flush_cache", ""); status != http.StatusOK {
		t.Errorf("flush: %d", status)
	}
	r.post(t, "/v1/completions", prompt)
	if got, asked := counter("cached_tokens_total"), counter("prompt_tokens_total"); got != "96" || asked != "300" {
		t.Errorf("%s of %s tokens cached after a flush, want 96 of 300", got, asked)
	}
}

func TestFlushIsRefusedWhileRequestsRun(t *testing.T) {
	r := start(t, nil, "--sim-serving-scale=1")
	response, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(completionBody))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() // the stream goes on until here
	if status, _ := r.post(t, "/flush_cache", ""); status != http.StatusBadRequest {
		t.Errorf("flush under load: %d, want 400", status)
	}
}

func TestLogFollowsThePhases(t *testing.T) {
	env := []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING,GRAPH", "NCCL_PROTO=LL", "NCCL_ALGO=Ring", "NCCL_P2P_LEVEL=SYS", "NCCL_NTHREADS=256", "NCCL_MAX_CTAS=99"}
	r := start(t, env, eagle(2, "--decode-log-interval=5", "--speculative-num-draft-tokens=9")...)
	r.post(t, "/v1/completions", completionBody)
	rest := r.log.String()
	for _, line := range []string{
		"Max running requests is reset to 48", "server_args=ServerArgs(model_path='/models/Kimi-K2.5-INT4'",
		"TP7] Init torch distributed begin.", "sglang is using nccl==2.28.9",
		"NCCL INFO NCCL version 2.28.9+cuda13.0", "NCCL_P2P_LEVEL set by environment to SYS\n",
		"NCCL_MAX_CTAS set by environment to 99.\n", "NCCL_MAX_CTAS 99 is larger than #channels upper limit 64, cap it to 64",
		"NCCL_NTHREADS set by environment to 256.\n", "NCCL_ALGO set by environment to Ring\n", "NCCL_PROTO set by environment to LL\n",
		"type SYS/PIX", "Channel 00/16 : 0 1 2 3 4 5 6 7", "threadThresholds 8/8/64 | 64/8/64 | 512 | 512", "16 coll channels",
		"Enabled NCCL Func/Proto/Algo Matrix:", "Init COMPLETE", "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
		"Init torch distributed ends.", "Load weight begin. avail mem=", "checkpoint shards: 100% Completed | 163/163", "Load weight end.",
		"KV Cache is allocated.", "Memory pool end.", "Capture target verify CUDA graph begin.",
		"AllReduce: 43008 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n",
		"Capturing batches", "Capture target verify CUDA graph end.", "type=LlamaForCausalLMEagle3", "Capture draft CUDA graph end.",
		"max_total_num_tokens=", "Engine startup timings (s): load_weight=", "Uvicorn running on", readyLine,
		"Prefill batch, #new-seq: 1, #new-token: 3", "Decode batch, #running-req: 1",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("%q is missing, or out of order, in:\n%s", line, r.log)
		}
		rest = after
	}
	if !r.log.has("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1") {
		t.Error("rewriting the draft tokens is not logged")
	}
}

func TestNCCLIsSilentUnlessAsked(t *testing.T) {
	if r := start(t, []string{"NCCL_PROTO=LL"}); r.log.has("NCCL INFO") || r.log.has("NCCL version") {
		t.Errorf("NCCL logs without NCCL_DEBUG:\n%s", r.log)
	}
	if r := start(t, []string{"NCCL_PROTO=LL", "NCCL_DEBUG=version"}); r.log.has("NCCL INFO") || !r.log.has("NCCL version 2.28.9+cuda13.0\n") {
		t.Errorf("NCCL_DEBUG=version:\n%s", r.log)
	}
	if r := start(t, []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=TUNING"}, "--sim-bypass-nccl"); r.log.has("AllReduce:") {
		t.Error("operations are logged though NCCL is bypassed")
	}
}
