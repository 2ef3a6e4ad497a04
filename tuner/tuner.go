package tuner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/spec"
)

// Exit statuses of a campaign.
const (
	ExitImproved    = 0   // improved and confirmed
	ExitNoGain      = 3   // concluded without a gain
	ExitUnconfirmed = 4   // ended without confirmation
	ExitPaused      = 5   // paused, or the environment is at fault
	ExitInterrupted = 130 // resumable
	ExitFailed      = 1
)

// Tuner runs campaigns on one host.
type Tuner struct {
	Store store.Store
	Host  runners.Host
	Log   zerolog.Logger
	// Emit receives each event once it is stored. It must not block for long.
	Emit func(campaign store.Campaign, event store.Event)
	// NewSampler makes the sampler with a name; nil takes search.New.
	NewSampler func(name string) (search.Sampler, error)
	// LogDirectory is where server logs go, a folder for each campaign.
	LogDirectory string
	// StoreLocation names the store for people.
	StoreLocation string
}

// Options of a run.
type Options struct {
	// NewRun begins a new run although the last one is not finished, or is.
	NewRun bool
	// Expected, if set, is the id of the campaign that must be gone on with.
	Expected string

	single bool
}

// Outcome is how a run of the tuner ended.
type Outcome struct {
	Campaign   store.Campaign
	State      store.CampaignState
	ExitStatus int
	Cause      string
	// Told is false when the end could not be put on record, so that no event
	// tells of it: the store is away, or another tuner has the campaign.
	Told bool
}

// FinishedError says that the latest run of a campaign has ended.
type FinishedError struct {
	Campaign store.Campaign
}

// Error offers what can be done.
func (e *FinishedError) Error() string {
	return fmt.Sprintf("campaign %s run %d has ended (%s): see `nocturne show %s`, or begin another run with `nocturne tune FILE --new-run`",
		e.Campaign.Name, e.Campaign.Run, e.Campaign.State, e.Campaign.Name)
}

// ChangedError says that the file, or the stack, is not the one that the
// unfinished run began with.
type ChangedError struct {
	Campaign store.Campaign
	Changes  []spec.Change
}

// Error lists the differences.
func (e *ChangedError) Error() string {
	text := fmt.Sprintf("campaign %s run %d cannot go on, because what it measures has changed:", e.Campaign.Name, e.Campaign.Run)
	for _, change := range e.Changes {
		text += fmt.Sprintf("\n  %s: was %s, is %s", change.Path, change.Old, change.New)
	}
	return text + "\nundo the change, or begin another run with `nocturne tune FILE --new-run`"
}

// ElsewhereError says that the run that should go on is not the latest one of
// its campaign on this machine.
type ElsewhereError struct {
	Name  string
	Later int // the latest run on this machine; 0 when it has none
}

// Error says where it could go on.
func (e *ElsewhereError) Error() string {
	if e.Later == 0 {
		return fmt.Sprintf("this run of campaign %s belongs to another machine, or to other GPUs: resume it there", e.Name)
	}
	return fmt.Sprintf("campaign %s has a later run on this machine: only the latest one (run %d) can go on", e.Name, e.Later)
}

// UnfitError says that nothing sensible fits into the campaign's time.
type UnfitError struct {
	Cause error
}

func (e *UnfitError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *UnfitError) Unwrap() error { return e.Cause }

// StoredCampaign reads a campaign back from its record: from the text of its
// file, in the folder that it lay in.
func StoredCampaign(record store.Campaign) (*spec.Campaign, error) {
	if strings.HasSuffix(record.Name, trySuffix) {
		return nil, fmt.Errorf("%s is a single trial, which does not go on: run `nocturne try` again", record.Name)
	}
	var resolved spec.Resolved
	if err := json.Unmarshal(record.Spec, &resolved); err != nil {
		return nil, fmt.Errorf("campaign %s: stored specification: %w", record.ID, err)
	}
	name := fmt.Sprintf("%s@%d (stored)", record.Name, record.Run)
	campaign, _, err := spec.ParseStored(name, spec.StoredDirectory(resolved), []byte(record.File), spec.Options{Until: storedUntil(resolved)})
	return campaign, err
}

// storedUntil is the instant that a run was given on its command line or in its
// file, after which it launches nothing.
func storedUntil(resolved spec.Resolved) *time.Time {
	var free struct {
		Settings struct {
			Budget struct {
				Until *time.Time `json:"until"`
			} `json:"budget"`
		} `json:"settings"`
	}
	if json.Unmarshal(resolved.Free, &free) != nil {
		return nil
	}
	return free.Settings.Budget.Until
}

// Run runs a campaign to its end, or goes on with its unfinished run. Errors
// are returned only when nothing was started; whatever happens later is told
// by the Outcome.
func (t *Tuner) Run(ctx context.Context, campaign *spec.Campaign, options Options) (Outcome, error) {
	r, err := t.open(ctx, campaign, options)
	if err != nil {
		return Outcome{}, err
	}
	defer r.close()
	return r.run(r.context), nil
}

// run is one campaign while this process runs it.
type run struct {
	tuner    *Tuner
	campaign *spec.Campaign
	record   store.Campaign
	lease    *leaseKeeper
	context  context.Context
	closers  []func()

	trials   []store.Trial
	hardware runners.Hardware
	stack    runners.Stack // of the host, before a server told more
	resumed  bool
	phase    string
	warned   map[string]bool
	counted  countedSpace
	// courses are earlier loads of the model, read at the first load.
	courses     []servers.Course
	coursesRead bool
	// elsewhere is read when the search begins, see lookElsewhere.
	elsewhere elsewhere
	// single: one trial by `try`, which has no plan and no conclusion.
	single bool
}

func (r *run) close() {
	for _, release := range slices.Backward(r.closers) {
		release()
	}
}

// run is the campaign's main loop.
func (r *run) run(ctx context.Context) Outcome {
	return r.end(ctx, func() error { return r.loop(ctx) })
}

// end does the work and stores the way in which it ended.
func (r *run) end(ctx context.Context, work func() error) Outcome {
	err := work()
	outcome := r.outcome(ctx, err)
	// What is left to write must reach the store although ctx is cancelled.
	final, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if errors.Is(err, store.ErrLeaseLost) || errors.Is(context.Cause(ctx), store.ErrLeaseLost) {
		return outcome // another tuner has the campaign: write nothing
	}
	change := store.CampaignChange{State: &outcome.State, Cause: &outcome.Cause}
	if err := r.tuner.Store.UpdateCampaign(final, r.lease.current(), change); err != nil {
		r.tuner.Log.Error().Err(err).Msg("the campaign's end could not be stored")
	}
	r.record.State, r.record.Cause = outcome.State, outcome.Cause
	outcome.Told = r.emit(final, output.EventCampaignFinished, output.CampaignFinished{State: outcome.State, ExitStatus: outcome.ExitStatus, Cause: outcome.Cause})
	outcome.Campaign = r.record
	return outcome
}

// loop takes steps until the campaign is concluded or cannot go on.
func (r *run) loop(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	if r.resumed {
		if err := r.checkExpectationAgain(ctx); err != nil {
			return err
		}
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step, err := r.decide(ctx)
		if err != nil {
			return err
		}
		if step.enter != "" && step.enter != r.phase {
			r.phase = step.enter
			r.enter(ctx, step)
		}
		switch {
		case step.conclude:
			return r.conclude(ctx)
		case step.until != nil:
			err = r.wait(ctx, *step.until)
		case step.add != nil:
			err = r.add(ctx, *step.add)
		default:
			err = r.runNext(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// enter tells the phase that begins.
func (r *run) enter(ctx context.Context, step step) {
	launches := step.launches
	if step.enter == phaseSearch {
		launches = min(launches, r.searchTrials()-r.searched())
	}
	r.emit(ctx, output.EventPhase, output.PhaseEntered{Phase: step.enter, Launches: launches, Reason: step.why, Until: step.until})
}

// concluded, paused and failed carry the way in which a campaign ended through
// the loop's error.
type concluded struct{ exit int }

func (e concluded) Error() string { return "campaign concluded" }

type paused struct{ cause string }

func (e paused) Error() string { return e.cause }

type failed struct{ cause string }

func (e failed) Error() string { return e.cause }

// outcome is the one place that decides state and exit status.
func (r *run) outcome(ctx context.Context, err error) Outcome {
	var done concluded
	var pause paused
	var failure failed
	switch {
	case errors.As(err, &done):
		return Outcome{Campaign: r.record, State: store.CampaignComplete, ExitStatus: done.exit}
	case errors.As(err, &pause):
		return Outcome{Campaign: r.record, State: store.CampaignPaused, ExitStatus: ExitPaused, Cause: pause.cause}
	case errors.As(err, &failure):
		return Outcome{Campaign: r.record, State: store.CampaignFailed, ExitStatus: ExitFailed, Cause: failure.cause}
	case ctx.Err() != nil:
		cause := context.Cause(ctx).Error()
		if errors.Is(err, context.Canceled) {
			cause = "interrupted"
		}
		return Outcome{Campaign: r.record, State: store.CampaignInterrupted, ExitStatus: ExitInterrupted, Cause: cause}
	default:
		return Outcome{Campaign: r.record, State: store.CampaignPaused, ExitStatus: ExitPaused, Cause: err.Error()}
	}
}
