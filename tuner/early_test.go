package tuner_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner"
)

const pcieFile = `
campaign: pcie
server: {kind: custom, command: [serve, "--port=${port}"]%s}
workload: {concurrency: 1, rounds: 1}
objective: {maximize: output_throughput}
space:
  env:
    NCCL_P2P_LEVEL: {choices: [unset, PHB, SYS]}
    NCCL_ALGO: {choices: [unset, Ring, Tree]}
%s
search: {sampler: random, recipes: %t}
seed: 7
budget: {trials: 12}
`

func TestRecipesAreEarlyTrials(t *testing.T) {
	card := runners.GPU{Name: "NVIDIA RTX PRO 6000 Blackwell Server Edition"}
	eight := runners.Hardware{GPUs: slices.Repeat([]runners.GPU{card}, 8)}
	linked := eight
	linked.Links = [][]string{{"X", "NV18"}, {"NV18", "X"}}
	protocols := "    NCCL_PROTO: {choices: [unset, LL, Simple]}"
	tests := map[string]struct {
		hardware runners.Hardware
		env      string
		space    string
		recipes  bool
		want     []string
	}{
		"the whole of it":       {eight, "", protocols, true, []string{"NCCL_ALGO=\"Ring\" NCCL_P2P_LEVEL=\"SYS\" NCCL_PROTO=\"LL\"", "NCCL_ALGO=unset NCCL_P2P_LEVEL=\"SYS\" NCCL_PROTO=\"LL\""}},
		"a part is fixed":       {eight, ", env: {NCCL_PROTO: LL}", "", true, []string{"NCCL_ALGO=\"Ring\" NCCL_P2P_LEVEL=\"SYS\"", "NCCL_ALGO=unset NCCL_P2P_LEVEL=\"SYS\""}},
		"a part is missing":     {eight, "", "", true, nil},
		"a level is missing":    {eight, "", "    NCCL_PROTO: {choices: [unset, Simple]}", true, nil},
		"a constraint rejects":  {eight, "", protocols + "\n  constraints: [NCCL_P2P_LEVEL != \"SYS\" || NCCL_ALGO != \"Ring\"]", true, []string{"NCCL_ALGO=unset NCCL_P2P_LEVEL=\"SYS\" NCCL_PROTO=\"LL\""}},
		"NVLink":                {linked, "", protocols, true, nil},
		"four GPUs":             {runners.Hardware{GPUs: eight.GPUs[:4]}, "", protocols, true, []string{"NCCL_ALGO=unset NCCL_P2P_LEVEL=\"SYS\" NCCL_PROTO=\"LL\""}},
		"none are asked for":    {eight, "", protocols, false, nil},
		"a machine without any": {runners.Hardware{}, "", protocols, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			host := measuring(func(runners.Job) runners.Metrics { return runners.Metrics{"output_throughput": 60} })
			host.hardware = test.hardware
			outcome, watched, _ := spied(t, s, host, fmt.Sprintf(pcieFile, test.env, test.space, test.recipes), nil)
			var got []string
			for i, start := range watched.last(t).Starts {
				got = append(got, start.Values.String())
				trial := trials(t, s, outcome)[1+i]
				if trial.Role != store.RoleSearch || trial.Configuration.Values.String() != got[i] || trial.Reason != start.Reason || !strings.HasPrefix(trial.Reason, "recipe: ") {
					t.Errorf("trial %d is %s %s: %s", trial.Number, trial.Role, trial.Configuration.Values, trial.Reason)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("recipes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// A sampler that sees nothing more to gain is heard: told once, and obeyed where
// the file says so.
func TestSettled(t *testing.T) {
	settle := func(ask int, proposed *search.Proposal) {
		proposed.Expected = &search.Expected{Ratio: 1.01, Interval: [2]float64{0.97, 1.05}, Improvement: 0.002, Crash: 0.1, Settled: ask > 4}
	}
	for stop, launches := range map[string]int{"budget": 12, "settled": 4} {
		t.Run(stop, func(t *testing.T) {
			s := openStore(t)
			outcome, _, events := spied(t, s, &fakeHost{value: bowl, noise: 0.003}, fmt.Sprintf(campaignFile, "search: {stop: "+stop+"}", 12), settle)
			searched, confirmed := 0, 0
			for _, trial := range trials(t, s, outcome) {
				switch trial.Role {
				case store.RoleSearch:
					searched++
					want := &store.Expected{Ratio: 1.01, Interval: [2]float64{0.97, 1.05}, Improvement: 0.002, Crash: 0.1}
					if diff := cmp.Diff(want, trial.Expected); diff != "" {
						t.Errorf("trial %d (-want +got):\n%s", trial.Number, diff)
					}
				case store.RoleConfirm:
					confirmed++
				}
			}
			told := 0
			for _, event := range events.events {
				if strings.Contains(string(event.Payload), "nothing left to gain beyond the noise") {
					told++
				}
			}
			if searched != launches || confirmed == 0 || told != 1 {
				t.Errorf("%d search trials, %d of the confirmation, told %d times; want %d, some and once", searched, confirmed, told, launches)
			}
		})
	}
}

// A model at the limits of floating point must not keep a trial from being stored.
func TestPredictionThatIsNoNumberIsLeftOut(t *testing.T) {
	s := openStore(t)
	outcome, _, _ := spied(t, s, &fakeHost{value: bowl}, fmt.Sprintf(campaignFile, "", 3), func(_ int, proposed *search.Proposal) {
		proposed.Expected = &search.Expected{Ratio: math.Inf(1), Improvement: math.NaN()}
	})
	for _, trial := range trials(t, s, outcome) {
		if trial.Expected != nil {
			t.Errorf("trial %d expects %+v", trial.Number, trial.Expected)
		}
	}
}

// A setting that moves between server.env and a knob is the same setting.
func TestFixedSettingsAreReadAsKnobsAndBack(t *testing.T) {
	const protocols = "    NCCL_PROTO: {choices: [unset, LL, Simple]}"
	fixed, free := fmt.Sprintf(pcieFile, ", env: {NCCL_PROTO: LL}", "", false), fmt.Sprintf(pcieFile, "", protocols, false)
	tests := map[string]struct {
		earlier, later string
		want           func(theirs search.Values) (string, bool)
	}{
		"fixed, then a knob": {fixed, free, func(theirs search.Values) (string, bool) {
			values := maps.Clone(theirs)
			values["NCCL_PROTO"] = search.Text("LL")
			return values.String(), true
		}},
		"a knob, then fixed": {free, fixed, func(theirs search.Values) (string, bool) {
			values := maps.Clone(theirs)
			delete(values, "NCCL_PROTO")
			return values.String(), theirs["NCCL_PROTO"] == search.Text("LL")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			host := measuring(func(runners.Job) runners.Metrics { return runners.Metrics{"output_throughput": 60} })
			earlier := run(t, newTuner(t, s, host, nil), campaignOf(t, strings.Replace(test.earlier, "campaign: pcie", "campaign: earlier", 1)), tuner.Options{})
			_, watched, _ := spied(t, s, host, test.later, nil)
			want := map[int]string{}
			for _, trial := range trials(t, s, earlier) {
				if values, ours := test.want(trial.Configuration.Values); ours {
					want[trial.Number] = values
				}
			}
			got := map[int]string{}
			for _, related := range watched.last(t).Related {
				for _, observation := range related.History {
					got[observation.Trial] = observation.Values.String()
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
