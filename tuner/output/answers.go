package output

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/verdict"
)

// TrialsOf answers `trials`.
func TrialsOf(ctx context.Context, s store.Store, campaign store.Campaign) (Trials, error) {
	stored, err := s.Trials(ctx, campaign.ID, store.TrialFilter{})
	if err != nil {
		return Trials{}, err
	}
	answer := Trials{Schema: Schema, CampaignID: campaign.ID, Campaign: campaign.Name, Run: campaign.Run, Trials: []Trial{}}
	for _, trial := range stored {
		answer.Trials = append(answer.Trials, TrialOf(trial))
	}
	return answer, nil
}

// CampaignsOf answers `campaigns`.
func CampaignsOf(campaigns []store.Campaign) Campaigns {
	answer := Campaigns{Schema: Schema, Campaigns: []CampaignSummary{}}
	for _, campaign := range campaigns {
		summary := CampaignSummary{
			CampaignID: campaign.ID, Campaign: campaign.Name, Run: campaign.Run, State: campaign.State, Model: campaign.Model,
			Hardware: decode[runners.Hardware](campaign.Hardware).Name, Host: campaign.Host, Created: campaign.Created, Ended: campaign.Ended,
		}
		if len(campaign.Verdict) > 0 {
			verdict := decode[Verdict](campaign.Verdict)
			summary.Claim, summary.Speedup = &verdict.Claim, verdict.Speedup
		}
		answer.Campaigns = append(answer.Campaigns, summary)
	}
	return answer
}

// ShowOf answers `show`.
func ShowOf(ctx context.Context, s store.Store, campaign store.Campaign) (Show, error) {
	trials, err := s.Trials(ctx, campaign.ID, store.TrialFilter{})
	if err != nil {
		return Show{}, err
	}
	show := Show{
		Schema: Schema, CampaignID: campaign.ID, Campaign: campaign.Name, Run: campaign.Run, State: campaign.State, Model: campaign.Model,
		Objective: ObjectiveOf(campaign.Objective), Limits: []LimitState{}, Trials: map[string]int{"total": len(trials)},
		Failures: map[string]int{}, FailureDetails: []FailureDetail{}, Importance: []Importance{}, Interactions: []Interaction{}, Tied: []Tied{}, Stacks: []runners.Stack{},
		Created: campaign.Created, Ended: campaign.Ended,
	}
	if campaign.Cause != "" {
		show.Cause = &campaign.Cause
	}
	if hardware := decode[runners.Hardware](campaign.Hardware); hardware.Key != "" {
		show.Hardware = &hardware
	}
	if len(campaign.Verdict) > 0 {
		verdict := decode[Verdict](campaign.Verdict)
		show.Verdict = &verdict
	}
	show.count(trials)
	show.failureDetails(trials)
	if err := show.measured(ctx, s, campaign, trials); err != nil {
		return Show{}, err
	}
	if err := show.running(ctx, s, campaign, trials); err != nil {
		return Show{}, err
	}
	show.limits(campaign.Objective, trials)
	show.learned(campaign, trials)
	return show, nil
}

func (show *Show) count(trials []store.Trial) {
	stacks := map[string]bool{}
	for _, trial := range trials {
		show.Trials[string(trial.State)]++
		if trial.Failure != nil {
			show.Failures[trial.Failure.Reason]++
		}
		if stack := decode[runners.Stack](trial.Stack); stack.Key != "" && !stacks[stack.Key] {
			stacks[stack.Key] = true
			show.Stacks = append(show.Stacks, stack)
		}
		for _, part := range []struct {
			sum   *float64
			value *float64
		}{{&show.Time.LoadingS, trial.LoadingS}, {&show.Time.MeasuringS, trial.MeasuringS}, {&show.Time.OverheadS, trial.OverheadS}} {
			if part.value != nil {
				*part.sum += *part.value
				show.Time.TotalS += *part.value
			}
		}
	}
}

// measured fills baseline, current and best. Fresh launches count where there
// are any; before the confirmation it is the first launch.
func (show *Show) measured(ctx context.Context, s store.Store, campaign store.Campaign, trials []store.Trial) error {
	for i := range trials {
		trial := &trials[i]
		switch {
		case trial.Role == store.RoleBaseline && show.Baseline == nil:
			show.Baseline = MeasuredOf(campaign.Objective.Minimize(), trial, trials)
		case trial.Role == store.RoleCurrent && show.Current == nil:
			show.Current = MeasuredOf(campaign.Objective.Minimize(), trial, trials)
		}
	}
	known, err := s.Best(ctx, store.BestFilter{CampaignID: campaign.ID, Unconfirmed: true, Limit: 1})
	if err != nil || len(known) == 0 {
		return err
	}
	best := known[0]
	show.Best = &Measured{Configuration: ConfigurationOf(best.Configuration), Value: &best.Value, Interval: best.Interval, Launches: best.Launches}
	show.Confirmed = best.Confirmed
	return nil
}

// failureDetails groups failed trials by class and reason.
func (show *Show) failureDetails(trials []store.Trial) {
	for _, trial := range trials {
		failure := trial.Failure
		if failure == nil {
			continue
		}
		same := func(d FailureDetail) bool { return d.Class == failure.Class && d.Reason == failure.Reason }
		if at := slices.IndexFunc(show.FailureDetails, same); at >= 0 {
			show.FailureDetails[at].Trials = append(show.FailureDetails[at].Trials, trial.Number)
			continue
		}
		show.FailureDetails = append(show.FailureDetails, FailureDetail{Class: failure.Class, Reason: failure.Reason,
			Trials: []int{trial.Number}, Message: failure.Message, LogPath: trial.LogPath})
	}
	slices.SortStableFunc(show.FailureDetails, func(a, b FailureDetail) int { return cmp.Compare(len(b.Trials), len(a.Trials)) })
}

// running fills where the trial is that is on record as running.
func (show *Show) running(ctx context.Context, s store.Store, campaign store.Campaign, trials []store.Trial) error {
	at := slices.IndexFunc(trials, func(t store.Trial) bool { return t.State == store.TrialRunning })
	if at < 0 {
		return nil
	}
	trial := trials[at]
	attempts, err := s.Attempts(ctx, campaign.ID)
	if err != nil {
		return err
	}
	for _, attempt := range attempts {
		if attempt.TrialID == trial.ID && attempt.Number == trial.Attempt {
			show.Running = &RunningTrial{Trial: trial.Number, ID: trial.ID, Role: trial.Role, Attempt: attempt.Number,
				Stage: attempt.Stage, Started: attempt.Started.UTC()}
		}
	}
	return nil
}

// MeasuredOf summarizes the launches of one trial's configuration: its fresh
// relaunches when there are any, else the trial alone.
func MeasuredOf(minimize bool, trial *store.Trial, trials []store.Trial) *Measured {
	measured := &Measured{Configuration: ConfigurationOf(trial.Configuration)}
	evidence := verdict.Evidence{Minimize: minimize}
	arms := map[int]int{}
	for _, other := range trials {
		if other.Role == store.RoleConfirm && other.State == store.TrialComplete && other.Value != nil {
			evidence.Launches = append(evidence.Launches, verdict.Launch{Arm: armOf(other.RepeatOf), Block: arms[other.RepeatOf], Value: *other.Value})
			arms[other.RepeatOf]++
		}
	}
	if summary, ok := verdict.Decide(evidence).Arms[armOf(trial.Number)]; ok {
		measured.Value, measured.Interval, measured.Launches = &summary.Value, summary.Interval, summary.Launches
		return measured
	}
	if trial.Value != nil {
		measured.Value, measured.Launches = trial.Value, 1
	}
	return measured
}

func (show *Show) limits(objective store.Objective, trials []store.Trial) {
	metrics := make([]string, 0, len(objective.Limits))
	for metric := range objective.Limits {
		metrics = append(metrics, metric)
	}
	slices.Sort(metrics)
	for _, metric := range metrics {
		limit := objective.Limits[metric]
		state := LimitState{Metric: metric, Max: limit.Max, Min: limit.Min}
		if show.Baseline != nil {
			state.Baseline = metricOf(metric, show.Baseline.Configuration.Hash, objective, trials)
		}
		if show.Best != nil {
			state.Best = metricOf(metric, show.Best.Configuration.Hash, objective, trials)
		}
		if state.Best != nil {
			met := (limit.Max == nil || *state.Best <= *limit.Max) && (limit.Min == nil || *state.Best >= *limit.Min)
			state.Met = &met
		}
		show.Limits = append(show.Limits, state)
	}
}

// metricOf is the worst measurement of a limited metric for a configuration
// over its launches, at the load point of the objective.
func metricOf(metric, hash string, objective store.Objective, trials []store.Trial) *float64 {
	var worst *float64
	largest := objective.Limits[metric].Max != nil
	for _, trial := range trials {
		if trial.Configuration.Hash != hash || trial.State != store.TrialComplete {
			continue
		}
		for _, point := range trial.Points {
			if objective.At != nil && point.Concurrency != *objective.At {
				continue
			}
			if value, ok := point.Metrics[metric]; ok && (worst == nil || (value > *worst) == largest) {
				worst = &value
			}
		}
	}
	return worst
}

// BestOf answers `best`.
func BestOf(conclusions []store.Conclusion) Best {
	answer := Best{Schema: Schema, Best: []BestKnown{}}
	for _, c := range conclusions {
		answer.Best = append(answer.Best, BestKnown{
			Hardware: decode[runners.Hardware](c.Hardware), Stack: decode[runners.Stack](c.Stack), Model: c.Model,
			Workload: Workload{Key: c.WorkloadKey, Workload: decode[runners.Workload](c.Workload)}, Objective: ObjectiveOf(c.Objective),
			Configuration: ConfigurationOf(c.Configuration), Value: c.Value, Interval: c.Interval, Speedup: c.Speedup, Launches: c.Launches,
			Confirmed: c.Confirmed, Claim: c.Claim, Campaign: c.Campaign, CampaignID: c.CampaignID, Run: c.Run, Time: c.Time.UTC(),
		})
	}
	return answer
}

// WriteJSON writes a document as indented JSON with a line end.
func WriteJSON(document any) ([]byte, error) {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
