package spec_test

import (
	"slices"
	"testing"

	"nocturne/search"
	"nocturne/tuner/spec"
)

func TestSpeculationKnobs(t *testing.T) {
	tests := map[string]struct {
		kind   string
		space  string
		knobs  []string
		method string
	}{
		"none":        {"sglang", "{env: {NCCL_PROTO: {choices: [unset, LL]}}, flags: {--max-num-seqs: {choices: [64, 128]}}}", nil, ""},
		"speculative": {"sglang", "{env: {NCCL_PROTO: {choices: [unset, LL]}}, speculative: {method: eagle3, draft_model: /models/d, steps: {int: [0, 4]}, topk: {choices: [1, 4]}}}", []string{"speculative.steps", "speculative.topk"}, "eagle3"},
		"flags":       {"custom", "{flags: {--speculative-num-steps: {int: [1, 4], default: 1}, --page-size: {choices: [1, 16]}}}", []string{"flag.speculative_num_steps"}, ""},
		"groups":      {"custom", "{groups: {plan: {choices: {none: {args: []}, some: {args: [--draft-max, 8]}}}, other: {choices: {a: {args: [--inspect, x]}}}}}", []string{"plan"}, ""},
		"variables":   {"custom", "{groups: {plan: {choices: {some: {env: {MY_SPEC_STEPS: 2}}}}}, env: {SPECIAL: {choices: [1, 2]}}}", []string{"plan"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parsed, _, err := spec.Parse("night.yaml", []byte(`campaign: night
server: {kind: `+test.kind+`, command: [serve, "--port=${port}", --max-running-requests=48]}
workload: {concurrency: 1}
objective: {maximize: output_throughput}
space: `+test.space+`
budget: {trials: 20}
`), spec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.SpeculationKnobs(); !slices.Equal(got, test.knobs) || parsed.SpeculationMethod() != test.method {
				t.Errorf("knobs %v by method %q, want %v by %q", got, parsed.SpeculationMethod(), test.knobs, test.method)
			}
		})
	}
}

func TestIdleSpeculation(t *testing.T) {
	parsed, _, err := spec.Parse("night.yaml", []byte(`campaign: night
server: {kind: sglang, command: [serve, "--port=${port}", --max-running-requests=48], env: {NCCL_CUMEM_ENABLE: 0}}
workload: {concurrency: 1}
objective: {maximize: output_throughput}
space: {speculative: {method: eagle3, draft_model: /models/d, steps: {int: [0, 4]}}}
budget: {trials: 20}
`), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !parsed.IdleSpeculation(parsed.Baseline) || parsed.IdleSpeculation(search.Values{"speculative.steps": search.Int(2)}) || parsed.IdleSpeculation(nil) {
		t.Error("only no steps is no speculation")
	}
	resolved, err := parsed.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	if got := spec.FixedEnvironment(resolved); got["NCCL_CUMEM_ENABLE"] != "0" || parsed.FixedEnvironment()["NCCL_CUMEM_ENABLE"] != "0" {
		t.Errorf("the stored environment is %v", got)
	}
}
