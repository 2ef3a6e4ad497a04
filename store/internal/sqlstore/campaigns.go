package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"nocturne/store"
)

const selectCampaigns = `select id, name, run, state, cause, file, spec, spec_digest, seed, host,
	hardware_key, instance, hardware, model, model_key, workload, workload_key, objective,
	created, updated, ended, verdict from campaigns`

// scanner is a row: *sql.Row or *sql.Rows.
type scanner interface{ Scan(...any) error }

func scanCampaign(row scanner) (store.Campaign, error) {
	var c store.Campaign
	var seed string
	err := row.Scan(&c.ID, &c.Name, &c.Run, &c.State, &c.Cause, &c.File, raw{&c.Spec}, &c.SpecDigest, &seed, &c.Host,
		&c.HardwareKey, &c.Instance, raw{&c.Hardware}, &c.Model, &c.ModelKey, raw{&c.Workload}, &c.WorkloadKey, decoded{&c.Objective},
		instant{&c.Created}, instant{&c.Updated}, optionalInstant{&c.Ended}, raw{&c.Verdict})
	if err != nil {
		return c, err
	}
	c.Seed, err = strconv.ParseUint(seed, 10, 64)
	return c, err
}

// CreateCampaign adds a campaign with the next free run number.
func (s *Store) CreateCampaign(ctx context.Context, campaign store.Campaign) (stored store.Campaign, err error) {
	if campaign.ID == "" {
		campaign.ID = ulid.Make().String()
	}
	campaign.Run = 0
	if err := checkCampaign(campaign); err != nil {
		return stored, err
	}
	err = s.change(ctx, "create campaign "+campaign.Name, func(tx *transaction) error {
		if err := s.insertCampaign(ctx, tx, campaign); err != nil {
			return err
		}
		stored, err = scanCampaign(tx.QueryRowContext(ctx, selectCampaigns+" where id = $1", campaign.ID))
		return err
	})
	return stored, err
}

func checkCampaign(c store.Campaign) error {
	return errors.Join(
		checkID("campaign", c.ID),
		checkPresent("campaign", fields{"name": c.Name, "state": string(c.State)}),
		checkLabels("campaign", fields{"name": c.Name, "hardware_key": c.HardwareKey, "instance": c.Instance, "model": c.Model,
			"model_key": c.ModelKey, "workload.name": fieldOf(c.Workload, "name"), "workload_key": c.WorkloadKey, "objective": c.Objective.String()}),
		checkObjective("campaign", c.Objective),
		checkFinite("campaign", c),
	)
}

// insertCampaign adds the campaign and its lease, which is free. The run number
// is the campaign's own when that is free, otherwise (and when 0) the next one.
func (s *Store) insertCampaign(ctx context.Context, tx *transaction, c store.Campaign) error {
	row, err := s.campaignRow(c)
	if err != nil {
		return err
	}
	// Another process may take the number between the select and the insert. The
	// insert then adds nothing, and the next select sees that process's number.
	for added := int64(0); added == 0; c.Run = 0 {
		if c.Run == 0 {
			err := tx.QueryRowContext(ctx, "select coalesce(max(run), 0) + 1 from campaigns where name = $1 and instance = $2",
				text(c.Name), text(c.Instance)).Scan(&c.Run)
			if err != nil {
				return err
			}
		}
		rows := [][]column{append(row, column{"run", c.Run})}
		if added, err = tx.insert(ctx, "campaigns", rows, "on conflict (name, run, instance) do nothing"); err != nil {
			return err
		}
	}
	_, err = tx.insert(ctx, "leases", [][]column{{{"campaign_id", c.ID}}}, "")
	return err
}

func (s *Store) campaignRow(c store.Campaign) ([]column, error) {
	spec, err1 := documentOf("campaign", "spec", c.Spec)
	hardware, err2 := documentOf("campaign", "hardware", c.Hardware)
	workload, err3 := documentOf("campaign", "workload", c.Workload)
	verdict, err4 := documentOf("campaign", "verdict", c.Verdict)
	objective, err5 := jsonOf(c.Objective)
	return []column{
		{"id", c.ID},
		{"name", c.Name},
		{"state", string(c.State)},
		{"cause", c.Cause},
		{"file", c.File},
		{"spec", spec},
		{"spec_digest", c.SpecDigest},
		{"seed", strconv.FormatUint(c.Seed, 10)},
		{"host", c.Host},
		{"hardware_key", c.HardwareKey},
		{"instance", c.Instance},
		{"hardware", hardware},
		{"model", c.Model},
		{"model_key", c.ModelKey},
		{"workload", workload},
		{"workload_name", fieldOf(c.Workload, "name")},
		{"workload_key", c.WorkloadKey},
		{"objective", objective},
		{"group_key", groupKey(c.HardwareKey, c.Model, c.ModelKey, c.WorkloadKey, c.Objective)},
		{"created", s.orNow(c.Created)},
		{"updated", s.orNow(c.Updated)},
		{"ended", s.optional(c.Ended)},
		{"verdict", verdict},
	}, errors.Join(err1, err2, err3, err4, err5)
}

// UpdateCampaign changes the fields of a campaign that change names.
func (s *Store) UpdateCampaign(ctx context.Context, lease store.Lease, change store.CampaignChange) error {
	columns, err := s.changedColumns(change)
	if err != nil {
		return err
	}
	return s.change(ctx, "update campaign "+lease.CampaignID, func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		if change.HardwareKey != nil {
			campaign, err := scanCampaign(tx.QueryRowContext(ctx, selectCampaigns+" where id = $1", lease.CampaignID))
			if err != nil {
				return err
			}
			columns = append(columns, column{"group_key",
				groupKey(*change.HardwareKey, campaign.Model, campaign.ModelKey, campaign.WorkloadKey, campaign.Objective)})
		}
		var values parameters
		statement := "update campaigns set " + values.assignments(columns) + " where id = " + values.add(lease.CampaignID)
		_, err := tx.ExecContext(ctx, statement, values...)
		return err
	})
}

func (s *Store) changedColumns(change store.CampaignChange) ([]column, error) {
	now := expression(s.dialect.Now)
	columns := []column{{"updated", now}}
	if change.State != nil {
		var ended any
		if change.State.Ended() {
			ended = now
		}
		columns = append(columns, column{"state", string(*change.State)}, column{"ended", ended})
	}
	for _, text := range []struct {
		column string
		value  *string
	}{{"cause", change.Cause}, {"file", change.File}, {"host", change.Host}, {"hardware_key", change.HardwareKey}} {
		if text.value != nil {
			columns = append(columns, column{text.column, *text.value})
		}
	}
	for _, document := range []struct {
		column string
		value  json.RawMessage
	}{{"spec", change.Spec}, {"hardware", change.Hardware}, {"verdict", change.Verdict}} {
		if document.value == nil {
			continue
		}
		value, err := documentOf("campaign", document.column, document.value)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column{document.column, value})
	}
	if change.HardwareKey != nil {
		return columns, checkLabels("campaign", fields{"hardware_key": *change.HardwareKey})
	}
	return columns, nil
}

// Campaigns lists campaigns, newest first.
func (s *Store) Campaigns(ctx context.Context, filter store.CampaignFilter) ([]store.Campaign, error) {
	var values parameters
	var where conditions
	if filter.Name != "" {
		where.add("name = " + values.add(filter.Name))
	}
	if len(filter.States) > 0 {
		where.add("state in " + list(&values, filter.States))
	}
	if filter.HardwareKey != "" {
		where.add("hardware_key = " + values.add(filter.HardwareKey))
	}
	if filter.Instance != "" {
		where.add("instance = " + values.add(filter.Instance))
	}
	order := " order by created desc, id desc"
	if filter.Name != "" && filter.Instance != "" {
		order = " order by run desc"
	}
	query := selectCampaigns + where.where() + order
	if filter.Limit > 0 {
		query += " limit " + values.add(filter.Limit)
	}
	campaigns, err := collect(ctx, s.Read, scanCampaign, query, values...)
	return campaigns, s.wrap("list campaigns", err)
}

// minPrefix is the shortest prefix of an id that is taken as a reference.
const minPrefix = 4

// Campaign finds a campaign by name, NAME@RUN, id or prefix of an id.
func (s *Store) Campaign(ctx context.Context, reference string) (store.Campaign, error) {
	reference = text(reference)
	lookups := []func(context.Context, string) ([]store.Campaign, error){s.campaignByName, s.campaignsByRun, s.campaignsByPrefix}
	for _, lookup := range lookups {
		found, err := lookup(ctx, reference)
		switch {
		case err != nil:
			return store.Campaign{}, s.wrap("find campaign "+reference, err)
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			ambiguous := &store.AmbiguousError{Reference: reference}
			for _, campaign := range found {
				ambiguous.IDs = append(ambiguous.IDs, campaign.ID)
			}
			return store.Campaign{}, ambiguous
		}
	}
	return store.Campaign{}, fmt.Errorf("campaign %q: %w: a name, NAME@RUN or at least %d characters of an id were expected",
		reference, store.ErrNotFound, minPrefix)
}

func (s *Store) campaignByName(ctx context.Context, reference string) ([]store.Campaign, error) {
	return collect(ctx, s.Read, scanCampaign, selectCampaigns+` where name = $1 and not exists (select 1 from campaigns later
		where later.name = campaigns.name and later.instance = campaigns.instance and later.run > campaigns.run)
		order by created desc, id desc limit 1`, reference)
}

func (s *Store) campaignsByRun(ctx context.Context, reference string) ([]store.Campaign, error) {
	at := strings.LastIndexByte(reference, '@')
	if at < 0 {
		return nil, nil
	}
	run, err := strconv.ParseInt(reference[at+1:], 10, 32)
	if err != nil {
		return nil, nil // a name with "@" in it, which is not known
	}
	return collect(ctx, s.Read, scanCampaign, selectCampaigns+" where name = $1 and run = $2 order by created desc, id desc", reference[:at], run)
}

// campaignsByPrefix asks for a range of ids, which the primary key answers.
func (s *Store) campaignsByPrefix(ctx context.Context, reference string) ([]store.Campaign, error) {
	if len(reference) < minPrefix {
		return nil, nil
	}
	prefix := strings.ToUpper(reference)
	return collect(ctx, s.Read, scanCampaign, selectCampaigns+" where id >= $1 and id < $2 order by id", prefix, prefix+"~")
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// collect returns what scan makes of each row.
func collect[T any](ctx context.Context, db querier, scan func(scanner) (T, error), query string, values ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
