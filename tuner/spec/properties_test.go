package spec_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nocturne/nccl"
	"nocturne/search"
	"nocturne/tuner/spec"
)

// setting is one thing that a launch sets, as a knob and as a part of the base.
type setting struct {
	id    string // of the knob
	value string // as --set takes it
	knob  string // "KEY: {choices: [...]}"
	env   string // "NAME: value", for a variable
	args  []string
}

func variableSetting(name string, choices []string, value string) setting {
	return setting{id: name, value: value, knob: fmt.Sprintf("%s: {choices: [%s]}", name, quoted(choices)), env: fmt.Sprintf("%s: %q", name, value)}
}

func flagSetting(name string, choices []string, value string) setting {
	return setting{id: spec.FlagID(name), value: value, knob: fmt.Sprintf("%s: {choices: [%s]}", name, quoted(choices)), args: []string{name, value}}
}

func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(out, ", ")
}

// parts of a launch to draw from.
var (
	variables = map[string][]string{
		"NCCL_PROTO": {"LL", "Simple", "LL,Simple"}, "NCCL_ALGO": {"Ring", "Tree"}, "NCCL_NTHREADS": {"64", "128", "256", "512"},
		"NCCL_BUFFSIZE": {"1048576", "4194304", "16777216"}, "NCCL_P2P_LEVEL": {"SYS", "PHB", "PXB"}, "NCCL_P2P_DISABLE": {"1", "0"},
		"NCCL_MAX_NCHANNELS": {"1", "8", "32"}, "NCCL_LL_BUFFSIZE": {"65536", "524288"}, "MODE": {"fast", "a b", "${x"}, "CACHE": {"", "/tmp/c"},
	}
	flags = map[string][]string{
		"--page-size": {"16", "32"}, "--attention-backend": {"fa3", "flashinfer"}, "--mem-fraction": {"0.9", "0.85"},
		"--json": {`{"a":"b"}`, "-1"}, "-ngl": {"0", "99"},
	}
)

func drawSettings(t *rapid.T) []setting {
	var drawn []setting
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if choices := variables[name]; rapid.Bool().Draw(t, name) && choices[0] != "" {
			drawn = append(drawn, variableSetting(name, usable(choices), rapid.SampledFrom(usable(choices)).Draw(t, name+" value")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if choices := flags[name]; rapid.Bool().Draw(t, name) {
			drawn = append(drawn, flagSetting(name, choices, rapid.SampledFrom(choices).Draw(t, name+" value")))
		}
	}
	return drawn
}

// usable leaves out what is no placeholder.
func usable(choices []string) []string {
	return slices.DeleteFunc(slices.Clone(choices), func(choice string) bool { return strings.Contains(choice, "${") })
}

// campaignOf writes a file in which some settings are knobs and the others base,
// both in the order given.
func campaignOf(knobs, base []setting) string {
	command := []string{"python3", "-m", "server", "--port=${port}"}
	var env, envKnobs, flagKnobs []string
	for _, s := range base {
		command = append(command, s.args...)
		if s.env != "" {
			env = append(env, s.env)
		}
	}
	for _, s := range knobs {
		if s.env != "" {
			envKnobs = append(envKnobs, s.knob)
		} else {
			flagKnobs = append(flagKnobs, s.knob)
		}
	}
	envKnobs = append(envKnobs, "OTHER: {choices: [a]}")
	return file{
		command: "[" + quoted(command) + "]", env: "{" + strings.Join(env, ", ") + "}",
		space: fmt.Sprintf("{env: {%s}, flags: {%s}}", strings.Join(envKnobs, ", "), strings.Join(flagKnobs, ", ")),
	}.String()
}

// The identity of a launch depends neither on the order of the file nor on
// whether a setting is a knob or stands in server.command or server.env.
func TestIdentityIsTheLaunch(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		drawn := drawSettings(r)
		split := rapid.IntRange(0, len(drawn)).Draw(r, "split")
		first := parseDrawn(r, campaignOf(drawn, nil))
		want := identity(r, first, drawn)
		shuffled := rapid.Permutation(drawn).Draw(r, "order")
		second := parseDrawn(r, campaignOf(shuffled[:split], shuffled[split:]))
		if got := identity(r, second, shuffled[:split]); got != want {
			r.Fatalf("%s and %s for\n%s\nand\n%s", want, got, first.File, second.File)
		}
		for i, s := range drawn {
			if other := identity(r, first, slices.Delete(slices.Clone(drawn), i, i+1)); other == want {
				r.Fatalf("without %s the identity is the same", s.id)
			}
		}
	})
}

func parseDrawn(r *rapid.T, text string) *spec.Campaign {
	campaign, _, err := spec.Parse("drawn.yaml", []byte(text), spec.Options{})
	if err != nil {
		r.Fatalf("%v\nin\n%s", err, text)
	}
	return campaign
}

func identity(r *rapid.T, campaign *spec.Campaign, knobs []setting) string {
	var pairs []string
	for _, s := range knobs {
		pairs = append(pairs, s.id+"="+s.value)
	}
	values, err := campaign.ParseSettings(pairs)
	if err != nil {
		r.Fatalf("%v in\n%s", err, campaign.File)
	}
	configuration, err := campaign.Configuration(values, nccl.Context{})
	if err != nil {
		r.Fatal(err)
	}
	return configuration.Hash
}

func drawFacts(t *rapid.T) nccl.Context {
	tri := func(name string) nccl.Tri {
		return rapid.SampledFrom([]nccl.Tri{nccl.Unknown, nccl.No, nccl.Yes}).Draw(t, name)
	}
	facts := nccl.Context{NVLink: tri("nvlink"), NVSwitch: tri("nvswitch"), Nodes: rapid.IntRange(0, 2).Draw(t, "nodes"), Ranks: rapid.SampledFrom([]int{0, 2, 8}).Draw(t, "ranks")}
	if facts.NVSwitch == nccl.Yes {
		facts.NVLink = nccl.Yes
	}
	facts.Version = rapid.SampledFrom([]nccl.Version{{}, {Major: 2, Minor: 20, Patch: 5}, {Major: 2, Minor: 23, Patch: 4}, {Major: 2, Minor: 28, Patch: 9}, {Major: 2, Minor: 31, Patch: 2}}).Draw(t, "version")
	return facts
}

// What is launched is the canonical form for the NCCL at hand: the job and the
// configuration agree, and two configurations are one for the search exactly
// when they come to the same launch.
func TestLaunchesAreCanonical(t *testing.T) {
	text := file{
		env: `{NCCL_CUMEM_ENABLE: "0", BASE: "1"}`,
		space: `
  env:
    NCCL_PROTO: {choices: [LL, Simple, "^LL128"]}
    NCCL_ALGO: {choices: [Ring, Tree]}
    NCCL_NTHREADS: {choices: [96, 100, 512, 700], unsafe: true}
    NCCL_BUFFSIZE: {choices: [4MiB, 16MiB]}
    NCCL_P2P_LEVEL: {choices: [SYS, PXB]}
    NCCL_P2P_DISABLE: {choices: [0, 1]}
    NCCL_MAX_NRINGS: {choices: [4, 64]}
    NCCL_IB_TIMEOUT: {choices: [18, 22]}
    MODE: {choices: [a, b]}
  groups:
    bundle:
      choices:
        one: {env: {NCCL_LL_BUFFSIZE: 65536}, args: [--one]}
        two: {env: {NCCL_LL_BUFFSIZE: 131072, EXTRA: x}}`,
	}.String()
	plain := parse(t, text)
	rapid.Check(t, func(r *rapid.T) {
		facts := drawFacts(r)
		campaign, err := plain.WithFacts(facts)
		if err != nil {
			r.Fatal(err)
		}
		a, b := drawValues(r, campaign, "a"), drawValues(r, campaign, "b")
		canonicalA, canonicalB := checkLaunch(r, campaign, a, facts), checkLaunch(r, campaign, b, facts)
		if same := campaign.Space.Key(a) == campaign.Space.Key(b); same != (canonicalA == canonicalB) {
			r.Fatalf("keys equal: %t, canonical launches %s and %s, for\n%v\n%v", same, canonicalA, canonicalB, a, b)
		}
	})
}

func drawValues(r *rapid.T, campaign *spec.Campaign, name string) search.Values {
	values := search.Values{}
	for _, knob := range campaign.Space.Knobs() {
		values[knob.ID] = rapid.SampledFrom(knob.Levels).Draw(r, name+" "+knob.ID)
	}
	whole, err := campaign.Space.Complete(values)
	if err != nil {
		r.Fatal(err)
	}
	return whole
}

// checkLaunch checks one launch and returns the identity of its canonical form.
func checkLaunch(r *rapid.T, campaign *spec.Campaign, values search.Values, facts nccl.Context) string {
	configuration, err := campaign.Configuration(values, facts)
	if err != nil {
		r.Fatal(err)
	}
	job, err := campaign.Job(values, facts)
	if err != nil {
		r.Fatal(err)
	}
	want := maps.Clone(configuration.Env)
	maps.Copy(want, map[string]string{"NCCL_CUMEM_ENABLE": "0", "BASE": "1"})
	if !maps.Equal(job.Env, want) {
		r.Fatalf("job has %v, configuration and base %v", job.Env, want)
	}
	for _, name := range configuration.Unset {
		if _, set := job.Env[name]; set {
			r.Fatalf("%s is unset and set", name)
		}
	}
	touched := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(configuration.Env)), configuration.Unset...)))
	for _, name := range job.Prove {
		if strings.HasPrefix(name, "-") {
			continue // a flag, which is absent or among the arguments
		}
		if !slices.Contains(touched, name) {
			r.Fatalf("%s is to be proved, and is neither set nor unset", name)
		}
	}
	settings := map[string]string{}
	for name, value := range job.Env {
		if strings.HasPrefix(name, "NCCL_") && name != "NCCL_ALGO" && name != "NCCL_PROTO" && name != "NCCL_CUMEM_ENABLE" {
			settings[name] = value
		}
	}
	for name, id := range map[string]string{"NCCL_ALGO": "NCCL_ALGO", "NCCL_PROTO": "NCCL_PROTO"} {
		if _, launched := job.Env[name]; launched {
			settings[name] = values[id].String()
		}
	}
	settings["NCCL_CUMEM_ENABLE"] = "0"
	canonical, _, err := nccl.Canonical(facts, settings)
	if err != nil {
		r.Fatal(err)
	}
	for name := range settings {
		if _, acts := canonical[name]; !acts && name != "NCCL_CUMEM_ENABLE" {
			r.Fatalf("%s is launched, and NCCL would ignore it: %v", name, job.Env)
		}
	}
	if configuration.EquivalentTo != nil {
		return *configuration.EquivalentTo
	}
	return configuration.Hash
}

// A value of current, try or --set may be written in any way that means it.
func TestAnySpelling(t *testing.T) {
	spellings := map[string]map[string][]string{
		"NCCL_BUFFSIZE":  {"4194304": {"4194304", "4MiB", "4M", "0x400000", "4096K", `"4194304"`, "4_194_304", "4.194304e6"}, "16777216": {"16M", `"16MiB"`, "0x1000000"}},
		"NCCL_ALGO":      {"Ring": {"Ring", "ring", `"RING"`}, "Tree": {"tree", "TREE"}},
		"NCCL_P2P_LEVEL": {"SYS": {"SYS", "4", "5", `"SYS"`}, "PHB": {"PHB", "3"}},
		"COUNT":          {"16": {"16", "0x10", `"16"`, "16.0", "1.6e1", "0b10000", "0o20"}, "unset": {"unset"}},
		"RATIO":          {"0.5": {"0.5", ".5", "0.50", "5e-1", `"0.50"`}},
		"--mode":         {"off": {`"off"`, "'off'"}, "on": {`"on"`}},
		"--metrics":      {"true": {"true", `"true"`}, "unset": {"false", "unset"}},
		"backend":        {"fast": {"fast", `"fast"`}, "unset": {"unset"}},
	}
	space := `
  env:
    NCCL_BUFFSIZE: {choices: [4MiB, 16MiB]}
    NCCL_ALGO: {choices: [Ring, Tree]}
    NCCL_P2P_LEVEL: {choices: [SYS, PHB]}
    COUNT: {choices: [16, 32]}
    RATIO: {choices: [0.5, 1.5]}
  flags:
    --mode: {choices: ["off", "on"]}
    --metrics: {switch: true}
  groups:
    backend: {choices: {fast: {args: [--fast]}}}`
	rapid.Check(t, func(r *rapid.T) {
		var lines []string
		want := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(spellings)) {
			value := rapid.SampledFrom(slices.Sorted(maps.Keys(spellings[key]))).Draw(r, key)
			written := key
			if strings.HasPrefix(key, "--") && rapid.Bool().Draw(r, key+" by id") {
				written = spec.FlagID(key)
			}
			lines = append(lines, written+": "+rapid.SampledFrom(spellings[key][value]).Draw(r, key+" spelling"))
			want[key] = value
		}
		entries := "{" + strings.Join(rapid.Permutation(lines).Draw(r, "order"), ", ") + "}"
		campaign := parseDrawn(r, file{space: space, current: entries, try: "[" + entries + "]"}.String())
		for _, values := range []search.Values{campaign.Current, campaign.Hints[0]} {
			for key, value := range want {
				id := key
				if strings.HasPrefix(key, "--") {
					id = spec.FlagID(key)
				}
				if got := values[id].String(); got != value {
					r.Fatalf("%s is %s, want %s, in\n%s", key, got, value, entries)
				}
			}
		}
	})
}

// slots are lines of a file, each right or wrong by itself.
var slots = []struct{ right, wrong string }{
	{"campaign: night", "campaign: ni ght"},
	{"model: m", "model: off"},
	{"gpus: all", "gpus: [0, 0]"},
	{"timeouts: {loading: 20m}", "timeouts: {loading: 1200, wating: 3s}"},
	{"server:\n  kind: sglang\n  command: [serve, \"--port=${port}\"]\n  env: {A: b}", "server:\n  kind: sglang\n  command: [serve, \"--port=${port}\", \"--x=${x}\"]\n  env: {NCCL_ALGOS: Ring}"},
	{"workload: {concurrency: 1}", "workload: {concurency: 1}"},
	{"objective: {maximize: output_throughput}", "objective: {maximize: output_thruput}"},
	{"space:\n  flags: {}\n  env:", "space:\n  flogs: {}\n  env:"},
	{"    NCCL_PROTO: {choices: [LL, Simple]}", "    NCCL_PROTO: {choices: [LL, ll]}"},
	{"    NCCL_BUFFSIZE: {choices: [4MiB]}", "    NCCL_BUFFSIZE: {choices: [4MB]}"},
	{"    COUNT: {int: [1, 4]}", "    COUNT: {int: [4, 1]}"},
	{"    MODE: {choices: [a, b], default: a}", "    MODE: {choices: [a, b], default: c}"},
	{"  constraints:\n    - NCCL_PROTO != \"LL\"", "  constraints:\n    - NCCL_PROTOS != \"LL\""},
	{"try: [{MODE: a}]", "try: [{MODES: a}]"},
	{"budget: {trials: 4}", "budget: {trials: none}"},
	{"confirm: auto", "confirm: never"},
	{"seed: 1", "seed: -1"},
}

// TestFaultsComeAllAtOnce: the faults of a file with several wrong lines are the
// faults that each of them has by itself.
func TestFaultsComeAllAtOnce(t *testing.T) {
	write := func(wrong func(i int) bool) string {
		lines := make([]string, len(slots))
		for i, slot := range slots {
			lines[i] = slot.right
			if wrong(i) {
				lines[i] = slot.wrong
			}
		}
		return strings.Join(lines, "\n") + "\n"
	}
	messages := func(text string) map[string]bool {
		said := map[string]bool{}
		_, _, err := spec.Parse("night.yaml", []byte(text), spec.Options{})
		var faults spec.Faults
		errors.As(err, &faults)
		for _, fault := range faults {
			said[fault.Message] = true
		}
		return said
	}
	alone := make([]map[string]bool, len(slots))
	for i := range slots {
		if alone[i] = messages(write(func(j int) bool { return i == j })); len(alone[i]) == 0 {
			t.Fatalf("%q is accepted", slots[i].wrong)
		}
	}
	if all := messages(write(func(int) bool { return false })); len(all) > 0 {
		t.Fatalf("the right lines have faults: %v", all)
	}
	rapid.Check(t, func(r *rapid.T) {
		wrong := rapid.SliceOfN(rapid.Bool(), len(slots), len(slots)).Draw(r, "wrong")
		got, want := messages(write(func(i int) bool { return wrong[i] })), map[string]bool{}
		for i := range slots {
			if wrong[i] {
				maps.Copy(want, alone[i])
			}
		}
		if !maps.Equal(got, want) {
			r.Fatalf("got %v\nwant %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	})
}
