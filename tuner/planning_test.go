package tuner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// spaceOf is a campaign with these flags and a budget of 40 trials.
func spaceOf(extra, flags string) string {
	return fmt.Sprintf(`
campaign: small
server: {kind: command, command: [measure]}
workload: {rounds: 1}
objective: {maximize: score}
%s
space: {flags: {%s}}
seed: 7
budget: {trials: 40}
`, extra, flags)
}

// payloads are those of the events of a name.
func payloads[T any](t *testing.T, r *recorder, name string) []T {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var found []T
	for _, event := range r.events {
		if event.Name != name {
			continue
		}
		var payload T
		if err := json.Unmarshal(event.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		found = append(found, payload)
	}
	return found
}

// A space smaller than the budget: what is announced is what is done.
func TestPlanOfASmallSpaceIsWhatHappens(t *testing.T) {
	for name, test := range map[string]struct {
		current string
		search  int
	}{"baseline": {"", 5}, "baseline and current": {"current: {--a: 2}", 4}} {
		t.Run(name, func(t *testing.T) {
			s, events := openStore(t), &recorder{}
			c := campaignOf(t, spaceOf(test.current, "--a: {int: [1, 3], default: 1}, --b: {choices: [slow, fast], default: slow}"))
			outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, events), c, tuner.Options{})
			if outcome.State != store.CampaignComplete {
				t.Fatalf("ended %s: %s", outcome.State, outcome.Cause)
			}
			searched, all := 0, trials(t, s, outcome)
			for _, trial := range all {
				if trial.Role == store.RoleSearch {
					searched++
				}
			}
			made := payloads[output.PlanMade](t, events, output.EventPlan)[0].Plan
			if searched != test.search || made.Search != test.search || made.Asked != 40 || made.Launches != len(all) {
				t.Errorf("%d search trials of %d in all; planned %d of %d, want %d", searched, len(all), made.Search, made.Launches, test.search)
			}
			if of := payloads[output.TrialStarted](t, events, output.EventTrialStarted)[0].Of; of != len(all) {
				t.Errorf("trial 1 is said to be of %d, there are %d", of, len(all))
			}
			for _, phase := range payloads[output.PhaseEntered](t, events, output.EventPhase) {
				if phase.Phase == "search" && phase.Launches != test.search {
					t.Errorf("the search begins with %d launches, want %d", phase.Launches, test.search)
				}
			}
			said := false
			for _, warning := range payloads[output.Warning](t, events, output.EventWarning) {
				said = said || strings.Contains(warning.Message, "budget.trials is 40, more than the space has to offer")
			}
			if !said {
				t.Error("nobody was told that the budget is larger than the space")
			}
		})
	}
}

// With nothing to choose from no campaign begins, and nothing is left behind.
func TestNothingToTuneIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"one configuration":      {spaceOf("", "--a: {choices: [1], default: 1}"), "one configuration, which is the baseline"},
		"only current beside it": {spaceOf("current: {--a: 2}", "--a: {choices: [1, 2], default: 1}"), "the baseline and current"},
	} {
		t.Run(name, func(t *testing.T) {
			s, host := openStore(t), &fakeHost{value: bowl}
			_, err := newTuner(t, s, host, nil).Run(t.Context(), campaignOf(t, test.text), tuner.Options{})
			var unfit *tuner.UnfitError
			if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "nothing to tune") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a refusal: nothing to tune, %s", err, test.want)
			}
			if found, err := s.Campaigns(t.Context(), store.CampaignFilter{}); err != nil || len(found) > 0 || host.count() > 0 {
				t.Errorf("%d campaigns and %d launches are left (%v)", len(found), host.count(), err)
			}
		})
	}
}

// One trial is no choice between configurations.
func TestTryNeedsNoChoice(t *testing.T) {
	s, host := openStore(t), &fakeHost{value: bowl}
	c := campaignOf(t, spaceOf("", "--a: {choices: [1], default: 1}"))
	trial, _, err := newTuner(t, s, host, nil).Try(t.Context(), c, c.Baseline)
	if err != nil || trial.State != store.TrialComplete {
		t.Errorf("got a trial that is %q, %v", trial.State, err)
	}
}

// Knobs that play no part count once the first launch has told so.
func TestSpaceShrinksWhenNCCLIsKnown(t *testing.T) {
	s, events := openStore(t), &recorder{}
	host := &fakeHost{value: bowl, measure: func(_ int, job runners.Job) runners.Result {
		metrics := runners.Metrics{"score": bowl(job)}
		return runners.Result{Outcome: runners.Complete, Stack: runners.Stack{NCCL: "2.28.9"},
			Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
	}}
	text := strings.Replace(spaceOf("", "--a: {int: [1, 3], default: 1}"), "space: {", "space: {env: {NCCL_PROTO: {choices: [unset, LL, Simple]}, NCCL_NTHREADS: {choices: [unset, 128, 256]}}, ", 1)
	outcome := run(t, newTuner(t, s, host, events), campaignOf(t, text), tuner.Options{})
	started := payloads[output.TrialStarted](t, events, output.EventTrialStarted)
	if all := len(trials(t, s, outcome)); outcome.State != store.CampaignComplete || started[len(started)-1].Of != all {
		t.Errorf("ended %s; the last trial is said to be of %d, there are %d", outcome.State, started[len(started)-1].Of, all)
	}
}
