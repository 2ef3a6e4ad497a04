package tuner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/output"
)

// observer records what a running trial does.
type observer struct {
	run     *run
	context context.Context
	trial   *store.Trial
	attempt int

	phase   string
	percent float64
	load    loadWatch
	// measured has the rounds at the load point that counts.
	measured []search.Round
}

// Launched puts the launch on record before the server starts.
func (o *observer) Launched(launch runners.Launch) error {
	return o.run.tuner.Store.RecordLaunch(o.context, o.run.lease.current(), o.trial.ID, o.attempt, launch)
}

// Stage records where the trial is, for `show` and for whoever finds the attempt
// lost, and tells how long that usually takes. A store that cannot take it now
// is no reason to give the trial up.
func (o *observer) Stage(stage runners.Stage) {
	err := o.run.tuner.Store.RecordStage(context.WithoutCancel(o.context), o.run.lease.current(), o.trial.ID, o.attempt, stage)
	if err != nil {
		o.run.tuner.Log.Warn().Err(err).Str("stage", string(stage)).Msg("the stage could not be recorded")
	}
	o.run.emit(o.context, output.EventStage, output.StageEntered{Trial: o.trial.Number, Stage: stage, UsualS: o.run.usual(stage)})
	if course, ended := o.load.stage(stage, time.Now()); ended {
		o.run.courses = newest(append(o.run.loads(o.context), course))
	}
}

// phaseStep is the progress in percent below which a phase is not told again.
const phaseStep = 10

// Phase tells progress within loading, at each new phase and at every tenth.
func (o *observer) Phase(phase runners.Phase) {
	if phase.Name == o.phase && phase.Percent < o.percent+phaseStep {
		return
	}
	o.phase, o.percent = phase.Name, phase.Percent
	o.load.phase(phase, time.Now())
	event := output.StageEntered{Trial: o.trial.Number, Stage: runners.Loading, Phase: phase.Name,
		UsualS: o.run.usual(runners.Loading), RemainingS: o.run.remaining(o.context, o.load)}
	if phase.Percent >= 0 {
		event.Percent = &phase.Percent
	}
	o.run.emit(o.context, output.EventStage, event)
}

// Round tells a round's metrics, and ends a trial that cannot win.
func (o *observer) Round(round runners.Round) runners.RoundDecision {
	measured := output.RoundMeasured{Trial: o.trial.Number, Round: round.Number, Metrics: round.Metrics}
	if points := o.run.campaign.Workload.Points; round.Point < len(points) {
		point := points[round.Point]
		measured.Concurrency = point.Concurrency
		if point.RequestRate > 0 {
			measured.RequestRate = &point.RequestRate
		}
	}
	o.run.emit(o.context, output.EventRound, measured)
	value, reported := round.Metrics[o.run.campaign.Objective.Metric]
	if round.Point != o.run.countedPoint() || !reported {
		return runners.Continue
	}
	o.measured = append(o.measured, search.Round{Value: value})
	if o.run.hopeless(o.trial, round, o.measured) {
		return runners.Prune
	}
	return runners.Continue
}

// usual is the median duration of a stage over the campaign's measured trials;
// null for stages whose duration is not kept.
func (r *run) usual(stage runners.Stage) *float64 {
	var found []float64
	for _, trial := range r.trials {
		duration := trial.LoadingS
		if stage == runners.Measuring {
			duration = trial.MeasuringS
		} else if stage != runners.Loading {
			return nil
		}
		if trial.State == store.TrialComplete && duration != nil {
			found = append(found, *duration)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return &found[len(found)/2]
}

// emit stores an event and hands it on, and reports whether it could. An event
// that cannot be stored is logged: it must not end a campaign whose trials can be.
func (r *run) emit(ctx context.Context, name string, payload any) bool {
	text, err := json.Marshal(payload)
	if err != nil {
		r.tuner.Log.Error().Err(err).Str("event", name).Msg("event could not be encoded")
		return false
	}
	event, err := r.tuner.Store.AppendEvent(context.WithoutCancel(ctx), r.record.ID, name, time.Now().UTC(), text)
	if err != nil {
		r.tuner.Log.Warn().Err(err).Str("event", name).Msg("event could not be stored")
		return false
	}
	if r.tuner.Emit != nil {
		r.tuner.Emit(r.record, event)
	}
	return true
}

func (r *run) warn(ctx context.Context, message string) {
	r.emit(ctx, output.EventWarning, output.Warning{Message: message})
}

// warnOnce tells a trial's warnings, each the first time that the campaign
// meets it: what holds for one launch mostly holds for all.
func (r *run) warnOnce(ctx context.Context, trial int, warnings []string) {
	for _, warning := range warnings {
		if r.first(warning) {
			r.warn(ctx, fmt.Sprintf("trial %d: %s", trial, warning))
		}
	}
}

// first reports whether this process has not met this before.
func (r *run) first(what string) bool {
	if r.warned[what] {
		return false
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[what] = true
	return true
}
