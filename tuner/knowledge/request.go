package knowledge

import (
	"encoding/json"
	"fmt"
	"slices"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/spec"
)

// Request is what a sampler is told of the campaign's own trials. Configurations
// that were tried and say nothing (bad luck, a vanished host) count as pending:
// their trial is on record, and proposing them again would repeat it.
func Request(campaign *spec.Campaign, trials []store.Trial) search.Request {
	request := search.Request{
		Space: campaign.Space, Minimize: campaign.Objective.Minimize(), Hints: campaign.Hints, Seed: campaign.Seed,
	}
	product := newAcceptance(campaign, trials)
	if product != nil {
		request.Factors = []search.Factor{product.factor}
	}
	for i := range trials {
		trial := &trials[i]
		observation, told := Observe(trial)
		if !told {
			request.Pending = append(request.Pending, trial.Configuration.Values)
			continue
		}
		if observation.Outcome == search.Measured {
			observation.Factors = product.of(trial)
			margins, reported := margins(campaign.Objective, trial.Points)
			observation.Margins = margins
			if !reported {
				observation.Outcome = search.Infeasible
			}
		}
		request.History = append(request.History, observation)
	}
	return request
}

// Observe is an ended trial as a sampler sees it, without what only its load
// points tell; false when the trial says nothing of its configuration.
func Observe(trial *store.Trial) (search.Observation, bool) {
	observation := search.Observation{Trial: trial.Number, Values: trial.Configuration.Values}
	// A trial whose measurement the host or the load generator spoilt is invalid as
	// well, and nobody's fault.
	infeasible := trial.State == store.TrialInvalid && trial.Failure == nil ||
		(trial.State == store.TrialInvalid || trial.State == store.TrialFailed) && trial.Failure != nil && trial.Failure.Class == runners.ClassInfeasible
	switch {
	case infeasible:
		observation.Outcome = search.Infeasible
		if trial.Failure != nil {
			observation.Failure = trial.Failure.Reason
		}
		return observation, true
	case trial.Value == nil:
		return observation, false
	case trial.State == store.TrialPruned:
		observation.Outcome = search.Pruned
	case trial.State != store.TrialComplete:
		return observation, false
	}
	observation.Value = *trial.Value
	if trial.StandardError != nil {
		observation.StandardError = *trial.StandardError
	}
	return observation, true
}

// Counted are the load points that count for an objective.
func Counted(objective store.Objective, points []runners.PointResult) ([]runners.PointResult, error) {
	if len(points) == 0 {
		return nil, fmt.Errorf("no load point was measured")
	}
	if objective.At != nil {
		at := slices.IndexFunc(points, func(p runners.PointResult) bool { return p.Concurrency == *objective.At })
		if at < 0 {
			return nil, fmt.Errorf("load point %d was not measured", *objective.At)
		}
		return points[at : at+1], nil
	}
	if objective.Aggregate == "" {
		return points[:1], nil
	}
	return points, nil
}

// Facts are what the trials tell of NCCL: the version that the first measured
// launch loaded, and the links of the machine. False while no launch has told.
func Facts(hardware runners.Hardware, trials []store.Trial) (nccl.Context, bool) {
	for i := range trials {
		trial := &trials[i]
		var stack runners.Stack
		if trial.State != store.TrialComplete || len(trial.Stack) == 0 || json.Unmarshal(trial.Stack, &stack) != nil || stack.NCCL == "" {
			continue
		}
		facts := nccl.Context{Nodes: 1, Ranks: len(hardware.GPUs), NVLink: linked(hardware.Links)}
		if version, err := nccl.ParseVersion(stack.NCCL); err == nil {
			facts.Version = version
		}
		return facts, true
	}
	return nccl.Context{}, false
}
