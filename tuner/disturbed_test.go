package tuner_test

import (
	"fmt"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// busyHost measures the bowl with a load generator whose lag, in ms, is told for
// each launch. From 50 ms on the launch is far too slow.
func busyHost(lag func(number int) float64) *fakeHost {
	return &fakeHost{measure: func(number int, job runners.Job) runners.Result {
		late := lag(number)
		value := bowl(job)
		if late >= 50 {
			value *= 0.6
		}
		metrics := runners.Metrics{"score": value, "mean_client_lag_ms": late, "mean_e2el_ms": 1000}
		return runners.Result{Outcome: runners.Complete,
			Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
	}}
}

// A fresh launch during which the host was busy with other work is measured again,
// twice at the most, and that is said. Nothing else is: not a launch of the
// search, not what is slow on a quiet host, not a host that is always busy.
func TestDisturbedFreshLaunchIsMeasuredAgain(t *testing.T) {
	// 1 baseline, 6 search and 6 fresh launches, so 8 is the first of these.
	tests := map[string]struct {
		lag   func(number int) float64
		again string // the trials measured again
	}{
		"quiet":                    {func(int) float64 { return 1 }, ""},
		"one fresh launch":         {func(n int) float64 { return map[int]float64{9: 300}[n] + 1 }, "trial 9"},
		"the same trial twice":     {func(n int) float64 { return map[int]float64{9: 300, 10: 200}[n] + 1 }, "trials 9, 9"},
		"all fresh launches":       {func(n int) float64 { return map[bool]float64{true: 80, false: 1}[n > 7] }, "trials 8, 8"},
		"always":                   {func(n int) float64 { return 80 + float64(n%3) }, ""},
		"a launch of the search":   {func(n int) float64 { return map[int]float64{4: 300}[n] + 1 }, ""},
		"less than is worth it":    {func(n int) float64 { return map[int]float64{9: 40}[n] + 1 }, ""},
		"little more than usually": {func(n int) float64 { return map[int]float64{9: 30}[n] + 60 }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, events, host := openStore(t), &recorder{}, busyHost(test.lag)
			c := campaignOf(t, fmt.Sprintf(campaignFile, "confirm: {top: 1, relaunches: 3}", 6))
			outcome := run(t, newTuner(t, s, host, events), c, tuner.Options{})
			if outcome.State != store.CampaignComplete {
				t.Fatalf("ended %s: %s", outcome.State, outcome.Cause)
			}
			var told []string
			for _, finished := range payloads[output.TrialFinished](t, events, output.EventTrialFinished) {
				if !finished.Retried {
					continue
				}
				told = append(told, fmt.Sprint(finished.Trial.Trial))
				if f := finished.Trial.Failure; finished.Trial.State != store.TrialVoid || f.Reason != "host_disturbed" || !strings.Contains(f.Message, "score was") || len(finished.Trial.Points) == 0 {
					t.Errorf("trial %d is told as %s: %+v, want void, why, and what was measured", finished.Trial.Trial, finished.Trial.State, f)
				}
			}
			show := showOf(t, s, outcome)
			_, said, _ := strings.Cut(show.Verdict.Reason, "because the host was disturbed the first time: ")
			if want := strings.TrimPrefix(strings.TrimPrefix(test.again, "trials "), "trial "); strings.Join(told, ", ") != want || said != test.again {
				t.Errorf("measured again were %v, and the verdict says %q; want %q", told, said, test.again)
			}
			if all := trials(t, s, outcome); host.count() != len(all)+len(told) {
				t.Errorf("%d launches for %d trials", host.count(), len(all))
			}
		})
	}
}

// A trial that was measured again keeps its second chance after bad luck.
func TestDisturbanceUsesUpNoSecondChance(t *testing.T) {
	s := openStore(t)
	host := busyHost(func(n int) float64 { return map[int]float64{9: 300}[n] + 1 })
	measure := host.measure
	host.measure = func(number int, job runners.Job) runners.Result {
		if number == 10 {
			return failing(runners.ClassTransient, 1, runners.ClassInfeasible, "crashed")
		}
		return measure(number, job)
	}
	outcome := run(t, newTuner(t, s, host, nil), campaignOf(t, fmt.Sprintf(campaignFile, "confirm: {top: 1, relaunches: 3}", 6)), tuner.Options{})
	for _, trial := range trials(t, s, outcome) {
		if trial.State != store.TrialComplete {
			t.Errorf("trial %d is %s", trial.Number, trial.State)
		}
	}
}
