package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"nocturne/runners"
	"nocturne/store"
)

// ClaimTrial starts the next attempt of the pending trial with the lowest number.
func (s *Store) ClaimTrial(ctx context.Context, lease store.Lease, host string) (trial store.Trial, attempt store.Attempt, err error) {
	err = s.change(ctx, "claim a trial of campaign "+lease.CampaignID, func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		var values parameters
		statement := "update trials set attempt = attempt + 1, " + values.assignments([]column{
			{"state", string(store.TrialRunning)}, {"host", host}, {"started", expression(s.dialect.Now)},
		}) + " where id = (select id from trials where campaign_id = " + values.add(lease.CampaignID) +
			" and state = 'pending' order by number limit 1) returning id, attempt"
		err := tx.QueryRowContext(ctx, statement, values...).Scan(&attempt.TrialID, &attempt.Number)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("a pending trial: %w", store.ErrNotFound)
		}
		if err != nil {
			return err
		}
		attempt.CampaignID, attempt.Host, attempt.State = lease.CampaignID, host, store.AttemptRunning
		if err := s.insertAttempts(ctx, tx, []store.Attempt{attempt}); err != nil {
			return err
		}
		if trial, err = scanTrial(tx.QueryRowContext(ctx, selectTrials+" where t.id = $1", attempt.TrialID)); err != nil {
			return err
		}
		attempt, err = scanAttempt(tx.QueryRowContext(ctx, selectAttempts+" where a.trial_id = $1 and a.number = $2", attempt.TrialID, attempt.Number))
		return err
	})
	if err != nil {
		return store.Trial{}, store.Attempt{}, err
	}
	return trial, attempt, nil
}

// RecordLaunch stores what is needed to clean the attempt up after a crash.
func (s *Store) RecordLaunch(ctx context.Context, lease store.Lease, trialID string, attempt int, launch runners.Launch) error {
	value, err := jsonOf(launch)
	if err != nil {
		return err
	}
	return s.change(ctx, fmt.Sprintf("record the launch of trial %s (attempt %d)", trialID, attempt), func(tx *transaction) error {
		return tx.updateRunning(ctx, lease, trialID, attempt, column{"launch", value})
	})
}

// RecordStage stores where the attempt is.
func (s *Store) RecordStage(ctx context.Context, lease store.Lease, trialID string, attempt int, stage runners.Stage) error {
	return s.progress(ctx, fmt.Sprintf("record the stage of trial %s (attempt %d)", trialID, attempt), func(tx *transaction) error {
		return tx.updateRunning(ctx, lease, trialID, attempt, column{"stage", string(stage)})
	})
}

// updateRunning changes the attempt if it is the latest of a running trial.
func (tx *transaction) updateRunning(ctx context.Context, lease store.Lease, trialID string, attempt int, change column) error {
	if err := tx.hold(ctx, lease); err != nil {
		return err
	}
	if _, err := tx.runningTrial(ctx, lease.CampaignID, trialID, attempt); err != nil {
		return err
	}
	return tx.updateAttempt(ctx, trialID, attempt, change)
}

func (tx *transaction) updateAttempt(ctx context.Context, trialID string, attempt int, changes ...column) error {
	var values parameters
	statement := "update attempts set " + values.assignments(changes) +
		" where trial_id = " + values.add(trialID) + " and number = " + values.add(attempt)
	_, err := tx.ExecContext(ctx, statement, values...)
	return err
}

// runningTrial returns the trial if attempt is the latest of it and running.
func (tx *transaction) runningTrial(ctx context.Context, campaignID, trialID string, attempt int) (store.Trial, error) {
	trial, err := scanTrial(tx.QueryRowContext(ctx, selectTrialSummary+" where t.id = $1 and t.campaign_id = $2", trialID, campaignID))
	if errors.Is(err, sql.ErrNoRows) {
		return trial, fmt.Errorf("trial %s in campaign %s: %w", trialID, campaignID, store.ErrNotFound)
	}
	if err == nil && (trial.State != store.TrialRunning || trial.Attempt != attempt) {
		return trial, fmt.Errorf("trial %d is %s in attempt %d: %w", trial.Number, trial.State, trial.Attempt, store.ErrFenced)
	}
	return trial, err
}

// FinishTrial ends a running trial and its attempt.
func (s *Store) FinishTrial(ctx context.Context, lease store.Lease, trial store.Trial, attempt int) error {
	if !trial.State.Ended() {
		return &store.InvalidError{Record: "trial", Field: "state", Reason: fmt.Sprintf("is %q, which does not end a trial", trial.State)}
	}
	if err := checkFinite("trial", trial); err != nil {
		return err
	}
	return s.change(ctx, fmt.Sprintf("finish trial %s (attempt %d)", trial.ID, attempt), func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		stored, err := tx.runningTrial(ctx, lease.CampaignID, trial.ID, attempt)
		if err != nil {
			return err
		}
		if trial.Configuration.Hash == "" {
			trial.Configuration = stored.Configuration
		}
		if trial.Configuration.Hash != stored.Configuration.Hash {
			return &store.InvalidError{Record: "trial", Field: "configuration.hash",
				Reason: fmt.Sprintf("is %s, the trial was added with %s", trial.Configuration.Hash, stored.Configuration.Hash)}
		}
		trial.Role = stored.Role
		return s.endTrial(ctx, tx, lease.CampaignID, trial, attempt)
	})
}

// endTrial writes the outcome of a trial that was checked.
func (s *Store) endTrial(ctx context.Context, tx *transaction, campaignID string, trial store.Trial, attempt int) error {
	var objective store.Objective
	if err := tx.QueryRowContext(ctx, "select objective from campaigns where id = $1", campaignID).Scan(decoded{&objective}); err != nil {
		return err
	}
	columns, err := s.outcomeColumns(objective, trial)
	if err != nil {
		return err
	}
	ended := column{"ended", expression(s.dialect.Now)}
	if trial.Ended != nil {
		ended.value = s.dialect.Instant(*trial.Ended)
	}
	columns = append(columns, ended)
	if trial.Started != nil {
		columns = append(columns, column{"started", s.dialect.Instant(*trial.Started)})
	}
	var values parameters
	statement := "update trials set " + values.assignments(columns) + " where id = " + values.add(trial.ID)
	if _, err := tx.ExecContext(ctx, statement, values...); err != nil {
		return err
	}
	row, err := measurementRow(trial)
	if err != nil {
		return err
	}
	if row != nil {
		if _, err := tx.insert(ctx, "measurements", [][]column{row}, ""); err != nil {
			return err
		}
	}
	state := store.AttemptComplete
	if trial.State == store.TrialLost {
		state = store.AttemptLost
	}
	return tx.endAttempt(ctx, trial.ID, attempt, state, trial.Failure, ended)
}

// RequeueTrial ends the attempt and makes the trial pending again.
func (s *Store) RequeueTrial(ctx context.Context, lease store.Lease, trialID string, attempt int, state store.AttemptState, failure *runners.Failure) error {
	if state != store.AttemptFailed && state != store.AttemptLost {
		return &store.InvalidError{Record: "attempt", Field: "state", Reason: fmt.Sprintf("is %q, it must be failed or lost", state)}
	}
	return s.change(ctx, fmt.Sprintf("queue trial %s again (after attempt %d)", trialID, attempt), func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		if _, err := tx.runningTrial(ctx, lease.CampaignID, trialID, attempt); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update trials set state = 'pending', started = null, host = '' where id = $1", trialID)
		if err != nil {
			return err
		}
		return tx.endAttempt(ctx, trialID, attempt, state, failure, column{"ended", expression(s.dialect.Now)})
	})
}

func (tx *transaction) endAttempt(ctx context.Context, trialID string, attempt int, state store.AttemptState, failure *runners.Failure, ended column) error {
	value, err := jsonOf(failure)
	if err != nil {
		return err
	}
	return tx.updateAttempt(ctx, trialID, attempt, column{"state", string(state)}, column{"failure", value}, ended)
}
