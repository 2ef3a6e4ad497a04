package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"nocturne/store"
)

// selectUnconfirmed has the columns of selectConclusions for the best trial of a
// campaign without a conclusion.
const (
	selectConclusions = `select c.id, c.name, c.run, b.hardware_key, b.instance, b.hardware, b.stack_key, b.stack, b.driver,
		b.model, b.model_key, b.workload, b.workload_key, b.objective, b.configuration,
		b.value, b.interval_low, b.interval_high, b.speedup, b.launches, b.confirmed, b.claim, b.time
		from conclusions b join campaigns c on c.id = b.campaign_id`
	selectUnconfirmed = `select c.id, c.name, c.run, c.hardware_key, c.instance, c.hardware, t.stack_key, t.stack, t.driver,
		c.model, c.model_key, c.workload, c.workload_key, c.objective, t.configuration,
		t.value, null, null, null,
		(select count(*) from trials r where r.campaign_id = t.campaign_id and r.configuration_hash = t.configuration_hash and r.state = 'complete'),
		false, 'unconfirmed', coalesce(t.ended, t.created)
		from trials t join campaigns c on c.id = t.campaign_id`
)

func scanConclusion(row scanner) (store.Conclusion, error) {
	var c store.Conclusion
	var low, high *float64
	err := row.Scan(&c.CampaignID, &c.Campaign, &c.Run, &c.HardwareKey, &c.Instance, raw{&c.Hardware}, &c.StackKey, raw{&c.Stack}, &c.Driver,
		&c.Model, &c.ModelKey, raw{&c.Workload}, &c.WorkloadKey, decoded{&c.Objective}, decoded{&c.Configuration},
		&c.Value, &low, &high, &c.Speedup, &c.Launches, &c.Confirmed, &c.Claim, instant{&c.Time})
	if low != nil && high != nil {
		c.Interval = &[2]float64{*low, *high}
	}
	return c, err
}

// Conclude stores the campaign's conclusion, replacing an earlier one.
func (s *Store) Conclude(ctx context.Context, lease store.Lease, conclusion store.Conclusion) error {
	conclusion.CampaignID = lease.CampaignID
	if err := checkConclusion(conclusion); err != nil {
		return err
	}
	return s.change(ctx, "conclude campaign "+lease.CampaignID, func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "delete from conclusions where campaign_id = $1", lease.CampaignID); err != nil {
			return err
		}
		return s.insertConclusion(ctx, tx, conclusion)
	})
}

func checkConclusion(c store.Conclusion) error {
	return errors.Join(
		checkPresent("conclusion", fields{"configuration.hash": c.Configuration.Hash, "claim": c.Claim}),
		checkLabels("conclusion", fields{"hardware_key": c.HardwareKey, "instance": c.Instance, "driver": c.Driver, "model": c.Model,
			"model_key": c.ModelKey, "workload.name": fieldOf(c.Workload, "name"), "workload_key": c.WorkloadKey,
			"objective": c.Objective.String(), "configuration.hash": c.Configuration.Hash}),
		checkObjective("conclusion", c.Objective),
		checkFinite("conclusion", c),
	)
}

func (s *Store) insertConclusion(ctx context.Context, tx *transaction, c store.Conclusion) error {
	hardware, err1 := documentOf("conclusion", "hardware", c.Hardware)
	stack, err2 := documentOf("conclusion", "stack", c.Stack)
	workload, err3 := documentOf("conclusion", "workload", c.Workload)
	objective, err4 := jsonOf(c.Objective)
	configuration, err5 := jsonOf(c.Configuration)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	var low, high any
	if c.Interval != nil {
		low, high = c.Interval[0], c.Interval[1]
	}
	_, err := tx.insert(ctx, "conclusions", [][]column{{
		{"campaign_id", c.CampaignID},
		{"hardware_key", c.HardwareKey},
		{"instance", c.Instance},
		{"hardware", hardware},
		{"stack_key", c.StackKey},
		{"stack", stack},
		{"driver", c.Driver},
		{"model", c.Model},
		{"model_key", c.ModelKey},
		{"workload", workload},
		{"workload_name", fieldOf(c.Workload, "name")},
		{"workload_key", c.WorkloadKey},
		{"objective", objective},
		{"group_key", groupKey(c.HardwareKey, c.Model, c.ModelKey, c.WorkloadKey, c.Objective)},
		{"configuration", configuration},
		{"configuration_hash", c.Configuration.Hash},
		{"value", c.Value},
		{"score", score(c.Objective, c.Value)},
		{"interval_low", low},
		{"interval_high", high},
		{"speedup", nullable(c.Speedup)},
		{"launches", c.Launches},
		{"confirmed", c.Confirmed},
		{"claim", c.Claim},
		{"time", s.orNow(c.Time)},
	}}, "")
	return err
}

// candidate stands for an answer: a conclusion, or the best trial of a campaign
// without one.
type candidate struct {
	campaignID string
	trialID    string // empty for a conclusion
	group      string
	confirmed  bool
	score      float64
	time       time.Time
}

func scanCandidate(row scanner) (c candidate, err error) {
	err = row.Scan(&c.campaignID, &c.trialID, &c.group, &c.confirmed, &c.score, instant{&c.time})
	return c, err
}

// Best ranks by the narrow columns, which indexes hold, and then reads only the
// answers themselves.
func (s *Store) Best(ctx context.Context, filter store.BestFilter) ([]store.Conclusion, error) {
	query, values := candidates(filter)
	found, err := collect(ctx, s.Read, scanCandidate, query, values...)
	if err != nil {
		return nil, s.wrap("find the best configurations", err)
	}
	best, err := s.answers(ctx, rank(found, filter.PerGroup, filter.Limit))
	return best, s.wrap("read the best configurations", err)
}

// rank orders candidates, groups by newest first and the best first within each,
// and keeps at most perGroup of a group and limit altogether (0: all). What was
// confirmed comes before what was not: the highest of many single measurements
// is mostly luck.
//
// The window functions that would do this in SQL take SQLite four times as long
// as reading all candidates.
func rank(found []candidate, perGroup, limit int) []candidate {
	groups := make(map[string][]candidate)
	newest := make(map[string]time.Time)
	for _, c := range found {
		groups[c.group] = append(groups[c.group], c)
		if c.time.After(newest[c.group]) {
			newest[c.group] = c.time
		}
	}
	order := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(newest[b].Compare(newest[a]), cmp.Compare(a, b))
	})
	var ranked []candidate
	for _, key := range order {
		group := groups[key]
		slices.SortFunc(group, compareCandidates)
		if perGroup > 0 && len(group) > perGroup {
			group = group[:perGroup]
		}
		ranked = append(ranked, group...)
		if limit > 0 && len(ranked) >= limit {
			return ranked[:limit]
		}
	}
	return ranked
}

func compareCandidates(a, b candidate) int {
	switch {
	case a.confirmed && !b.confirmed:
		return -1
	case b.confirmed && !a.confirmed:
		return 1
	}
	return cmp.Or(cmp.Compare(b.score, a.score), b.time.Compare(a.time), cmp.Compare(a.campaignID, b.campaignID))
}

func candidates(filter store.BestFilter) (string, parameters) {
	var values parameters
	query := concluded(&values, filter)
	if filter.Unconfirmed {
		query += " union all " + unconcluded(&values, filter)
	}
	return query, values
}

func concluded(values *parameters, filter store.BestFilter) string {
	where := bestConditions(values, filter, "b.campaign_id")
	if filter.Driver != "" {
		where.add("b.driver = " + values.add(filter.Driver))
	}
	if !filter.Unconfirmed {
		where.add("b.confirmed")
	}
	return "select b.campaign_id, '', b.group_key, b.confirmed, b.score, b.time from conclusions b" + where.where()
}

func unconcluded(values *parameters, filter store.BestFilter) string {
	driver := ""
	if filter.Driver != "" {
		driver = " and r.driver = " + values.add(filter.Driver)
	}
	where := bestConditions(values, filter, "b.id")
	where.add("not exists (select 1 from conclusions k where k.campaign_id = b.id)")
	return `select b.id, t.id, b.group_key, false, t.score, coalesce(t.ended, t.created)
		from campaigns b join trials t on t.id = (
			select r.id from trials r where r.campaign_id = b.id and r.score is not null` + driver + `
			order by r.score desc, r.number limit 1
		)` + where.where()
}

// bestConditions are the conditions on columns that conclusions and campaigns
// (as b) have in common.
func bestConditions(values *parameters, filter store.BestFilter, campaignID string) (where conditions) {
	var hardware []string
	if len(filter.HardwareKeys) > 0 {
		hardware = append(hardware, "b.hardware_key in "+list(values, filter.HardwareKeys))
	}
	if filter.Instance != "" {
		hardware = append(hardware, "b.instance = "+values.add(filter.Instance))
	}
	if len(hardware) > 0 {
		where.add("(" + strings.Join(hardware, " or ") + ")")
	}
	if filter.Model != "" {
		model := values.add(filter.Model)
		where.add("(b.model = " + model + " or b.model_key = " + model + ")")
	}
	if filter.Workload != "" {
		workload := values.add(filter.Workload)
		where.add("(b.workload_name = " + workload + " or b.workload_key = " + workload + ")")
	}
	if filter.CampaignID != "" {
		where.add(campaignID + " = " + values.add(filter.CampaignID))
	}
	return where
}

// answers reads what the candidates stand for, in their order.
func (s *Store) answers(ctx context.Context, ranked []candidate) ([]store.Conclusion, error) {
	var campaigns, trials []string
	for _, c := range ranked {
		if c.trialID == "" {
			campaigns = append(campaigns, c.campaignID)
		} else {
			trials = append(trials, c.trialID)
		}
	}
	found := make(map[string]store.Conclusion, len(ranked))
	for _, source := range []struct {
		query string
		ids   []string
	}{{selectConclusions + " where b.campaign_id in ", campaigns}, {selectUnconfirmed + " where t.id in ", trials}} {
		for ids := range slices.Chunk(source.ids, maxParameters) {
			var values parameters
			query := source.query + list(&values, ids)
			conclusions, err := collect(ctx, s.Read, scanConclusion, query, values...)
			if err != nil {
				return nil, err
			}
			for _, conclusion := range conclusions {
				found[conclusion.CampaignID] = conclusion
			}
		}
	}
	ordered := make([]store.Conclusion, 0, len(ranked))
	for _, c := range ranked {
		if conclusion, ok := found[c.campaignID]; ok {
			ordered = append(ordered, conclusion)
		}
	}
	return ordered, nil
}
