package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"nocturne/store"
)

const (
	trialColumns = `t.id, t.campaign_id, t.number, t.state, t.role, t.configuration, coalesce(t.repeat_of, 0), t.reason, t.attempt,
	t.host, t.hardware_key, t.stack_key, t.stack, t.value, t.standard_error, t.broken_limits, t.failure, t.log_path,
	t.created, t.started, t.ended, t.loading_s, t.measuring_s, t.overhead_s, t.expected`
	selectTrials       = "select " + trialColumns + ", m.points, m.proof, m.effective from trials t left join measurements m on m.trial_id = t.id"
	selectTrialSummary = "select " + trialColumns + ", null, null, null from trials t"
)

func scanTrial(row scanner) (store.Trial, error) {
	var t store.Trial
	err := row.Scan(&t.ID, &t.CampaignID, &t.Number, &t.State, &t.Role, decoded{&t.Configuration}, &t.RepeatOf, &t.Reason, &t.Attempt,
		&t.Host, &t.HardwareKey, &t.StackKey, raw{&t.Stack}, &t.Value, &t.StandardError, decoded{&t.BrokenLimits}, decoded{&t.Failure}, &t.LogPath,
		instant{&t.Created}, optionalInstant{&t.Started}, optionalInstant{&t.Ended}, &t.LoadingS, &t.MeasuringS, &t.OverheadS, decoded{&t.Expected},
		decoded{&t.Points}, decoded{&t.Proof}, decoded{&t.Effective})
	return t, err
}

// AddTrial appends a pending trial.
func (s *Store) AddTrial(ctx context.Context, lease store.Lease, proposal store.Trial) (stored store.Trial, err error) {
	trial := store.Trial{ // what was not measured yet is nobody's to say
		ID: proposal.ID, CampaignID: lease.CampaignID, State: store.TrialPending, Role: proposal.Role,
		Configuration: proposal.Configuration, RepeatOf: proposal.RepeatOf, Reason: proposal.Reason, Expected: proposal.Expected,
		Host: proposal.Host, HardwareKey: proposal.HardwareKey, Created: proposal.Created,
	}
	if trial.ID == "" {
		trial.ID = ulid.Make().String()
	}
	if err := checkTrial(trial); err != nil {
		return stored, err
	}
	err = s.change(ctx, "add a trial to campaign "+lease.CampaignID, func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		if err := checkRepeat(ctx, tx, trial); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, "select coalesce(max(number), 0) + 1 from trials where campaign_id = $1", lease.CampaignID).Scan(&trial.Number)
		if err != nil {
			return err
		}
		if err := s.insertTrials(ctx, tx, store.Objective{}, []store.Trial{trial}); err != nil {
			return err
		}
		stored, err = scanTrial(tx.QueryRowContext(ctx, selectTrials+" where t.id = $1", trial.ID))
		return err
	})
	return stored, err
}

func checkTrial(t store.Trial) error {
	return errors.Join(
		checkID("trial", t.ID),
		checkPresent("trial", fields{"state": string(t.State), "role": string(t.Role), "configuration.hash": t.Configuration.Hash}),
		checkLabels("trial", fields{"configuration.hash": t.Configuration.Hash}),
		checkFinite("trial", t),
	)
}

// checkRepeat makes sure that measuring a configuration again is a decision,
// and that a repeat repeats what it says.
func checkRepeat(ctx context.Context, tx *transaction, trial store.Trial) error {
	hash := trial.Configuration.Hash
	if trial.RepeatOf == 0 {
		earlier := &store.RepeatError{CampaignID: trial.CampaignID, Hash: hash}
		err := tx.QueryRowContext(ctx, "select number from trials where campaign_id = $1 and configuration_hash = $2 and repeat_of is null",
			trial.CampaignID, hash).Scan(&earlier.Number)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return earlier
	}
	var repeated string
	err := tx.QueryRowContext(ctx, "select configuration_hash from trials where campaign_id = $1 and number = $2",
		trial.CampaignID, trial.RepeatOf).Scan(&repeated)
	if errors.Is(err, sql.ErrNoRows) {
		return &store.InvalidError{Record: "trial", Field: "repeat_of", Reason: fmt.Sprintf("the campaign has no trial %d", trial.RepeatOf)}
	}
	if err == nil && repeated != hash {
		return &store.InvalidError{Record: "trial", Field: "repeat_of",
			Reason: fmt.Sprintf("trial %d has configuration %s, not %s", trial.RepeatOf, repeated, hash)}
	}
	return err
}

// Trials lists trials by number.
func (s *Store) Trials(ctx context.Context, campaignID string, filter store.TrialFilter) ([]store.Trial, error) {
	query := selectTrials
	if filter.Summary {
		query = selectTrialSummary
	}
	var values parameters
	where := conditions{"t.campaign_id = " + values.add(campaignID)}
	if len(filter.States) > 0 {
		where.add("t.state in " + list(&values, filter.States))
	}
	if len(filter.Roles) > 0 {
		where.add("t.role in " + list(&values, filter.Roles))
	}
	trials, err := collect(ctx, s.Read, scanTrial, query+where.where()+" order by t.number", values...)
	return trials, s.wrap("list the trials of campaign "+campaignID, err)
}

// insertTrials adds trials with what was measured of them.
func (s *Store) insertTrials(ctx context.Context, tx *transaction, objective store.Objective, trials []store.Trial) error {
	var rows, measured [][]column
	for _, trial := range trials {
		columns, err := s.outcomeColumns(objective, trial)
		if err != nil {
			return err
		}
		expected, err := jsonOf(trial.Expected)
		if err != nil {
			return err
		}
		var repeats any
		if trial.RepeatOf != 0 {
			repeats = trial.RepeatOf
		}
		rows = append(rows, append(columns,
			column{"id", trial.ID},
			column{"campaign_id", trial.CampaignID},
			column{"number", trial.Number},
			column{"role", string(trial.Role)},
			column{"repeat_of", repeats},
			column{"reason", trial.Reason},
			column{"expected", expected},
			column{"attempt", trial.Attempt},
			column{"created", s.orNow(trial.Created)},
			column{"started", s.optional(trial.Started)},
			column{"ended", s.optional(trial.Ended)},
		))
		row, err := measurementRow(trial)
		if err != nil {
			return err
		}
		if row != nil {
			measured = append(measured, row)
		}
	}
	if _, err := tx.insert(ctx, "trials", rows, ""); err != nil {
		return err
	}
	_, err := tx.insert(ctx, "measurements", measured, "")
	return err
}

// outcomeColumns are the columns that the end of a trial sets.
func (s *Store) outcomeColumns(objective store.Objective, t store.Trial) ([]column, error) {
	configuration, err1 := jsonOf(t.Configuration)
	stack, err2 := documentOf("trial", "stack", t.Stack)
	limits, err3 := jsonOf(t.BrokenLimits)
	failure, err4 := jsonOf(t.Failure)
	return []column{
		{"state", string(t.State)},
		{"configuration", configuration},
		{"configuration_hash", t.Configuration.Hash},
		{"host", t.Host},
		{"hardware_key", t.HardwareKey},
		{"stack_key", t.StackKey},
		{"stack", stack},
		{"driver", fieldOf(t.Stack, "driver")},
		{"value", nullable(t.Value)},
		{"standard_error", nullable(t.StandardError)},
		{"score", trialScore(objective, t)},
		{"broken_limits", limits},
		{"failure", failure},
		{"log_path", t.LogPath},
		{"loading_s", nullable(t.LoadingS)},
		{"measuring_s", nullable(t.MeasuringS)},
		{"overhead_s", nullable(t.OverheadS)},
	}, errors.Join(err1, err2, err3, err4)
}

// trialScore is NULL for a trial that can never be the best.
func trialScore(objective store.Objective, t store.Trial) any {
	if t.State != store.TrialComplete || t.Value == nil || t.Role == store.RoleManual || len(t.BrokenLimits) > 0 {
		return nil
	}
	return score(objective, *t.Value)
}

func measurementRow(t store.Trial) ([]column, error) {
	points, err1 := jsonOf(t.Points)
	proof, err2 := jsonOf(t.Proof)
	effective, err3 := jsonOf(t.Effective)
	if err := errors.Join(err1, err2, err3); err != nil || points == nil && proof == nil && effective == nil {
		return nil, err
	}
	return []column{{"trial_id", t.ID}, {"points", points}, {"proof", proof}, {"effective", effective}}, nil
}
