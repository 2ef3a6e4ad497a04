package tuner_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// launchTime is how long a launch of the slow host takes.
const launchTime = 20 * time.Minute

// slowHost is a host whose launches take a model's load.
func slowHost(started *[]time.Time) *fakeHost {
	host := &fakeHost{value: bowl, noise: 0.003}
	host.measure = func(_ int, job runners.Job) runners.Result {
		*started = append(*started, time.Now())
		time.Sleep(launchTime) // of the bubble's clock
		metrics := runners.Metrics{"score": bowl(job)}
		return runners.Result{
			Outcome: runners.Complete, Loading: launchTime - time.Minute, Measuring: time.Minute,
			Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}},
		}
	}
	return host
}

func TestLaunchesStayInsideTheWindow(t *testing.T) {
	tests := map[string]struct {
		budget string
		claim  string
		nights int
		search int
	}{
		// The bubble's clock begins at midnight: 7 hours hold 21 launches, 1 for
		// the baseline, 6 to confirm, 14 to search.
		"one night": {`window: "22:00-07:00 UTC"`, "improved", 1, 14},
		// The space has 23 configurations beside the baseline.
		"two nights": {`window: "22:00-07:00 UTC", nights: 2`, "improved", 2, 23},
		"an instant": {`until: 2000-01-01T06:00:00Z`, "improved", 0, 11},
		// 4 hours hold 12 launches.
		"a duration": {`time: 4h`, "improved", 0, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openStore(t)
				var started []time.Time
				c := campaign(t, 40, "")
				c.File = "" // the budget below is not that of the text
				c.Budget = parsedBudget(t, test.budget)
				c.Confirm.Auto, c.Confirm.Top, c.Confirm.Relaunches = false, 1, 3
				outcome := run(t, newTuner(t, s, slowHost(&started), nil), c, tuner.Options{})
				show, err := output.ShowOf(t.Context(), s, outcome.Campaign)
				if err != nil {
					t.Fatal(err)
				}
				if show.Verdict.Claim != test.claim {
					t.Errorf("claim %s (%s), want %s", show.Verdict.Claim, show.Verdict.Reason, test.claim)
				}
				checkTimes(t, started, test.nights)
				searched := 0
				for _, trial := range trials(t, s, outcome) {
					if trial.Role == store.RoleSearch {
						searched++
					}
				}
				if searched != test.search {
					t.Errorf("%d search trials, want %d", searched, test.search)
				}
			})
		})
	}
}

// checkTimes: every launch lies in a window, and ends before it does.
func checkTimes(t *testing.T, started []time.Time, nights int) {
	t.Helper()
	days := []int{}
	for _, start := range started {
		end := start.Add(launchTime)
		switch nights {
		case 0:
			if end.After(time.Date(2000, 1, 1, 6, 0, 0, 0, time.UTC)) {
				t.Errorf("a launch ended at %s", end)
			}
		default:
			if hour := start.UTC().Hour(); hour < 22 && hour >= 7 || end.UTC().Hour() == 7 && end.UTC().Minute() > 0 {
				t.Errorf("a launch ran from %s to %s", start, end)
			}
			if day := start.UTC().Add(2 * time.Hour).YearDay(); !slices.Contains(days, day) {
				days = append(days, day)
			}
		}
	}
	if nights > 0 && len(days) != nights {
		t.Errorf("launches in %d nights, want %d", len(days), nights)
	}
}
