package tuner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"nocturne/runners"
	"nocturne/runners/fingerprint"
	"nocturne/runners/servers"
	"nocturne/store"
	"nocturne/tuner/output"
)

// add queues a proposed trial.
func (r *run) add(ctx context.Context, proposed proposal) error {
	configuration, err := r.campaign.Configuration(proposed.values, r.facts())
	if err != nil {
		return fmt.Errorf("configuration of a %s trial: %w", proposed.role, err)
	}
	trial, err := r.tuner.Store.AddTrial(ctx, r.lease.current(), store.Trial{
		CampaignID: r.record.ID, State: store.TrialPending, Role: proposed.role, Configuration: configuration,
		RepeatOf: proposed.repeatOf, Reason: proposed.reason, Expected: proposed.expected, Host: r.tuner.Host.Name(), HardwareKey: r.record.HardwareKey,
	})
	if err != nil {
		return err
	}
	r.trials = append(r.trials, trial)
	return nil
}

// runNext launches and measures the next pending trial and stores what came
// of it.
func (r *run) runNext(ctx context.Context) error {
	claimed, attempt, err := r.tuner.Store.ClaimTrial(ctx, r.lease.current(), r.tuner.Host.Name())
	if err != nil {
		return err
	}
	trial := r.trialByID(claimed.ID)
	*trial = claimed
	r.emit(ctx, output.EventTrialStarted, output.TrialStarted{
		Trial: trial.Number, ID: trial.ID, Attempt: attempt.Number, Role: trial.Role,
		Configuration: trial.Configuration, Reason: trial.Reason, Of: r.planned(),
	})
	job, err := r.job(trial, attempt.Number)
	if err != nil {
		return fmt.Errorf("trial %d: %w", trial.Number, err)
	}
	result := r.tuner.Host.Run(ctx, job, &observer{run: r, context: ctx, trial: trial, attempt: attempt.Number})
	return r.settle(ctx, trial, attempt.Number, result)
}

func (r *run) job(trial *store.Trial, attempt int) (runners.Job, error) {
	job, err := r.campaign.Job(trial.Configuration.Values, r.facts())
	if err != nil {
		return runners.Job{}, err
	}
	job.CampaignID, job.Campaign = r.record.ID, r.record.Name
	job.TrialID, job.Trial, job.Attempt = trial.ID, trial.Number, attempt
	job.Workload.Seed = r.campaign.Seed
	job.LogDirectory = filepath.Join(r.tuner.LogDirectory, r.record.Name+"@"+strconv.Itoa(r.record.Run))
	return job, nil
}

// settle stores a result. ctx may be cancelled; what was measured is stored
// all the same.
func (r *run) settle(ctx context.Context, trial *store.Trial, attempt int, result runners.Result) error {
	ctx = context.WithoutCancel(ctx)
	if result.Outcome == runners.Interrupted {
		trial.Failure = &runners.Failure{Class: runners.ClassTransient, Reason: reasonInterrupted, Message: "the tuner was asked to stop"}
		return errors.Join(context.Canceled, r.requeue(ctx, trial, attempt, store.AttemptLost))
	}
	if err := r.fill(ctx, trial, result); err != nil {
		return err
	}
	r.warnOnce(ctx, trial.Number, append(result.Warnings, r.limitsApart(trial)...))
	if changes := r.changedStack(trial); len(changes) > 0 {
		return r.withdraw(ctx, trial, attempt, changes)
	}
	if why := r.disturbance(ctx, trial); why != "" {
		return r.measureAgain(ctx, trial, attempt, why)
	}
	if trial.Failure == nil || (trial.State != store.TrialFailed && trial.State != store.TrialInvalid) {
		return r.finish(ctx, trial, attempt)
	}
	return r.settleFailure(ctx, trial, attempt)
}

// settleFailure lets the class of a failure decide: try again, learn it, or
// pause the campaign.
func (r *run) settleFailure(ctx context.Context, trial *store.Trial, attempt int) error {
	failure := trial.Failure
	again := failure.Class == runners.ClassEnvironment || r.failedAttempts(ctx, trial.ID) < failure.Retries
	if !again {
		if failure.Then != "" {
			failure.Class = failure.Then
		}
		return r.finish(ctx, trial, attempt)
	}
	told := output.TrialFinished{Trial: output.TrialOf(*trial), Retried: true}
	if err := r.requeue(ctx, trial, attempt, store.AttemptFailed); err != nil {
		return err
	}
	r.emit(ctx, output.EventTrialFinished, told)
	if failure.Class == runners.ClassEnvironment {
		return paused{cause: fmt.Sprintf("trial %d: %s: %s", trial.Number, failure.Reason, failure.Message)}
	}
	return nil
}

// failedAttempts counts the attempts that failed by bad luck. Those that the
// host spoilt do not use up a configuration's second chance.
func (r *run) failedAttempts(ctx context.Context, trialID string) int {
	attempts, err := r.tuner.Store.Attempts(ctx, r.record.ID)
	if err != nil {
		return 0
	}
	count := 0
	for _, attempt := range attempts {
		if attempt.TrialID == trialID && attempt.State == store.AttemptFailed && attempt.Failure != nil &&
			attempt.Failure.Class == runners.ClassTransient && attempt.Failure.Reason != reasonHostDisturbed {
			count++
		}
	}
	return count
}

// fill takes a result over into the trial.
func (r *run) fill(ctx context.Context, trial *store.Trial, result runners.Result) error {
	trial.State = stateOf(result.Outcome)
	trial.Failure, trial.Points, trial.Proof = result.Failure, result.Points, result.Proof
	trial.Effective, trial.LogPath = result.Effective, result.LogPath
	started, ended := result.Started.UTC(), result.Ended.UTC()
	trial.Started, trial.Ended = &started, &ended
	trial.LoadingS = seconds(result.Launching + result.Loading + result.Verifying)
	trial.MeasuringS = seconds(result.Warming + result.Measuring)
	trial.OverheadS = seconds(result.Overhead)
	if trial.State == "" || (trial.State == store.TrialFailed && trial.Failure == nil) {
		trial.State = store.TrialFailed
		trial.Failure = &runners.Failure{Class: runners.ClassEnvironment, Reason: servers.ReasonTunerError,
			Message: fmt.Sprintf("host %s answered with the outcome %q and no failure", r.tuner.Host.Name(), result.Outcome)}
	}
	if err := r.fillStack(ctx, trial, result); err != nil {
		return err
	}
	if trial.State == store.TrialComplete || trial.State == store.TrialPruned {
		r.fillValue(trial)
	}
	if trial.State == store.TrialPruned {
		r.fillBound(trial)
	}
	return nil
}

// stateOf is the state of a trial by its outcome; empty for an unknown one.
func stateOf(outcome runners.Outcome) store.TrialState {
	switch outcome {
	case runners.Complete:
		return store.TrialComplete
	case runners.Pruned:
		return store.TrialPruned
	case runners.Failed:
		return store.TrialFailed
	case runners.Invalid:
		return store.TrialInvalid
	}
	return ""
}

// fillValue computes the objective. Comparisons are ratios, so it must be a
// positive number.
func (r *run) fillValue(trial *store.Trial) {
	spoilt := dropNonFinite(trial.Points)
	value, standardError, err := objectiveValue(r.campaign.Objective, trial.Points)
	fault := func(reason, message string) {
		trial.State = store.TrialFailed
		trial.Failure = &runners.Failure{Class: runners.ClassInfeasible, Then: runners.ClassInfeasible, Reason: reason, Stage: runners.Measuring, Message: message}
	}
	switch {
	case slices.Contains(spoilt, r.campaign.Objective.Metric):
		fault(servers.ReasonNonFinite, r.campaign.Objective.Metric+" was not a finite number")
	case err != nil:
		fault(reasonMetricMissing, err.Error())
	case value <= 0:
		fault(reasonNotPositive, fmt.Sprintf("%s was measured as %g; gains are ratios, so it must be above 0", r.campaign.Objective.Metric, value))
	default:
		trial.Value, trial.StandardError = &value, standardError
		trial.BrokenLimits = brokenLimits(r.campaign.Objective, trial.Points)
	}
}

// dropNonFinite removes what is no number from the metrics and names it: the
// store refuses it, and JSON has no word for it.
func dropNonFinite(points []runners.PointResult) (names []string) {
	drop := func(metrics runners.Metrics) {
		for name, value := range metrics {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				delete(metrics, name)
				names = append(names, name)
			}
		}
	}
	for _, point := range points {
		drop(point.Metrics)
		for _, round := range point.Rounds {
			drop(round.Metrics)
		}
	}
	return names
}

// fillStack completes the host's stack with what the server told, and a
// simulated machine's hardware with what the simulation declares. A launch that
// never came to tell says nothing of the machine.
func (r *run) fillStack(ctx context.Context, trial *store.Trial, result runners.Result) error {
	if result.Simulated == nil && r.isSimulated() {
		trial.HardwareKey = r.record.HardwareKey
		return nil
	}
	host := runners.Fingerprint{Hardware: r.hardware, Stack: r.stack}
	if result.Simulated != nil {
		host = fingerprint.Simulate(host, *result.Simulated)
	}
	stack := mergeStack(host.Stack, result.Stack)
	stack.Model = r.campaign.Model
	stack.Key = fingerprint.StackKey(stack)
	text, err := json.Marshal(stack)
	if err != nil {
		return err
	}
	trial.Stack, trial.StackKey, trial.HardwareKey = text, stack.Key, host.Hardware.Key
	if host.Hardware.Key == r.record.HardwareKey {
		return nil
	}
	hardware, err := json.Marshal(host.Hardware)
	if err != nil {
		return err
	}
	r.record.HardwareKey, r.record.Hardware = host.Hardware.Key, hardware
	return r.tuner.Store.UpdateCampaign(ctx, r.lease.current(), store.CampaignChange{HardwareKey: &host.Hardware.Key, Hardware: hardware})
}

// isSimulated reports whether the campaign runs on a simulated server: its
// first launch has said so, or its file does.
func (r *run) isSimulated() bool {
	var hardware runners.Hardware
	if err := json.Unmarshal(r.record.Hardware, &hardware); err == nil && hardware.Simulated {
		return true
	}
	return r.campaign.ServingScale > 1
}

// mergeStack prefers what the running server told over what the host says.
func mergeStack(host, server runners.Stack) runners.Stack {
	pick := func(preferred, other string) string {
		if preferred != "" {
			return preferred
		}
		return other
	}
	return runners.Stack{
		Driver: pick(server.Driver, host.Driver), CUDA: pick(server.CUDA, host.CUDA), NCCL: pick(server.NCCL, host.NCCL),
		Server: pick(server.Server, host.Server), ServerVersion: pick(server.ServerVersion, host.ServerVersion), Kernel: pick(server.Kernel, host.Kernel),
	}
}

// finish stores a trial that has ended and tells about it.
func (r *run) finish(ctx context.Context, trial *store.Trial, attempt int) error {
	if trial.Ended == nil {
		ended := time.Now().UTC()
		trial.Ended = &ended
	}
	if err := r.storeEnd(ctx, trial, attempt); err != nil {
		return err
	}
	finished := output.TrialFinished{Trial: output.TrialOf(*trial)}
	if baseline := r.baselineValue(); baseline != nil {
		if trial.Value != nil {
			finished.Ratio = r.ratio(*trial.Value, *baseline)
		}
		if ranking := r.ranking(); len(ranking) > 0 {
			best := ranking[0]
			finished.BestTrial, finished.BestValue, finished.BestRatio = &best.Number, best.Value, r.ratio(*best.Value, *baseline)
		}
	}
	r.emit(ctx, output.EventTrialFinished, finished)
	if trial.State == store.TrialComplete && !r.facts().Version.Known() {
		if err := r.learnFacts(ctx); err != nil {
			return err
		}
	}
	if trial.Role == store.RoleBaseline && trial.State == store.TrialComplete {
		return r.checkExpectation(ctx, trial)
	}
	return nil
}

func (r *run) baselineValue() *float64 {
	for _, trial := range r.byRole(store.RoleBaseline) {
		if trial.State == store.TrialComplete {
			return trial.Value
		}
	}
	return nil
}

func seconds(d time.Duration) *float64 {
	value := d.Seconds()
	return &value
}
