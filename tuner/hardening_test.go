package tuner_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

func failing(class runners.Class, retries int, then runners.Class, reason string) runners.Result {
	return runners.Result{Outcome: runners.Failed, Failure: &runners.Failure{Class: class, Retries: retries, Then: then, Reason: reason, Message: reason}}
}

func showOf(t *testing.T, s store.Store, outcome tuner.Outcome) output.Show {
	t.Helper()
	campaign, err := s.Campaign(t.Context(), outcome.Campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	show, err := output.ShowOf(t.Context(), s, campaign)
	if err != nil {
		t.Fatal(err)
	}
	return show
}

// A configuration whose bad luck outlasts its attempts is on record and says
// nothing. It must not stop the campaign by being proposed again.
func TestBadLuckThatLastsEndsNothing(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: func(_ int, job runners.Job) runners.Result {
		if flagValue(job, "--a", "1") == "2" {
			return failing(runners.ClassTransient, 1, runners.ClassTransient, "loading_timeout")
		}
		return runners.Result{}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 20, ""), tuner.Options{})
	if outcome.State != store.CampaignComplete {
		t.Errorf("ended %s: %s", outcome.State, outcome.Cause)
	}
}

func TestUnknownOutcomeIsTheHostsFault(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: func(number int, _ runners.Job) runners.Result {
		if number == 3 {
			return runners.Result{Outcome: "dreaming"}
		}
		return runners.Result{}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 4, ""), tuner.Options{})
	if outcome.State != store.CampaignPaused || !strings.Contains(outcome.Cause, "dreaming") {
		t.Errorf("ended %s: %s", outcome.State, outcome.Cause)
	}
}

// Two names for one launch: the group's empty bundle is the launch without it.
func TestTwoNamesForOneLaunchAreMeasuredOnce(t *testing.T) {
	s := openStore(t)
	c := campaignOf(t, strings.Replace(fmt.Sprintf(campaignFile, "", 100), "seed: 7", "  groups:\n    g: {choices: {plain: {args: []}, extra: {args: [--extra]}}}\nseed: 7", 1))
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), c, tuner.Options{})
	if outcome.State != store.CampaignComplete {
		t.Errorf("ended %s: %s", outcome.State, outcome.Cause)
	}
}

func TestCurrentThatIsTheBaselineIsMeasuredOnce(t *testing.T) {
	s := openStore(t)
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaign(t, 8, "current: {--a: 1}"), tuner.Options{})
	show := showOf(t, s, outcome)
	if outcome.State != store.CampaignComplete || *show.Verdict.Against != "baseline" {
		t.Errorf("ended %s against %v: %s", outcome.State, *show.Verdict.Against, outcome.Cause)
	}
}

// Without a measurement of what production runs, a gain over the baseline is
// no answer to the question that was asked.
func TestCurrentThatCannotBeMeasuredLeavesTheClaimOpen(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: func(_ int, job runners.Job) runners.Result {
		if flagValue(job, "--a", "1") == "2" && flagValue(job, "--b", "slow") == "slow" && flagValue(job, "--c", "p") == "p" {
			return failing(runners.ClassInfeasible, 0, runners.ClassInfeasible, "out_of_memory")
		}
		return runners.Result{}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, "current: {--a: 2}"), tuner.Options{})
	show := showOf(t, s, outcome)
	if outcome.ExitStatus != tuner.ExitUnconfirmed || show.Verdict.Claim != "unconfirmed" || *show.Verdict.Against != "current" {
		t.Errorf("exit %d, claim %s against %s (%s), want unconfirmed against current", outcome.ExitStatus, show.Verdict.Claim, *show.Verdict.Against, show.Verdict.Reason)
	}
}

// A finalist that runs out of memory in a fresh launch will do so in
// production: the next one takes its place, once, and the reason says so.
func TestFinalistThatCrashesInAFreshLaunchCannotWin(t *testing.T) {
	s := openStore(t)
	launches := map[uint64]int{}
	host := &fakeHost{value: bowl, noise: 0.003, measure: func(_ int, job runners.Job) runners.Result {
		launches[hashOf(job)]++
		best := flagValue(job, "--a", "1") == "3" && flagValue(job, "--b", "slow") == "fast"
		if best && launches[hashOf(job)] > 1 {
			return failing(runners.ClassInfeasible, 0, runners.ClassInfeasible, "out_of_memory")
		}
		return runners.Result{}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 23, "confirm: {top: 1, relaunches: 3}"), tuner.Options{})
	show := showOf(t, s, outcome)
	if !strings.Contains(show.Verdict.Reason, "out_of_memory") {
		t.Errorf("the reason does not name the crash: %s", show.Verdict.Reason)
	}
	if args := strings.Join(show.Best.Configuration.Args, " "); strings.Contains(args, "--a 3 --b fast") || show.Verdict.Claim == "improved" && outcome.ExitStatus != 0 {
		t.Errorf("%s crashed in a fresh launch and is the best known", args)
	}
}

// TestDisturbedFreshLaunchDoesNotCostTheFinalist: a host that was disturbed in
// one fresh launch, retries included, says nothing against the configuration.
func TestDisturbedFreshLaunchDoesNotCostTheFinalist(t *testing.T) {
	s := openStore(t)
	launches := 0
	host := &fakeHost{value: bowl, noise: 0.003, measure: func(_ int, job runners.Job) runners.Result {
		if flagValue(job, "--a", "1") != "3" || flagValue(job, "--b", "slow") != "fast" {
			return runners.Result{}
		}
		if launches++; launches > 1 && launches < 5 {
			disturbed := failing(runners.ClassTransient, 2, runners.ClassTransient, "client_limited")
			disturbed.Outcome = runners.Invalid
			return disturbed
		}
		return runners.Result{}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 23, "confirm: {top: 1, relaunches: 4}"), tuner.Options{})
	show := showOf(t, s, outcome)
	if args := strings.Join(show.Best.Configuration.Args, " "); !strings.Contains(args, "--a 3 --b fast") || show.Verdict.Claim != "improved" {
		t.Errorf("best %s, claim %s (%s)", args, show.Verdict.Claim, show.Verdict.Reason)
	}
}

func TestTimeThatEndsBeforeTheConfirmationIsUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		host := &fakeHost{value: bowl, measure: func(number int, job runners.Job) runners.Result {
			duration := 10 * time.Minute
			if number == 8 {
				duration = 4 * time.Hour // a stall that eats the reserve
			}
			time.Sleep(duration)
			metrics := runners.Metrics{"score": bowl(job)}
			return runners.Result{Outcome: runners.Complete, Loading: duration,
				Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
		}}
		c := campaign(t, 40, "")
		c.Budget = parsedBudget(t, `until: 2000-01-01T04:00:00Z`)
		outcome := run(t, newTuner(t, s, host, nil), c, tuner.Options{})
		show := showOf(t, s, outcome)
		if outcome.ExitStatus != tuner.ExitUnconfirmed || show.Verdict.Claim != "unconfirmed" || show.Best == nil {
			t.Errorf("exit %d, claim %s (%s)", outcome.ExitStatus, show.Verdict.Claim, show.Verdict.Reason)
		}
	})
}

// After a stop with little time left the campaign still concludes.
func TestResumeWithTooLittleTimeConcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		var started []time.Time
		host := slowHost(&started)
		host.before = func(number int) {
			if number == 10 {
				cancel()
			}
		}
		c := campaign(t, 40, "")
		c.Budget = parsedBudget(t, `until: 2000-01-01T06:00:00Z`)
		if _, err := newTuner(t, s, host, nil).Run(ctx, c, tuner.Options{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Hour)
		host.before = nil
		outcome := run(t, newTuner(t, s, host, nil), c, tuner.Options{})
		if outcome.State != store.CampaignComplete || outcome.ExitStatus != tuner.ExitUnconfirmed {
			t.Errorf("ended %s with %d: %s", outcome.State, outcome.ExitStatus, outcome.Cause)
		}
	})
}

func TestInterruptionsAreNotLosses(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl}
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		host.before = func(int) { cancel() }
		outcome, err := newTuner(t, s, host, nil).Run(ctx, campaign(t, 4, ""), tuner.Options{})
		if err != nil || outcome.State != store.CampaignInterrupted {
			t.Fatalf("ended %s, %v", outcome.State, err)
		}
	}
	host.before = nil
	if outcome := run(t, newTuner(t, s, host, nil), campaign(t, 4, ""), tuner.Options{}); outcome.State != store.CampaignComplete {
		t.Errorf("after five interruptions of the baseline: %s, %s", outcome.State, outcome.Cause)
	}
}

// absentStore is a store whose database is away for some writes.
type absentStore struct {
	store.Store
	absences atomic.Int32
}

func (a *absentStore) FinishTrial(ctx context.Context, lease store.Lease, trial store.Trial, attempt int) error {
	if a.absences.Add(-1) >= 0 {
		return fmt.Errorf("finish trial: %w", store.ErrUnavailable)
	}
	return a.Store.FinishTrial(ctx, lease, trial, attempt)
}

func TestAStoreThatIsAwayForAWhileLosesNothing(t *testing.T) {
	s := &absentStore{Store: openStore(t)}
	s.absences.Store(3)
	host := &fakeHost{value: bowl}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 4, ""), tuner.Options{})
	if outcome.State != store.CampaignComplete {
		t.Fatalf("ended %s: %s", outcome.State, outcome.Cause)
	}
	if want := len(trials(t, s, outcome)); host.count() != want {
		t.Errorf("%d launches for %d trials: a measurement was thrown away", host.count(), want)
	}
}

// A server that was upgraded in the night cannot be compared with itself.
func TestChangedServerPausesTheCampaign(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: func(number int, job runners.Job) runners.Result {
		version := "0.5.1"
		if number > 4 {
			version = "0.6.0"
		}
		metrics := runners.Metrics{"score": bowl(job)}
		return runners.Result{Outcome: runners.Complete, Stack: runners.Stack{Server: "sglang", ServerVersion: version},
			Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{})
	if outcome.State != store.CampaignPaused || !strings.Contains(outcome.Cause, "0.6.0") || !strings.Contains(outcome.Cause, "--new-run") {
		t.Errorf("ended %s: %s", outcome.State, outcome.Cause)
	}
}

// F30: what is no number is no objective, and everything else is kept.
func TestF30NonFiniteObjectiveFailsTheTrialOnly(t *testing.T) {
	s := openStore(t)
	values := []float64{60, math.Inf(1), math.NaN(), math.Inf(-1), -5, 0}
	host := &fakeHost{value: bowl, measure: func(number int, job runners.Job) runners.Result {
		if number > len(values) {
			return runners.Result{}
		}
		metrics := runners.Metrics{"score": values[number-1], "other": 1}
		return runners.Result{Outcome: runners.Complete, Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{})
	if outcome.State != store.CampaignComplete {
		t.Fatalf("ended %s: %s", outcome.State, outcome.Cause)
	}
	for _, trial := range trials(t, s, outcome)[1:6] {
		if trial.State != store.TrialFailed || trial.Value != nil {
			t.Errorf("trial %d: %s with %v", trial.Number, trial.State, trial.Value)
		}
	}
	if show := showOf(t, s, outcome); show.Best == nil || math.IsInf(*show.Best.Value, 0) {
		t.Errorf("best %+v", show.Best)
	}
}
