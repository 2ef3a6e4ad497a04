package tuner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"nocturne/runners"
	"nocturne/runners/fingerprint"
	"nocturne/runners/servers"
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/spec"
)

// open finds or creates the campaign's run and takes everything that it needs
// for itself: the lease in the store and the GPUs on the host.
func (t *Tuner) open(ctx context.Context, campaign *spec.Campaign, options Options) (*run, error) {
	found, err := t.Host.Fingerprint(ctx)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", t.Host.Name(), err)
	}
	hardware, err := hardwareUsed(found.Hardware, campaign)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", t.Host.Name(), err)
	}
	if campaign, err = forServer(ctx, t.Host, campaign); err != nil {
		return nil, &UnfitError{Cause: fmt.Errorf("host %s: %w", t.Host.Name(), err)}
	}
	r := &run{tuner: t, campaign: campaign, hardware: hardware, stack: found.Stack, single: options.single}
	if err := r.take(ctx, options); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// forServer is the campaign in the words of the server that is installed on the
// host, where its version can be told before a launch.
func forServer(ctx context.Context, host runners.Host, campaign *spec.Campaign) (*spec.Campaign, error) {
	job, err := campaign.Job(campaign.Baseline, campaign.Facts())
	if err != nil {
		return nil, fmt.Errorf("the baseline: %w", err)
	}
	version, told := servers.ParseVersion(host.ServerVersion(ctx, job))
	if !told {
		return campaign, nil
	}
	return campaign.WithServer(version)
}

// take takes the host before the store: a tuner that must not run leaves no
// record behind, and on one machine the lock says at once who is at work.
func (r *run) take(ctx context.Context, options Options) error {
	host := r.tuner.Host
	release, err := host.Lock(ctx, r.campaign.GPUs, fmt.Sprintf("campaign %s, pid %d", r.campaign.Name, os.Getpid()))
	if err != nil {
		return fmt.Errorf("campaign %s cannot run now: %w", r.campaign.Name, err)
	}
	r.closers = append(r.closers, release)
	if err := r.findOrCreate(ctx, options); err != nil {
		return err
	}
	return r.recover(ctx)
}

// hardwareUsed is the hardware of the GPUs that the campaign uses: two GPUs of
// a box are not the box. A simulated machine brings its own.
func hardwareUsed(whole runners.Hardware, campaign *spec.Campaign) (runners.Hardware, error) {
	if campaign.ServingScale > 1 {
		return whole, nil
	}
	return fingerprint.Select(whole, campaign.GPUs)
}

func (r *run) findOrCreate(ctx context.Context, options Options) error {
	resolved, err := r.campaign.Resolved()
	if err != nil {
		return err
	}
	existing, err := r.tuner.Store.Campaigns(ctx, store.CampaignFilter{Name: r.campaign.Name, Instance: r.hardware.Instance, Limit: 1})
	if err != nil {
		return err
	}
	if err := expected(existing, options.Expected, r.campaign.Name); err != nil {
		return err
	}
	if len(existing) == 0 || options.NewRun {
		return r.create(ctx, resolved)
	}
	r.record = existing[0]
	if r.record.State.Ended() {
		r.tellLateEnd(ctx)
		return &FinishedError{Campaign: r.record}
	}
	var before spec.Resolved
	if err := json.Unmarshal(r.record.Spec, &before); err != nil {
		return fmt.Errorf("campaign %s: stored specification: %w", r.record.ID, err)
	}
	if fixed, _ := spec.Changes(before, resolved); len(fixed) > 0 {
		return &ChangedError{Campaign: r.record, Changes: fixed}
	}
	r.resumed = true
	r.campaign.Seed = r.record.Seed
	if err := r.takeLease(ctx); err != nil {
		return err
	}
	if err := r.tellEnd(ctx); err != nil {
		return err
	}
	return r.reload(ctx, resolved)
}

// expected refuses to begin a new run in the place of one that must go on.
func expected(existing []store.Campaign, id, name string) error {
	switch {
	case id == "":
		return nil
	case len(existing) == 0:
		return &ElsewhereError{Name: name}
	case existing[0].ID != id:
		return &ElsewhereError{Name: name, Later: existing[0].Run}
	}
	return nil
}

// reload reads what the run has done and stores what the file now says.
func (r *run) reload(ctx context.Context, resolved spec.Resolved) error {
	trials, err := r.tuner.Store.Trials(ctx, r.record.ID, store.TrialFilter{})
	if err != nil {
		return err
	}
	r.trials = trials
	if changes := r.stackChanges(); len(changes) > 0 {
		return &ChangedError{Campaign: r.record, Changes: changes}
	}
	text, err := json.Marshal(resolved)
	if err != nil {
		return err
	}
	state, cause := store.CampaignRunning, ""
	host := r.tuner.Host.Name()
	change := store.CampaignChange{State: &state, Cause: &cause, File: &r.campaign.File, Spec: text, Host: &host}
	if err := r.tuner.Store.UpdateCampaign(ctx, r.lease.current(), change); err != nil {
		return err
	}
	r.record.State, r.record.Cause = state, cause
	return r.learnFacts(ctx)
}

// stackChanges compares the host's driver and kernel with those that the
// baseline was measured on. Simulated machines bring their own.
func (r *run) stackChanges() []spec.Change {
	baseline, known := r.baselineStack()
	if !known || r.isSimulated() {
		return nil
	}
	return stackDifferences(runners.Stack{Driver: baseline.Driver, Kernel: baseline.Kernel}, runners.Stack{Driver: r.stack.Driver, Kernel: r.stack.Kernel})
}

func (r *run) create(ctx context.Context, resolved spec.Resolved) error {
	c := r.campaign
	if !r.single {
		if _, err := r.plan(ctx); err != nil {
			return &UnfitError{Cause: err}
		}
	}
	text, err := json.Marshal(resolved)
	if err != nil {
		return err
	}
	hardware, err := json.Marshal(r.hardware)
	if err != nil {
		return err
	}
	workload, err := json.Marshal(c.Workload)
	if err != nil {
		return err
	}
	record, err := r.tuner.Store.CreateCampaign(ctx, store.Campaign{
		Name: c.Name, State: store.CampaignRunning, File: c.File, Spec: text, SpecDigest: c.Digest(), Seed: c.Seed,
		Created: time.Now().UTC(), // the clock that the budget's windows go by
		Host:    r.tuner.Host.Name(), HardwareKey: r.hardware.Key, Instance: r.hardware.Instance, Hardware: hardware,
		Model: c.Model, ModelKey: c.ModelKey(), Workload: workload, WorkloadKey: c.WorkloadKey(), Objective: c.Objective,
	})
	if err != nil {
		return err
	}
	r.record = record
	return r.takeLease(ctx)
}

// recover cleans up after this campaign's tuner that died: its launches, then
// the attempts. Launches of other campaigns are not looked at here. The host
// cleans up those that died on the GPUs it locks; others belong to the living.
func (r *run) recover(ctx context.Context) error {
	attempts, err := r.tuner.Store.RunningAttempts(ctx, r.record.Instance)
	if err != nil {
		return err
	}
	for _, attempt := range attempts {
		if attempt.CampaignID != r.record.ID {
			continue
		}
		if attempt.Launch != nil && attempt.Launch.Host == r.tuner.Host.Name() {
			if err := r.tuner.Host.Recover(ctx, *attempt.Launch); err != nil {
				return fmt.Errorf("an earlier launch is still there, and nothing may be launched beside it: %w", err)
			}
		}
		if err := r.lose(ctx, attempt); err != nil {
			return err
		}
	}
	return nil
}

// maximalLosses is how often a trial may vanish with its tuner before it is
// given up: a configuration that takes the whole host down must not do so for
// ever. The baseline, current and the confirmation are needed, and are tried
// again each time that somebody starts the tuner.
const maximalLosses = 3

// lose ends an attempt whose tuner died. The trial is queued again.
func (r *run) lose(ctx context.Context, attempt store.Attempt) error {
	trial := r.trialByID(attempt.TrialID)
	if trial == nil {
		return fmt.Errorf("attempt %d of unknown trial %s", attempt.Number, attempt.TrialID)
	}
	trial.Failure = &runners.Failure{Class: runners.ClassTransient, Reason: reasonTunerLost, Stage: attempt.Stage,
		Message: "the tuner that ran this attempt was killed or its host went down"}
	if isCandidate(trial.Role) && r.lossesOf(ctx, trial.ID) >= maximalLosses-1 {
		trial.State = store.TrialLost
		return r.finish(ctx, trial, attempt.Number)
	}
	return r.requeue(ctx, trial, attempt.Number, store.AttemptLost)
}

func (r *run) lossesOf(ctx context.Context, trialID string) int {
	attempts, err := r.tuner.Store.Attempts(ctx, r.record.ID)
	if err != nil {
		return 0
	}
	lost := 0
	for _, attempt := range attempts {
		if attempt.TrialID == trialID && attempt.State == store.AttemptLost && attempt.Failure != nil && attempt.Failure.Reason == reasonTunerLost {
			lost++
		}
	}
	return lost
}

// begin announces the campaign and its plan.
func (r *run) begin(ctx context.Context) error {
	configurations, exact := r.campaign.Space.Count(ctx)
	r.emit(ctx, output.EventCampaignStarted, output.CampaignStarted{
		Resumed: r.resumed, Store: r.tuner.StoreLocation, Host: r.tuner.Host.Name(), Hardware: r.hardware,
		Objective: output.ObjectiveOf(r.record.Objective), Knobs: len(r.campaign.Space.Knobs()),
		Configurations: configurations, Exact: exact, Seed: r.campaign.Seed, Baseline: r.campaign.Baseline, TrialsDone: r.countEnded(),
	})
	made, err := r.plan(ctx)
	if err != nil {
		// Only a run that goes on comes here. It keeps what it measured, and decide
		// does with the time that is left what can be done.
		r.warn(ctx, "the whole plan no longer fits: "+err.Error())
		return nil
	}
	r.emit(ctx, output.EventPlan, output.PlanMade{Plan: made})
	if note := made.Note(); note != "" {
		r.warn(ctx, note)
	}
	return nil
}

func (r *run) takeLease(ctx context.Context) error {
	keeper, err := keepLease(ctx, r.tuner.Store, r.record.ID, r.tuner.Log)
	if err != nil {
		var leased *store.LeasedError
		if errors.As(err, &leased) {
			return fmt.Errorf("%w; one tuner runs a campaign at a time: watch it with `nocturne show %s`, or stop that process first", err, r.record.Name)
		}
		return err
	}
	r.lease, r.context = keeper, keeper.context
	r.closers = append(r.closers, keeper.release)
	return nil
}
