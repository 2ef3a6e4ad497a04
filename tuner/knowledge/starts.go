package knowledge

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/recipes"
	"nocturne/tuner/spec"
)

// Start is a configuration that is worth an early trial.
type Start struct {
	Role   store.Role
	Values search.Values
	Reason string
}

// mostStarts of each kind are tried: the next ones differ little from them.
const mostStarts = 2

// Incumbents are the best-known configurations of the same hardware from before
// the campaign began, those of the same model and workload first, as far as this
// space has them. Unconfirmed ones come after confirmed ones.
func Incumbents(ctx context.Context, s store.Store, campaign *spec.Campaign, place Place) ([]Start, error) {
	known, err := s.Best(ctx, store.BestFilter{HardwareKeys: []string{place.HardwareKey}, Unconfirmed: true, PerGroup: considered})
	if err != nil {
		return nil, fmt.Errorf("best-known configurations of this hardware: %w", err)
	}
	known = slices.DeleteFunc(known, func(c store.Conclusion) bool {
		return c.CampaignID == place.CampaignID || !c.Time.Before(place.Begun) || !sameKind(campaign.Objective, c.Objective)
	})
	rank := func(c store.Conclusion) int {
		rank := 2 * place.likeness(store.Campaign{ModelKey: c.ModelKey, WorkloadKey: c.WorkloadKey})
		if c.Confirmed {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(known, func(a, b store.Conclusion) int { return rank(b) - rank(a) })
	var starts []Start
	for _, conclusion := range known {
		start, found, err := incumbent(ctx, s, campaign, conclusion, place)
		if err != nil {
			return nil, err
		}
		if found {
			starts = added(starts, campaign, start)
		}
		if len(starts) == mostStarts {
			break
		}
	}
	return starts, nil
}

// incumbent is the best-known configuration of an earlier campaign, or where this
// space does not have it the best one measured that it has.
func incumbent(ctx context.Context, s store.Store, campaign *spec.Campaign, best store.Conclusion, place Place) (Start, bool, error) {
	earlier, err := s.Campaign(ctx, best.CampaignID)
	if err != nil {
		return Start{}, false, fmt.Errorf("campaign %s run %d: %w", best.Campaign, best.Run, err)
	}
	trials, err := s.Trials(ctx, best.CampaignID, store.TrialFilter{Summary: true})
	if err != nil {
		return Start{}, false, fmt.Errorf("trials of campaign %s run %d: %w", best.Campaign, best.Run, err)
	}
	translated := newTranslation(campaign, earlier, trials)
	start := Start{Role: store.RoleIncumbent, Reason: incumbentReason(best, place)}
	values, ours := translated.values(best.Configuration.Values)
	if ours {
		start.Values = values
		return start, true, nil
	}
	var top *store.Trial
	for i := range trials {
		trial := &trials[i]
		if trial.State != store.TrialComplete || trial.Value == nil || len(trial.BrokenLimits) > 0 || trial.Ended == nil || !trial.Ended.Before(place.Begun) {
			continue
		}
		if top != nil && (*trial.Value == *top.Value || (*trial.Value < *top.Value) != best.Objective.Minimize()) {
			continue
		}
		if values, ours := translated.values(trial.Configuration.Values); ours {
			top, start.Values = trial, values
		}
	}
	if top == nil {
		return start, false, nil
	}
	best.Value, best.Confirmed = *top.Value, false
	start.Reason = incumbentReason(best, place) + ", the best that this space has"
	return start, true, nil
}

func incumbentReason(best store.Conclusion, place Place) string {
	reason := fmt.Sprintf("best known of this hardware: campaign %s run %d, %.4g %s", best.Campaign, best.Run, best.Value, best.Objective.Metric)
	if best.ModelKey != place.ModelKey {
		reason += ", with model " + best.Model
	}
	if best.Driver != "" {
		reason += ", driver " + best.Driver
	}
	if !best.Confirmed {
		reason += ", not confirmed"
	}
	return reason
}

// Recipes are the published configurations that fit the machine and the
// campaign. What a recipe can do without is left out where the space does not
// have it; a recipe that would lose more, or that a constraint rejects, is not
// tried.
func Recipes(campaign *spec.Campaign, hardware runners.Hardware) []Start {
	place := recipes.Place{
		GPUs: len(hardware.GPUs), NVLink: NVLink(hardware), Sockets: hardware.Sockets, Concurrency: concurrency(campaign),
		Server: campaign.Kind, Method: campaign.SpeculationMethod(),
	}
	var starts []Start
	for _, recipe := range recipes.All() {
		if !recipe.Fits(place) {
			continue
		}
		if values, whole := cooked(campaign, recipe); whole {
			reason := fmt.Sprintf("recipe: %s, %s", recipe.Title, recipe.Source.URL)
			starts = added(starts, campaign, Start{Role: store.RoleSearch, Values: values, Reason: reason})
		}
	}
	return starts
}

// cooked is a recipe as a configuration of the campaign's space.
func cooked(campaign *spec.Campaign, recipe recipes.Recipe) (search.Values, bool) {
	ours := search.Values{}
	take := func(id string, value search.Value) bool {
		knob, known := campaign.Space.Knob(id)
		if !known {
			return campaign.FixedEnvironment()[id] == value.String()
		}
		level, legal := levelOf(knob, value)
		if legal {
			ours[id] = level
		}
		return legal
	}
	for _, id := range slices.Sorted(maps.Keys(recipe.Values)) {
		if !take(id, recipe.Values[id].Value) {
			return nil, false
		}
	}
	for _, id := range slices.Sorted(maps.Keys(recipe.Also)) {
		take(id, recipe.Also[id].Value)
	}
	whole, err := campaign.Space.Complete(ours)
	return whole, err == nil && len(ours) > 0
}

// concurrency is that of the objective's load point, the highest of several; 0
// for a command.
func concurrency(campaign *spec.Campaign) int {
	most := 0
	for i, point := range campaign.Workload.Points {
		at := campaign.Objective.At
		if at != nil && point.Concurrency == *at || at == nil && (i == 0 || campaign.Objective.Aggregate != "") {
			most = max(most, point.Concurrency)
		}
	}
	return most
}

// added appends a start that is legal and equal to none before, up to the most.
// The baseline is measured anyway, and so is current.
func added(starts []Start, campaign *spec.Campaign, start Start) []Start {
	if len(starts) == mostStarts || campaign.Space.Check(start.Values) != nil {
		return starts
	}
	key := campaign.Space.Key(start.Values)
	same := func(values search.Values) bool { return values != nil && campaign.Space.Key(values) == key }
	if same(campaign.Baseline) || same(campaign.Current) || slices.ContainsFunc(starts, func(s Start) bool { return same(s.Values) }) {
		return starts
	}
	return append(starts, start)
}

// Starts are the incumbents and the recipes that a campaign tries early, at most
// a quarter of its trials: the most of them must be left to look for something
// better.
func Starts(incumbents, recipes []Start, trials int) []Start {
	starts := slices.Concat(incumbents, recipes)
	return starts[:min(len(starts), max(1, trials/4))]
}
