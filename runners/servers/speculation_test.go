package servers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nocturne/runners/servers"
)

func TestRenderSpeculation(t *testing.T) {
	tests := []struct {
		kind string
		ask  servers.Speculation
		want string // one argument a line
	}{
		{"sglang", servers.Speculation{Method: "eagle3", DraftModel: "/m/d", Steps: 0, TopK: 4}, ""},
		{
			"sglang", servers.Speculation{Method: "eagle3", DraftModel: "/m/d", Steps: 2, TopK: 1},
			"--speculative-algorithm\nEAGLE3\n--speculative-draft-model-path\n/m/d\n--speculative-num-steps\n2\n--speculative-eagle-topk\n1\n--speculative-num-draft-tokens\n3",
		},
		{
			"sglang", servers.Speculation{Method: "EAGLE", DraftModel: "/m/d", Steps: 5, TopK: 4},
			"--speculative-algorithm\nEAGLE\n--speculative-draft-model-path\n/m/d\n--speculative-num-steps\n5\n--speculative-eagle-topk\n4\n--speculative-num-draft-tokens\n8",
		},
		{
			"sglang", servers.Speculation{Method: "eagle", DraftModel: "/m/d", Steps: 1, TopK: 4},
			"--speculative-algorithm\nEAGLE\n--speculative-draft-model-path\n/m/d\n--speculative-num-steps\n1\n--speculative-eagle-topk\n4\n--speculative-num-draft-tokens\n5",
		},
		{"sglang", servers.Speculation{Method: "ngram", Steps: 11}, "--speculative-algorithm\nNGRAM\n--speculative-num-draft-tokens\n12"},
		{"vllm", servers.Speculation{Method: "mtp", Steps: 3}, "--speculative-config\n" + `{"method":"mtp","num_speculative_tokens":3}`},
		{
			"vllm", servers.Speculation{Method: "eagle3", DraftModel: `/m/a "b" {c}`, Steps: 3, TopK: 1},
			"--speculative-config\n" + `{"method":"eagle3","model":"/m/a \"b\" {c}","num_speculative_tokens":3}`,
		},
		{"llamacpp", servers.Speculation{Method: "draft", DraftModel: "d.gguf", Steps: 4}, "--spec-type\ndraft-simple\n--spec-draft-model\nd.gguf\n--spec-draft-n-max\n4"},
		{
			"trtllm", servers.Speculation{Method: "eagle3", DraftModel: "/m/d", Steps: 3},
			"--set\nspeculative_config.decoding_type=Eagle3\n--set\nspeculative_config.speculative_model=/m/d\n--set\nspeculative_config.max_draft_len=3",
		},
	}
	for _, test := range tests {
		args, err := servers.RenderSpeculation(test.kind, test.ask)
		if got := strings.Join(args, "\n"); err != nil || got != test.want {
			t.Errorf("%s %+v:\n%s\n%v\nexpected\n%s", test.kind, test.ask, got, err, test.want)
		}
	}
}

func TestRenderSpeculationRefuses(t *testing.T) {
	tests := []struct {
		kind string
		ask  servers.Speculation
		want string
	}{
		{"custom", servers.Speculation{Method: "eagle3", Steps: 1}, "groups or flags"},
		{"none", servers.Speculation{Method: "eagle3", Steps: 1}, "unknown server kind"},
		{"sglang", servers.Speculation{Method: "eagle4", Steps: 1}, "expected one of dflash, dspark, eagle, eagle3"},
		{"sglang", servers.Speculation{Method: "eagle3", Steps: 1}, "needs draft_model"},
		{"sglang", servers.Speculation{Method: "ngram", DraftModel: "d", Steps: 1}, "takes no draft_model"},
		{"sglang", servers.Speculation{Method: "eagle3", DraftModel: "d", Steps: 2, TopK: 1, DraftTokens: 5}, "leave it at auto"},
		{"sglang", servers.Speculation{Method: "eagle3", DraftModel: "d", Steps: 2, TopK: 2, DraftTokens: 8}, "at most 7"},
		{"vllm", servers.Speculation{Method: "eagle3", DraftModel: "d", Steps: 2, TopK: 4}, "chains only"},
		{"sglang", servers.Speculation{Method: "eagle3", DraftModel: "d", Steps: -1}, "expected 0 or more"},
		{"sglang", servers.Speculation{Method: "dflash", DraftModel: "d", Steps: 2}, "at most 1 step"},
	}
	for _, test := range tests {
		if args, err := servers.RenderSpeculation(test.kind, test.ask); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: %q, %v; expected an error with %q", test.kind, test.ask, args, err, test.want)
		}
	}
}

// F05: whatever stands in a path, vLLM's argument is one piece of valid JSON
// that gives the path back.
func TestF05_SpeculativeConfigIsOneValidArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringN(1, 40, -1).Draw(t, "path")
		steps := rapid.IntRange(1, 20).Draw(t, "steps")
		args, err := servers.RenderSpeculation("vllm", servers.Speculation{Method: "eagle3", DraftModel: path, Steps: steps})
		if err != nil || len(args) != 2 {
			t.Fatalf("%q, %v", args, err)
		}
		var config struct {
			Method string `json:"method"`
			Model  string `json:"model"`
			Steps  int    `json:"num_speculative_tokens"`
		}
		if err := json.Unmarshal([]byte(args[1]), &config); err != nil || config.Model != path || config.Steps != steps {
			t.Fatalf("%s: %+v, %v", args[1], config, err)
		}
	})
}

// What is rendered for SGLang must pass SGLang's own rules.
func TestRenderedSpeculationBreaksNoRule(t *testing.T) {
	kind, _ := servers.Get("sglang")
	rapid.Check(t, func(t *rapid.T) {
		ask := servers.Speculation{
			Method: "eagle3", DraftModel: "/m/d",
			Steps: rapid.IntRange(1, 16).Draw(t, "steps"), TopK: rapid.IntRange(0, 8).Draw(t, "topk"),
		}
		args, err := servers.RenderSpeculation("sglang", ask)
		if err != nil {
			t.Fatal(err)
		}
		args = slices.Concat([]string{"python3", "--max-running-requests=64"}, args)
		if findings := kind.Check(args, nil); len(findings) > 0 {
			t.Fatalf("%+v breaks %+v", args, findings)
		}
	})
}
