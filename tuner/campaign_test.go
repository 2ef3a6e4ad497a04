package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/store/open"
	"nocturne/tuner"
	"nocturne/tuner/output"
	"nocturne/tuner/spec"
)

const campaignFile = `
campaign: bowl
server: {kind: command, command: [measure]}
workload: {rounds: 1}
objective: {maximize: score}
%s
space:
  flags:
    --a: {int: [1, 4], default: 1}
    --b: {choices: [slow, fast], default: slow}
    --c: {choices: [p, q, r], default: p}
seed: 7
budget: {trials: %d}
`

func campaign(t *testing.T, trials int, extra string) *spec.Campaign {
	t.Helper()
	return campaignOf(t, fmt.Sprintf(campaignFile, extra, trials))
}

func campaignOf(t *testing.T, text string) *spec.Campaign {
	t.Helper()
	parsed, _, err := spec.Parse("bowl.yaml", []byte(text), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func openStore(t *testing.T) store.Store {
	t.Helper()
	s, err := open.Store(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// recorder keeps the events of a campaign.
type recorder struct {
	mutex  sync.Mutex
	events []store.Event
}

func (r *recorder) emit(_ store.Campaign, event store.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, event)
}

func (r *recorder) names() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	names := make([]string, len(r.events))
	for i, event := range r.events {
		names[i] = event.Name
	}
	return names
}

func newTuner(t *testing.T, s store.Store, host runners.Host, events *recorder) *tuner.Tuner {
	t.Helper()
	made := &tuner.Tuner{Store: s, Host: host, Log: zerolog.Nop(), LogDirectory: t.TempDir(), StoreLocation: "test"}
	if events != nil {
		made.Emit = events.emit
	}
	return made
}

func run(t *testing.T, tun *tuner.Tuner, c *spec.Campaign, options tuner.Options) tuner.Outcome {
	t.Helper()
	outcome, err := tun.Run(t.Context(), c, options)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func trials(t *testing.T, s store.Store, outcome tuner.Outcome) []store.Trial {
	t.Helper()
	found, err := s.Trials(t.Context(), outcome.Campaign.ID, store.TrialFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCampaignFindsAndConfirmsTheOptimum(t *testing.T) {
	s, events := openStore(t), &recorder{}
	host := &fakeHost{value: bowl, noise: 0.005}
	outcome := run(t, newTuner(t, s, host, events), campaign(t, 14, "current: {--a: 2}"), tuner.Options{})
	if outcome.ExitStatus != tuner.ExitImproved || outcome.State != store.CampaignComplete {
		t.Fatalf("ended %s with %d: %s", outcome.State, outcome.ExitStatus, outcome.Cause)
	}
	found := trials(t, s, outcome)
	if found[0].Role != store.RoleBaseline || found[1].Role != store.RoleCurrent {
		t.Errorf("trials 1 and 2 are %s and %s, want baseline and current", found[0].Role, found[1].Role)
	}
	show, err := output.ShowOf(t.Context(), s, outcome.Campaign)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(show.Best.Configuration.Args, " "); !strings.Contains(got, "--a 3 --b fast") {
		t.Errorf("the best configuration is %q, want --a 3 --b fast", got)
	}
	if v := show.Verdict; v.Claim != "improved" || *v.Against != "current" || len(v.Comparisons) != 2 ||
		v.Interval[0] > 100.0/72 || v.Interval[1] < 100.0/72 {
		t.Errorf("verdict %+v: want improved against current with an interval around %.3f", *v, 100.0/72)
	}
	if last := events.names(); !slices.Equal(last[len(last)-2:], []string{output.EventVerdict, output.EventCampaignFinished}) {
		t.Errorf("the last events are %v", last[len(last)-2:])
	}
}

func TestNoConfigurationTwiceButOnPurpose(t *testing.T) {
	s := openStore(t)
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaign(t, 100, ""), tuner.Options{})
	seen := map[string]int{}
	searched := 0
	for _, trial := range trials(t, s, outcome) {
		if trial.Role == store.RoleConfirm {
			if trial.RepeatOf == 0 {
				t.Errorf("trial %d is a repeat without saying of what", trial.Number)
			}
			continue
		}
		searched++
		if other := seen[trial.Configuration.Hash]; other != 0 {
			t.Errorf("trial %d repeats trial %d", trial.Number, other)
		}
		seen[trial.Configuration.Hash] = trial.Number
	}
	// F12: 24 configurations, more trials than that.
	if searched != 24 {
		t.Errorf("%d configurations were measured, want all 24 of the space", searched)
	}
}

func TestF22NoEffectIsAVerdict(t *testing.T) {
	s := openStore(t)
	outcome := run(t, newTuner(t, s, &fakeHost{value: func(runners.Job) float64 { return 80 }, noise: 0.002}, nil), campaign(t, 20, ""), tuner.Options{})
	show, err := output.ShowOf(t.Context(), s, outcome.Campaign)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.ExitStatus != tuner.ExitNoGain || show.Verdict.Claim != "no_effect" {
		t.Errorf("exit %d, claim %s (%s), want 3 and no_effect", outcome.ExitStatus, show.Verdict.Claim, show.Verdict.Reason)
	}
	if args := strings.Join(show.Best.Configuration.Args, " "); args != "--a 1 --b slow --c p" {
		t.Errorf("the best known is %q, want the baseline", args)
	}
}

// F13: what is the configuration's fault is learned and not tried again, what
// is not is tried again and taught to nobody.
func TestF13TheClassOfAFailureDecides(t *testing.T) {
	s := openStore(t)
	flaky := map[uint64]int{}
	host := &fakeHost{value: bowl}
	host.measure = func(number int, job runners.Job) runners.Result {
		if flagValue(job, "--a", "1") == "4" {
			return runners.Result{Outcome: runners.Failed, Failure: &runners.Failure{Class: runners.ClassInfeasible, Then: runners.ClassInfeasible, Reason: "out_of_memory", Message: "CUDA out of memory"}}
		}
		if flagValue(job, "--b", "slow") == "fast" && flaky[hashOf(job)] == 0 {
			flaky[hashOf(job)]++
			return runners.Result{Outcome: runners.Failed, Failure: &runners.Failure{Class: runners.ClassTransient, Retries: 2, Then: runners.ClassTransient, Reason: "port_in_use", Message: "in use"}}
		}
		return runners.Result{}
	}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{})
	crashed, attempts := 0, map[int]int{}
	for _, trial := range trials(t, s, outcome) {
		attempts[trial.Attempt]++
		if trial.Failure == nil {
			continue
		}
		if trial.Failure.Reason != "out_of_memory" || trial.Attempt != 1 {
			t.Errorf("trial %d failed for %s after %d attempts", trial.Number, trial.Failure.Reason, trial.Attempt)
		}
		crashed++
	}
	if crashed > 3 {
		t.Errorf("%d of 12 trials lie in the crashing corner, want at most 2 beyond the first evidence", crashed)
	}
	if attempts[2] == 0 {
		t.Error("no trial was tried again after a transient failure")
	}
}

func TestEnvironmentFailurePausesAndGoesOn(t *testing.T) {
	s := openStore(t)
	broken := true
	host := &fakeHost{value: bowl}
	host.measure = func(number int, _ runners.Job) runners.Result {
		if broken && number == 5 {
			return runners.Result{Outcome: runners.Failed, Failure: &runners.Failure{Class: runners.ClassEnvironment, Reason: "driver", Message: "Failed to initialize NVML"}}
		}
		return runners.Result{}
	}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{})
	if outcome.State != store.CampaignPaused || outcome.ExitStatus != tuner.ExitPaused || !strings.Contains(outcome.Cause, "NVML") {
		t.Fatalf("ended %s with %d (%s), want paused with 5 and the cause", outcome.State, outcome.ExitStatus, outcome.Cause)
	}
	broken = false
	again := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{})
	if again.Campaign.ID != outcome.Campaign.ID || again.State != store.CampaignComplete {
		t.Errorf("went on as %s, %s", again.Campaign.ID, again.State)
	}
}

func TestFailedBaselineStopsWithTheCause(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: func(int, runners.Job) runners.Result {
		return runners.Result{Outcome: runners.Failed, Failure: &runners.Failure{Class: runners.ClassInfeasible, Then: runners.ClassInfeasible, Reason: "bad_argument", Message: "unrecognized arguments: --a"}}
	}}
	outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{})
	if outcome.State != store.CampaignFailed || outcome.ExitStatus != tuner.ExitFailed || !strings.Contains(outcome.Cause, "unrecognized arguments") {
		t.Errorf("ended %s with %d: %s", outcome.State, outcome.ExitStatus, outcome.Cause)
	}
	if host.count() != 1 {
		t.Errorf("%d launches, want none after the failed baseline", host.count())
	}
}

// An interrupted campaign goes on where it was, at whatever launch that is,
// and comes to the same configurations as an undisturbed one.
func TestInterruptAtEveryLaunch(t *testing.T) {
	undisturbed := openStore(t)
	want := configurations(trials(t, undisturbed, run(t, newTuner(t, undisturbed, &fakeHost{value: bowl}, nil), campaign(t, 10, ""), tuner.Options{})))
	for stop := 1; stop <= 15; stop += 2 {
		s := openStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		host := &fakeHost{value: bowl, before: func(number int) {
			if number == stop {
				cancel()
			}
		}}
		outcome, err := newTuner(t, s, host, nil).Run(ctx, campaign(t, 10, ""), tuner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if outcome.ExitStatus != tuner.ExitInterrupted || outcome.State != store.CampaignInterrupted {
			t.Fatalf("stopped at launch %d: ended %s with %d", stop, outcome.State, outcome.ExitStatus)
		}
		host.before = nil
		final := run(t, newTuner(t, s, host, nil), campaign(t, 10, ""), tuner.Options{})
		if final.ExitStatus != tuner.ExitImproved {
			t.Errorf("stopped at launch %d: went on to %d (%s)", stop, final.ExitStatus, final.Cause)
		}
		if got := configurations(trials(t, s, final)); !slices.Equal(got, want) {
			t.Errorf("stopped at launch %d: measured\n%v\nwant\n%v", stop, got, want)
		}
	}
}

func configurations(all []store.Trial) []string {
	out := make([]string, len(all))
	for i, trial := range all {
		out[i] = fmt.Sprintf("%d %s %s %s", trial.Number, trial.Role, trial.State, trial.Configuration.Hash)
	}
	return out
}

func TestTwoTunersCannotRunOneCampaign(t *testing.T) {
	s := openStore(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	host := &fakeHost{value: bowl, before: func(number int) {
		if number == 1 {
			close(entered)
			<-leave
		}
	}}
	done := make(chan error, 1)
	first, parsed := newTuner(t, s, host, nil), campaign(t, 4, "")
	go func() {
		outcome, err := first.Run(context.WithoutCancel(t.Context()), parsed, tuner.Options{})
		if err == nil && outcome.State != store.CampaignComplete {
			err = fmt.Errorf("ended %s: %s", outcome.State, outcome.Cause)
		}
		done <- err
	}()
	select {
	case <-entered:
	case err := <-done:
		t.Fatalf("the first tuner launched nothing: %v", err)
	}
	_, err := newTuner(t, s, &fakeHost{value: bowl}, nil).Run(t.Context(), campaign(t, 4, ""), tuner.Options{})
	var leased *store.LeasedError
	if !errors.As(err, &leased) {
		t.Errorf("a second tuner got %v, want a LeasedError", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestLimitsKeepAConfigurationFromWinning(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: func(_ int, job runners.Job) runners.Result {
		latency := 100.0
		if flagValue(job, "--b", "slow") == "fast" {
			latency = 900
		}
		metrics := runners.Metrics{"score": bowl(job), "latency": latency}
		return runners.Result{Outcome: runners.Complete, Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
	}}
	text := strings.Replace(fmt.Sprintf(campaignFile, "", 20), "maximize: score}", "maximize: score, limits: {latency: {max: 500}}}", 1)
	parsed, _, err := spec.Parse("bowl.yaml", []byte(text), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outcome := run(t, newTuner(t, s, host, nil), parsed, tuner.Options{})
	show, err := output.ShowOf(t.Context(), s, outcome.Campaign)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(show.Best.Configuration.Args, " "); !strings.Contains(got, "--a 3 --b slow") {
		t.Errorf("the best configuration is %q, want --a 3 without --b fast, which breaks the limit", got)
	}
	if len(show.Limits) != 1 || show.Limits[0].Met == nil || !*show.Limits[0].Met {
		t.Errorf("limits %+v, want latency met", show.Limits)
	}
}

// parsedBudget reads a budget as the campaign file has it.
func parsedBudget(t *testing.T, text string) spec.Budget {
	t.Helper()
	file := strings.Replace(fmt.Sprintf(campaignFile, "", 40), "trials: 40", "trials: 40, "+text, 1)
	parsed, _, err := spec.Parse("bowl.yaml", []byte(file), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Budget
}
