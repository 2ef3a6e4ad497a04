package spec_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/tuner/spec"
)

// machines are what `nocturne init` may find.
var machines = map[string]runners.Hardware{
	"nothing known": {},
	"one GPU":       {Name: "1 x A", GPUs: make([]runners.GPU, 1)},
	"PCIe":          {Name: "2 x A", GPUs: make([]runners.GPU, 2), Links: [][]string{{"X", "PHB"}, {"PHB", "X"}}},
	"NVLink":        {Name: "2 x A\ntwo lines", GPUs: make([]runners.GPU, 2), Links: [][]string{{"X", "NV18"}, {"NV18", "X"}}},
}

// ownFlags are the flags that a server documents, as far as a first file may
// tune them: the SGLang page "Server Arguments", vLLM's "Engine Arguments", the
// page of trtllm-serve, and the README of llama-server.
var ownFlags = map[string][]string{
	"sglang":   {"flag.chunked_prefill_size", "flag.num_continuous_decode_steps"},
	"vllm":     {"flag.max_num_batched_tokens", "flag.attention_backend"},
	"trtllm":   {"flag.max_num_tokens", "flag.enable_chunked_prefill"},
	"llamacpp": {"flag.threads", "flag.ubatch_size", "flag.flash_attn"},
	"custom":   {"flag.workers"},
}

// A first file tunes flags of its own server, or NCCL where GPUs talk through
// it, and its space is not smaller than its budget.
func TestExamples(t *testing.T) {
	for name, machine := range machines {
		for _, kind := range append(servers.Names(), spec.KindCommand) {
			text, err := spec.Example(kind, machine)
			if err != nil {
				t.Fatal(err)
			}
			campaign, warnings, err := spec.Parse("first.yaml", text, spec.Options{})
			if err != nil {
				t.Errorf("%s, %s: %v %v\n%s", name, kind, err, warnings, text)
				continue
			}
			talking := len(machine.GPUs) > 1 && kind != "llamacpp" || kind == spec.KindCommand
			for _, knob := range campaign.Space.Knobs() {
				ncclKnob := strings.HasPrefix(knob.ID, "NCCL_")
				if talking && !ncclKnob || !talking && !slices.Contains(ownFlags[kind], knob.ID) {
					t.Errorf("%s, %s: proposes %s; its flags are %v", name, kind, knob.ID, ownFlags[kind])
				}
			}
			if n, _ := campaign.Space.Count(t.Context()); float64(campaign.Budget.Trials) > n-1 {
				t.Errorf("%s, %s: %d trials are planned in a space of %g", name, kind, campaign.Budget.Trials, n)
			}
		}
	}
	if missing := slices.Sorted(maps.Keys(ownFlags)); !slices.Equal(missing, slices.Sorted(slices.Values(servers.Names()))) {
		t.Errorf("flags are known of the servers %v, the servers are %v", missing, servers.Names())
	}
}

func TestExampleOfAnUnknownKind(t *testing.T) {
	if _, err := spec.Example("sglan", runners.Hardware{}); err == nil || !strings.Contains(err.Error(), `"sglang"`) {
		t.Errorf("an unknown kind gave %v", err)
	}
}
