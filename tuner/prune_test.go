package tuner_test

import (
	"fmt"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
)

// A trial that cannot become a finalist any more is stopped between two rounds,
// and stored with the bound that says so. What others are compared with is not.
func TestTrialsThatCannotWinAreStopped(t *testing.T) {
	for name, test := range map[string]struct {
		objective string
		value     func(runners.Job) float64
	}{
		"maximize": {"maximize: score", bowl},
		"minimize": {"minimize: score", func(job runners.Job) float64 { return 6000 / bowl(job) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			text := strings.NewReplacer("rounds: 1", "rounds: 4", "maximize: score", test.objective).Replace(fmt.Sprintf(campaignFile, "current: {--a: 2}", 16))
			host := &fakeHost{value: test.value, noise: 0.003}
			outcome := run(t, newTuner(t, s, host, nil), campaignOf(t, text), tuner.Options{})
			pruned := 0
			for _, trial := range trials(t, s, outcome) {
				if trial.State != store.TrialPruned {
					if rounds := len(trial.Points[0].Rounds); trial.State != store.TrialComplete || rounds != 4 {
						t.Errorf("trial %d (%s) is %s after %d rounds", trial.Number, trial.Role, trial.State, rounds)
					}
					continue
				}
				pruned++
				measured, best := trial.Points[0].Metrics["score"], 100.0
				beyond := *trial.Value > measured*1.005 && *trial.Value < best
				if name == "minimize" {
					beyond = *trial.Value < measured*0.995 && *trial.Value > 6000/best
				}
				if trial.Role != store.RoleSearch || !beyond || trial.StandardError != nil || len(trial.Points[0].Rounds) == 4 {
					t.Errorf("trial %d (%s) was stopped after %d rounds at %g with the bound %g", trial.Number, trial.Role, len(trial.Points[0].Rounds), measured, *trial.Value)
				}
			}
			show := showOf(t, s, outcome)
			if args := strings.Join(show.Best.Configuration.Args, " "); pruned == 0 || outcome.ExitStatus != tuner.ExitImproved || !strings.Contains(args, "--a 3 --b fast") {
				t.Errorf("%d trials were stopped; the best is %s, exit status %d", pruned, args, outcome.ExitStatus)
			}
		})
	}
}

// With one round there is nothing to stop, nor while there are fewer candidates
// than finalists.
func TestNothingIsStoppedWithoutNeed(t *testing.T) {
	tests := map[string]string{"one round": "rounds: 1", "all are finalists": "rounds: 4}\nconfirm: {top: 16, relaunches: 2"}
	for name, rounds := range tests {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			text := strings.Replace(fmt.Sprintf(campaignFile, "", 16), "rounds: 1", rounds, 1)
			outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaignOf(t, text), tuner.Options{})
			if count := showOf(t, s, outcome).Trials[string(store.TrialPruned)]; count > 0 {
				t.Errorf("%d trials were stopped", count)
			}
		})
	}
}
