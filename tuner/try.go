package tuner

import (
	"context"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/spec"
)

// trySuffix is added to the name of a campaign for single trials, so that they
// stand beside its runs and not among them.
const trySuffix = ".try"

// Try launches, verifies and measures one configuration. The trial is kept
// with the role manual; nothing is claimed from it.
func (t *Tuner) Try(ctx context.Context, campaign *spec.Campaign, values search.Values) (store.Trial, store.Campaign, error) {
	single := *campaign
	single.Name += trySuffix
	single.Budget = spec.Budget{Trials: 1}
	r, err := t.open(ctx, &single, Options{NewRun: true, single: true})
	if err != nil {
		return store.Trial{}, store.Campaign{}, err
	}
	defer r.close()
	trial, outcome := r.try(r.context, values)
	return trial, outcome.Campaign, nil
}

func (r *run) try(ctx context.Context, values search.Values) (store.Trial, Outcome) {
	outcome := r.end(ctx, func() error {
		if err := r.add(ctx, proposal{role: store.RoleManual, values: values, reason: "asked for"}); err != nil {
			return err
		}
		for !r.trials[0].State.Ended() {
			if err := r.runNext(ctx); err != nil {
				return err
			}
		}
		if r.trials[0].State != store.TrialComplete {
			return failed{cause: failureText(&r.trials[0])}
		}
		return concluded{}
	})
	if len(r.trials) == 0 {
		return store.Trial{}, outcome
	}
	return r.trials[0], outcome
}
