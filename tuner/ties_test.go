package tuner_test

import (
	"fmt"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// bestOf runs a campaign to its end and returns the arguments of its best
// configuration, with the trial that it tells as the best at its end.
func bestOf(t *testing.T, host *fakeHost, text string) (args string, show output.Show) {
	t.Helper()
	s := openStore(t)
	outcome := run(t, newTuner(t, s, host, nil), campaignOf(t, text), tuner.Options{})
	show = showOf(t, s, outcome)
	if show.Best == nil {
		t.Fatalf("ended %s without a best: %s", outcome.State, outcome.Cause)
	}
	return strings.Join(show.Best.Configuration.Args, " "), show
}

// Where nothing was confirmed, what equals the baseline is no reason to leave it.
func TestExactTieWithTheBaselineGoesToTheBaseline(t *testing.T) {
	same := func(runners.Job) float64 { return 80 }
	host := &fakeHost{value: same, measure: func(number int, job runners.Job) runners.Result {
		if number > 5 { // the confirmation measures nothing
			return failing(runners.ClassTransient, 0, runners.ClassTransient, "loading_timeout")
		}
		return runners.Result{}
	}}
	args, show := bestOf(t, host, fmt.Sprintf(campaignFile, "confirm: {top: 1, relaunches: 2}", 4))
	if show.Verdict.Claim != "unconfirmed" || args != "--a 1 --b slow --c p" {
		t.Errorf("claim %s for %q, want unconfirmed for the baseline", show.Verdict.Claim, args)
	}
}
