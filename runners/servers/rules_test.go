package servers_test

import (
	"strings"
	"testing"

	"nocturne/runners/servers"
)

func TestRules(t *testing.T) {
	tests := []struct {
		kind, args string
		env        map[string]string
		want       string // ids in order
	}{
		{"sglang", "python3 -m sglang.launch_server --tp=8", nil, ""},
		{"sglang", "x --speculative-algorithm EAGLE3 --speculative-draft-model-path=/d --max-running-requests=8", nil, ""},
		{"sglang", "x --speculative-algorithm=EAGLE3 --speculative-num-steps 3 --speculative-draft-model-path /d --max-running-requests 8", nil, "R1"},
		{"sglang", "x --speculative-num-steps=3 --speculative-eagle-topk=1", nil, ""},
		{"sglang", "x --speculative-num-steps=3 --speculative-eagle-topk=1 --speculative-num-draft-tokens=8", nil, "R3"},
		{"sglang", "x --speculative-num-steps=2 --speculative-eagle-topk=2 --speculative-num-draft-tokens=8", nil, "R4"},
		{"sglang", "x --speculative-num-steps=3 --speculative-eagle-topk=4 --speculative-num-draft-tokens=8 --page-size=16 --attention-backend=fa4", nil, "R5"},
		{"sglang", "x --speculative-num-steps=3 --speculative-eagle-topk=4 --speculative-num-draft-tokens=8 --page-size=16 --attention-backend=fa3", nil, ""},
		{"sglang", "x --speculative-num-steps=3 --speculative-eagle-topk=4 --speculative-num-draft-tokens=8 --attention-backend=trtllm_mha", nil, "R6"},
		{"sglang", "x --speculative-algorithm=NGRAM", nil, "R7"},
		{"sglang", "x --speculative-algorithm=NGRAM --max-running-requests=8 --enable-mixed-chunk", nil, "R8"},
		{"sglang", "x --speculative-algorithm=EAGLE3 --max-running-requests=8", nil, "R9"},
		{"sglang", "x --speculative-accept-threshold-acc 0.9", nil, "R12"},
		{"sglang", "x --speculative-accept-threshold-acc 1.0", nil, ""},
		{"sglang", "x --speculative-draft-window-size 3 --speculative-algorithm=NGRAM --max-running-requests=8", nil, "R13"},
		{"sglang", "x --speculative-adaptive --speculative-algorithm=NGRAM --max-running-requests=8", nil, "R14"},
		{"sglang", "x --pp-size=2 --speculative-algorithm=NGRAM --max-running-requests=8", nil, "R15"},
		{"sglang", "x --skip-server-warmup", nil, "R16"},
		{"sglang", "x --speculative-use-rejection-sampling --speculative-algorithm=NGRAM --max-running-requests=8", nil, "R11"},
		{"sglang", "x --enable-dp-attention --speculative-algorithm=NGRAM --max-running-requests=8", nil, "R17"},
		{"vllm", `x -sc {"method":"eagle3","model":"/d"}`, nil, "V6"},
		{"vllm", `x -sc {"method":"eagle3","model":"/d","num_speculative_tokens":3,"draft_tensor_parallel_size":2} -tp 4`, nil, "V7"},
		{"vllm", `x -sc {"method":"eagle3","model":"/d","num_speculative_tokens":3,"draft_tensor_parallel_size":4} --tensor_parallel_size=4`, nil, ""},
		{"vllm", `x -dp 2 -sc {"num_speculative_tokens_per_batch_size":[[1,4,3]]}`, nil, "V8"},
		{"vllm", `x --speculative-config {"method":"eagle","rejection_sample_method":"synthetic"}`, nil, "V1"},
		{"vllm", `x --speculative_config={"tensor_parallel_size":2}`, nil, "V2"},
		{"vllm", "x", map[string]string{"VLLM_BATCH_INVARIANT": "1", "NCCL_PROTO": "LL"}, "V3"},
		{"vllm", "x", map[string]string{"VLLM_BATCH_INVARIANT": "1"}, ""},
		{"vllm", "x --disable-log-stats", map[string]string{"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "1"}, "V4 V5"},
		{"trtllm", "x --set speculative_config.acceptance_window=10", nil, "T1 T2"},
		{"trtllm", "x --set kv_cache_config.enable_block_reuse=false", nil, ""},
		{"llamacpp", "x --fit off", nil, ""},
		{"llamacpp", "x -md d.gguf", nil, "L1 L2"},
		{"llamacpp", "x -fit off --draft-max 4", nil, "L3"},
		{"llamacpp", "x --fit off --no-warmup", nil, "L4"},
		{"llamacpp", "x --fit off --model=m.gguf", nil, "L5"},
		{"llamacpp", "x --fit off --alias a=b", nil, ""},
	}
	for _, test := range tests {
		kind, err := servers.Get(test.kind)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, finding := range kind.Check(strings.Fields(test.args), test.env) {
			ids = append(ids, finding.Rule)
			if finding.Message == "" || finding.Severity != servers.Refuse && finding.Severity != servers.Warn {
				t.Errorf("rule %s has no message or severity", finding.Rule)
			}
		}
		if got := strings.Join(ids, " "); got != test.want {
			t.Errorf("%s %s: breaks %q, expected %q", test.kind, test.args, got, test.want)
		}
	}
}

func TestReasonsHaveAPolicy(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range servers.Reasons() {
		if seen[reason.Code] {
			t.Errorf("reason %s twice", reason.Code)
		}
		seen[reason.Code] = true
		policy := reason.Cause.Policy()
		if policy.Class == "" || policy.Then == "" || reason.Meaning == "" {
			t.Errorf("reason %s: policy %+v, meaning %q", reason.Code, policy, reason.Meaning)
		}
	}
	if _, known := servers.LookUpReason("nonsense"); known {
		t.Error("an unknown reason was found")
	}
}
