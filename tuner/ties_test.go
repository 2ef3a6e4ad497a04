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

// --c changes nothing. Measured first with it, the equal configuration without it
// is the one to recommend.
func TestExactTieGoesToTheConfigurationNearestTheDefault(t *testing.T) {
	const inertFirst = "try: [{--a: 3, --b: fast, --c: q}, {--a: 3, --b: fast, --c: r}]"
	for name, confirm := range map[string]string{"one finalist": "confirm: {top: 1, relaunches: 2}", "two finalists": "confirm: {top: 2, relaunches: 2}", "three finalists": "confirm: {top: 3, relaunches: 2}"} {
		t.Run(name, func(t *testing.T) {
			args, _ := bestOf(t, &fakeHost{value: bowl}, fmt.Sprintf(campaignFile, inertFirst+"\n"+confirm, 30))
			if args != "--a 3 --b fast --c p" {
				t.Errorf("the best is %q, want it without --c", args)
			}
		})
	}
}

// Without a confirmation the same holds, and of what equals the baseline it is the
// baseline.
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
