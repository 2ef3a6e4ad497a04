package knowledge_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
)

func trialOf(number int, value float64, values search.Values) store.Trial {
	return store.Trial{Number: number, State: store.TrialComplete, Role: store.RoleSearch, Value: &value,
		Configuration: store.Configuration{Hash: fmt.Sprint("c1:", number), Values: values}}
}

// The space of a record has the knobs that were tried, numbers in their order, and
// knows which knob makes another one idle.
func TestRecordedSpace(t *testing.T) {
	request, err := knowledge.Recorded(store.Campaign{Seed: 3, Objective: store.Objective{Metric: "m", Direction: "minimize"}}, []store.Trial{
		trialOf(1, 10, search.Values{"NCCL_BUFFSIZE": search.Unset, "speculative.steps": search.Int(0), "attention": search.Text("fa3")}),
		trialOf(2, 12, search.Values{"NCCL_BUFFSIZE": search.Int(16 << 20), "speculative.steps": search.Int(10), "speculative.topk": search.Int(4), "attention": search.Text("fa3")}),
		trialOf(3, 11, search.Values{"NCCL_BUFFSIZE": search.Int(4 << 20), "speculative.steps": search.Int(2), "speculative.topk": search.Int(1), "attention": search.Text("a")}),
		{Number: 4, State: store.TrialPending, Configuration: store.Configuration{Values: search.Values{"unknown": search.Int(1)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `NCCL_BUFFSIZE  ordinal: unset, 4194304, 16777216, default unset
attention  categorical: "a", "fa3", default "a"
speculative.steps  ordinal: 0, 2, 10, default 0
speculative.topk  ordinal: 1, 4, default 1, only when speculative.steps in [2, 10]
`
	if got := request.Space.Describe(); got != want {
		t.Errorf("the space is\n%s\nwant\n%s", got, want)
	}
	if !request.Minimize || request.Seed != 3 || len(request.History) != 3 {
		t.Errorf("request %+v", request)
	}
}

// The baseline tells what the defaults are, whatever else was tried.
func TestRecordedDefaultsAreTheBaselines(t *testing.T) {
	baseline := trialOf(2, 10, search.Values{"steps": search.Int(1), "proto": search.Text("Simple")})
	baseline.Role = store.RoleBaseline
	request, err := knowledge.Recorded(store.Campaign{}, []store.Trial{
		trialOf(1, 11, search.Values{"steps": search.Int(0), "proto": search.Unset}), baseline,
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "proto  categorical: unset, \"Simple\", default \"Simple\"\nsteps  ordinal: 0, 1, default 1\n"
	if got := request.Space.Describe(); got != want {
		t.Errorf("the space is\n%s\nwant\n%s", got, want)
	}
}

// A measurement that the host spoilt teaches nothing of the configuration; one that
// the configuration spoilt does.
func TestF13_DisturbedTrialsTeachNothing(t *testing.T) {
	for class, want := range map[runners.Class]bool{runners.ClassTransient: false, runners.ClassInfeasible: true} {
		for _, state := range []store.TrialState{store.TrialInvalid, store.TrialFailed} {
			trial := store.Trial{Number: 1, State: state, Failure: &runners.Failure{Class: class, Reason: "client_limited"}}
			if observation, told := knowledge.Observe(&trial); told != want || told && observation.Outcome != search.Infeasible {
				t.Errorf("%s and %s: %+v, told %v", state, class, observation, told)
			}
		}
	}
}

// Whatever was tried is in the space of the record, and the search can read it.
func TestRecordedHoldsWhateverWasTried(t *testing.T) {
	value := rapid.OneOf(rapid.Just(search.Unset), rapid.Map(rapid.Int64Range(-2, 5), search.Int), rapid.Map(rapid.StringMatching("[a-c]"), search.Text),
		rapid.Map(rapid.Float64Range(-1, 1), search.Float), rapid.Map(rapid.Bool(), search.Bool))
	rapid.Check(t, func(rt *rapid.T) {
		var trials []store.Trial
		for i := range rapid.IntRange(0, 12).Draw(rt, "trials") {
			values := search.Values{}
			for _, id := range []string{"a", "b", "c"} {
				if id == "a" || rapid.IntRange(0, 3).Draw(rt, "given") > 0 {
					values[id] = value.Draw(rt, id)
				}
			}
			trials = append(trials, trialOf(i+1, rapid.Float64Range(0.5, 200).Draw(rt, "value"), values))
		}
		request, err := knowledge.Recorded(store.Campaign{Objective: store.Objective{Direction: "maximize"}}, trials)
		if (err != nil) != (len(trials) == 0) {
			rt.Fatalf("%d trials: %v", len(trials), err)
		}
		for _, trial := range trials {
			if _, err := request.Space.Complete(trial.Configuration.Values); err != nil {
				rt.Fatalf("trial %d: %v", trial.Number, err)
			}
		}
		if len(trials) > 0 {
			if _, err := search.Importances(request); err != nil && len(trials) > 1 && err != search.ErrTooLittle { //nolint:errorlint // it is returned as it is
				rt.Fatal(err)
			}
		}
	})
}
