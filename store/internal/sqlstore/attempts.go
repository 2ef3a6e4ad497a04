package sqlstore

import (
	"context"
	"errors"

	"nocturne/store"
)

const (
	selectAttempts     = "select a.trial_id, a.campaign_id, a.number, a.state, a.host, a.launch, a.stage, a.failure, a.started, a.ended from attempts a"
	attemptsOfCampaign = selectAttempts + " join trials t on t.id = a.trial_id where a.campaign_id = $1 order by a.started, t.number, a.number"
)

func scanAttempt(row scanner) (store.Attempt, error) {
	var a store.Attempt
	err := row.Scan(&a.TrialID, &a.CampaignID, &a.Number, &a.State, &a.Host, decoded{&a.Launch}, &a.Stage, decoded{&a.Failure},
		instant{&a.Started}, optionalInstant{&a.Ended})
	return a, err
}

// Attempts lists the attempts of a campaign's trials in order of start.
func (s *Store) Attempts(ctx context.Context, campaignID string) ([]store.Attempt, error) {
	attempts, err := collect(ctx, s.Read, scanAttempt, attemptsOfCampaign, campaignID)
	return attempts, s.wrap("list the attempts of campaign "+campaignID, err)
}

// RunningAttempts lists attempts on record as running.
func (s *Store) RunningAttempts(ctx context.Context, instance string) ([]store.Attempt, error) {
	query, values := selectAttempts+" where a.state = 'running'", parameters(nil)
	if instance != "" {
		query += " and a.campaign_id in (select id from campaigns where instance = " + values.add(instance) + ")"
	}
	attempts, err := collect(ctx, s.Read, scanAttempt, query+" order by a.started, a.trial_id", values...)
	return attempts, s.wrap("list running attempts", err)
}

func (s *Store) insertAttempts(ctx context.Context, tx *transaction, attempts []store.Attempt) error {
	var rows [][]column
	for _, attempt := range attempts {
		launch, err1 := jsonOf(attempt.Launch)
		failure, err2 := jsonOf(attempt.Failure)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		rows = append(rows, []column{
			{"trial_id", attempt.TrialID},
			{"campaign_id", attempt.CampaignID},
			{"number", attempt.Number},
			{"state", string(attempt.State)},
			{"host", attempt.Host},
			{"launch", launch},
			{"stage", string(attempt.Stage)},
			{"failure", failure},
			{"started", s.orNow(attempt.Started)},
			{"ended", s.optional(attempt.Ended)},
		})
	}
	_, err := tx.insert(ctx, "attempts", rows, "")
	return err
}
