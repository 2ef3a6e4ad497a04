package tuner

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"

	"nocturne/store"
)

// How long a database may be away before a campaign pauses. What a launch of
// twenty minutes measured is worth the wait.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	patience    = 2 * time.Minute
)

// patiently repeats a write while the database cannot be reached. It reports
// whether it had to: a write whose answer was lost may have been done.
func patiently(ctx context.Context, write func() error) (repeated bool, err error) {
	backoff := retry.WithMaxDuration(patience, retry.WithCappedDuration(longestWait, retry.NewExponential(firstWait)))
	tries := 0
	err = retry.Do(ctx, backoff, func(context.Context) error {
		tries++
		err := write()
		if errors.Is(err, store.ErrUnavailable) {
			return retry.RetryableError(err)
		}
		return err
	})
	return tries > 1, err
}

// storeEnd stores a trial that has ended.
func (r *run) storeEnd(ctx context.Context, trial *store.Trial, attempt int) error {
	repeated, err := patiently(ctx, func() error { return r.tuner.Store.FinishTrial(ctx, r.lease.current(), *trial, attempt) })
	if repeated && errors.Is(err, store.ErrFenced) && r.endIsStored(ctx, trial.ID) {
		return nil
	}
	return err
}

func (r *run) endIsStored(ctx context.Context, trialID string) bool {
	trials, err := r.tuner.Store.Trials(ctx, r.record.ID, store.TrialFilter{Summary: true})
	if err != nil {
		return false
	}
	for _, trial := range trials {
		if trial.ID == trialID {
			return trial.State.Ended()
		}
	}
	return false
}

// requeue ends an attempt and makes its trial pending again.
func (r *run) requeue(ctx context.Context, trial *store.Trial, attempt int, state store.AttemptState) error {
	failure := trial.Failure
	repeated, err := patiently(ctx, func() error {
		return r.tuner.Store.RequeueTrial(ctx, r.lease.current(), trial.ID, attempt, state, failure)
	})
	if err != nil && !(repeated && errors.Is(err, store.ErrFenced)) {
		return err
	}
	trial.State, trial.Failure = store.TrialPending, nil
	return nil
}
