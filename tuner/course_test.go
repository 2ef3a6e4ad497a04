package tuner_test

import (
	"context"
	"testing"

	"nocturne/runners"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// loadingHost tells the phases of a load before each trial.
type loadingHost struct{ *fakeHost }

func (h loadingHost) Run(ctx context.Context, job runners.Job, observer runners.Observer) runners.Result {
	observer.Stage(runners.Launching)
	observer.Stage(runners.Loading)
	for _, phase := range []runners.Phase{{Name: "weights", Percent: 0}, {Name: "weights", Percent: 50}, {Name: "kv_cache", Percent: -1}} {
		observer.Phase(phase)
	}
	observer.Stage(runners.Verifying)
	return h.fakeHost.Run(ctx, job, observer)
}

// What is left of a load is told by earlier ones: of the run, and of the runs before
// it.
func TestWhatIsLeftOfALoad(t *testing.T) {
	s := openStore(t)
	estimates := func(options tuner.Options) map[int]int {
		host := loadingHost{&fakeHost{value: bowl}}
		events := &recorder{}
		run(t, newTuner(t, s, host, events), campaign(t, 2, ""), options)
		told := map[int]int{}
		for _, stage := range payloads[output.StageEntered](t, events, output.EventStage) {
			if stage.Phase == "" && stage.RemainingS != nil {
				t.Errorf("an estimate outside of loading: %+v", stage)
			}
			if stage.Phase != "" && stage.RemainingS != nil {
				if *stage.RemainingS < 0 || *stage.RemainingS > 60 {
					t.Errorf("%v s are left of a load that took an instant", *stage.RemainingS)
				}
				told[stage.Trial]++
			}
		}
		return told
	}
	first := estimates(tuner.Options{})
	if first[1] != 0 || first[2] != 3 {
		t.Errorf("estimates by trial %v, want none in the first and 3 in the second", first)
	}
	if again := estimates(tuner.Options{NewRun: true}); again[1] != 3 {
		t.Errorf("estimates by trial of the second run %v, want 3 in the first", again)
	}
}
