package spec_test

import (
	"strings"
	"testing"

	"nocturne/tuner/spec"
)

func resolved(t *testing.T, text string) spec.Resolved {
	t.Helper()
	out, err := parse(t, text).Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What may change while a run goes on, and what may not: each change is told by
// its path.
func TestChanges(t *testing.T) {
	before := file{
		timeouts: "{loading: 20m}", current: "{MODE: b}", try: "[{MODE: a}]",
		space: `{env: {MODE: {choices: [a, b]}, LEVEL: {int: [1, 4], when: {MODE: a}}}, groups: {g: {choices: {x: {args: [--x, "1"]}}}}, speculative: {method: eagle3, draft_model: /d, steps: {int: [0, 3]}}, constraints: [LEVEL <= 3]}`,
	}.String()
	tests := map[string]struct {
		old, new    string
		fixed, free string // paths, blanks between them
	}{
		"nothing":                 {"", "", "", ""},
		"a larger budget":         {"trials: 4", "trials: 40", "", "budget.trials"},
		"a window":                {"{trials: 4}", "{trials: 4, window: 22:00-07:00 UTC}", "", "budget.window"},
		"a time":                  {"{trials: 4}", "{trials: 4, time: 2h}", "", "budget.time"},
		"the confirmation":        {"seed: 1", "seed: 1\nconfirm: {top: 2}", "", "confirm.auto confirm.relaunches confirm.top"},
		"a timeout":               {"loading: 20m", "loading: 30m", "", "timeouts.loading"},
		"the sampler":             {"seed: 1", "search: {sampler: tpe}", "", "search.sampler"},
		"a hint":                  {"try: [{MODE: a}]", "try: [{MODE: a}, {MODE: b}]", "", "try"},
		"a wider knob":            {"int: [1, 4]", "int: [1, 8]", "", "space.LEVEL"},
		"a new knob":              {"MODE: {choices", "NEW: {choices: [1]}, MODE: {choices", "", "space.NEW"},
		"a new choice of a group": {`"1"]}}`, `"1"]}, y: {args: [--x, "2"]}}`, "", "space.g"},
		"no constraint":           {", constraints: [LEVEL <= 3]", "", "", "space.constraints"},
		"more steps":              {"int: [0, 3]", "int: [0, 5]", "", "space.speculative.steps"},
		"the order of the file":   {"MODE: {choices: [a, b]}, LEVEL: {int: [1, 4], when: {MODE: a}}", "LEVEL: {int: [1, 4], when: {MODE: a}}, MODE: {choices: [a, b]}", "", ""},

		"another constraint":   {"LEVEL <= 3", "LEVEL <= 2", "space.constraints", ""},
		"a narrower knob":      {"int: [1, 4]", "int: [1, 3]", "space.LEVEL", ""},
		"a knob less":          {"groups: {g: {choices: {x: {args: [--x, \"1\"]}}}}", "groups: {h: {choices: {x: {args: [--x, \"1\"]}}}}", "space.g", "space.h"},
		"another bundle":       {`"1"]`, `"3"]`, "space.g", ""},
		"another condition":    {"when: {MODE: a}", "when: {MODE: b}", "space.LEVEL.when", ""},
		"another draft":        {"draft_model: /d", "draft_model: /e", "space.speculative.steps.sets", ""},
		"another default":      {"MODE: {choices: [a, b]}", "MODE: {choices: [a, b], default: a}", "baseline space.MODE", "try"},
		"the command":          {"[serve,", "[serve, --fast,", "baseline current server.command", ""},
		"the environment":      {"env: {}", "env: {A: b}", "baseline current server.env.A", ""},
		"the server kind":      {"kind: sglang", "kind: vllm", "baseline current server.kind", ""},
		"the workload":         {"workload: {}", "workload: {output_tokens: 64}", "workload.output_tokens", ""},
		"the objective":        {"maximize: output_throughput", "minimize: mean_tpot_ms", "objective.direction objective.metric workload.rounds.metric", ""},
		"what production runs": {"current: {MODE: b}", "current: {MODE: a}", "current", ""},
		"no current":           {"current: {MODE: b}", "", "current", ""},
		"the model":            {"seed: 1", "model: m", "model", ""},
		"the GPUs":             {"seed: 1", "gpus: [0, 1]", "gpus.all gpus.indices", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := strings.Replace(before, test.old, test.new, 1)
			if test.old != test.new && after == before {
				t.Fatalf("%q does not stand in the file", test.old)
			}
			fixed, free := spec.Changes(resolved(t, before), resolved(t, after))
			if got := pathsOf(fixed); got != test.fixed {
				t.Errorf("fixed changes %q, want %q", got, test.fixed)
			}
			if got := pathsOf(free); got != test.free {
				t.Errorf("free changes %q, want %q", got, test.free)
			}
			for _, change := range append(fixed, free...) {
				if change.Old == change.New || change.Old == "" || change.New == "" {
					t.Errorf("%s: %q and %q", change.Path, change.Old, change.New)
				}
			}
		})
	}
}

func pathsOf(changes []spec.Change) string {
	paths := make([]string, len(changes))
	for i, change := range changes {
		paths[i] = change.Path
	}
	return strings.Join(paths, " ")
}
