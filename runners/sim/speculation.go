package sim

import "fmt"

// method says how a way of drafting differs from EAGLE: in what is accepted, and
// in what a step of the draft costs.
type method struct{ accept, draft float64 }

// methods by the word of --speculative-algorithm.
var methods = map[string]method{
	"EAGLE":      {1, 1},
	"EAGLE3":     {1, 1},
	"NEXTN":      {0.96, 1.2},
	"STANDALONE": {1.05, 3},
	"NGRAM":      {0.5, 0.02},
}

// speculation is what the server makes of its speculative arguments; 0 steps
// means off.
type speculation struct {
	algorithm                string
	steps, topk, draftTokens int
}

// readSpeculation applies the rewriting of SGLang 0.5.18
// (python/sglang/srt/arg_groups/speculative_hook.py).
func (o *options) readSpeculation() {
	s := speculation{algorithm: o.text("speculative_algorithm")}
	if s.algorithm == "" {
		return
	}
	steps, topk, tokens := o.text("speculative_num_steps"), o.text("speculative_eagle_topk"), o.text("speculative_num_draft_tokens")
	s.steps, s.topk, s.draftTokens = o.number("speculative_num_steps"), o.number("speculative_eagle_topk"), o.number("speculative_num_draft_tokens")
	switch {
	case s.algorithm == "NGRAM":
		s.topk, s.draftTokens = 10, max(s.draftTokens, 12)
		s.steps = max(1, s.draftTokens/s.topk)
	case steps == "" && topk == "" && tokens == "":
		s.steps, s.topk, s.draftTokens = 3, 1, 4
	case steps == "":
		o.refuse("AssertionError")
		return
	case topk == "":
		o.refuse("TypeError: '>' not supported between instances of 'NoneType' and 'int'")
		return
	}
	if s.topk == 1 && s.draftTokens != s.steps+1 {
		o.notes = append(o.notes, "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1")
		s.draftTokens = s.steps + 1
	}
	if o.text("max_running_requests") == "" {
		o.notes = append(o.notes, fmt.Sprintf("Max running requests is reset to %d for speculative decoding. You can override this by explicitly setting --max-running-requests.", speculativeRunning))
	}
	if o.on("enable_mixed_chunk") {
		o.notes = append(o.notes, "Mixed chunked prefill is disabled because of using eagle speculative decoding.")
	}
	o.checkSpeculation(s)
	o.speculation = s
}

func (o *options) refuse(text string) {
	if o.refusal == "" {
		o.refusal = text
	}
}

func (o *options) checkSpeculation(s speculation) {
	backend := o.text("attention_backend")
	treePages := backend == "" || backend == "flashinfer" || backend == "fa3" || backend == "triton"
	switch {
	case s.steps < 1 || s.topk < 1 || s.draftTokens < 2:
		o.refuse("AssertionError")
	case s.algorithm != "NGRAM" && o.text("speculative_draft_model_path") == "":
		o.refuse("KeyError: 'model.fc.weight'")
	case s.topk > 1 && backend == "trtllm_mha":
		o.refuse("ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.")
	case s.topk > 1 && o.number("page_size") > 1 && !treePages:
		o.refuse("ValueError: speculative_eagle_topk > 1 with page_size > 1 is unstable and produces incorrect results for paged attention backends.")
	case s.topk > 1 && s.algorithm != "NGRAM" && s.draftTokens-1 > s.topk+(s.steps-1)*s.topk*s.topk:
		o.refuse("RuntimeError: selected index k out of range")
	}
}
