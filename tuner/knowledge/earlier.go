package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/spec"
)

const (
	// mostRelated campaigns with mostRelatedTrials measurements in all are told:
	// more of them say little that the most similar ones do not.
	mostRelated, mostRelatedTrials = 3, 150
	// leastRelated: fewer configurations have nothing to compare with each other.
	leastRelated = 3
	// considered is how many of the newest campaigns of the machine are looked at.
	considered = 50
)

// Place is the campaign on record, as far as it decides what others are near.
type Place struct {
	CampaignID  string
	HardwareKey string
	ModelKey    string
	WorkloadKey string
	// Begun is the horizon: nothing that was measured after it counts.
	Begun time.Time
}

// Related are the measurements of earlier campaigns on the same hardware with the
// same metric, the most similar ones first: with the model and the workload, then
// with either, then the newest. Configurations that this space does not have are
// left out.
func Related(ctx context.Context, s store.Store, campaign *spec.Campaign, place Place) ([]search.Related, error) {
	earlier, err := s.Campaigns(ctx, store.CampaignFilter{HardwareKey: place.HardwareKey, Limit: considered})
	if err != nil {
		return nil, fmt.Errorf("earlier campaigns of this hardware: %w", err)
	}
	earlier = slices.DeleteFunc(earlier, func(other store.Campaign) bool {
		return other.ID == place.CampaignID || !other.Created.Before(place.Begun) || !sameKind(campaign.Objective, other.Objective)
	})
	slices.SortStableFunc(earlier, func(a, b store.Campaign) int {
		return cmp.Or(cmp.Compare(place.likeness(b), place.likeness(a)), b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	var related []search.Related
	room := mostRelatedTrials
	for _, other := range earlier {
		if len(related) == mostRelated || room < leastRelated {
			break
		}
		history, err := historyOf(ctx, s, campaign, other, place)
		if err != nil {
			return nil, err
		}
		history = thinned(history, room)
		if configurations(history) < leastRelated {
			continue
		}
		room -= len(history)
		related = append(related, search.Related{
			Name: fmt.Sprintf("%s run %d", other.Name, other.Run), Minimize: campaign.Objective.Minimize(), History: history,
		})
	}
	return related, nil
}

// sameKind reports whether two objectives rank configurations by one quantity,
// at whatever load.
func sameKind(a, b store.Objective) bool { return a.Metric == b.Metric && a.Direction == b.Direction }

// likeness grows with what a campaign has in common beside the hardware.
func (p Place) likeness(other store.Campaign) int {
	likeness := 0
	if other.ModelKey == p.ModelKey {
		likeness += 2
	}
	if other.WorkloadKey == p.WorkloadKey {
		likeness++
	}
	return likeness
}

// historyOf are the trials of an earlier campaign that tell something of
// configurations of this space. A limit of theirs that was broken is no matter:
// the measurement stands.
func historyOf(ctx context.Context, s store.Store, campaign *spec.Campaign, other store.Campaign, place Place) ([]search.Observation, error) {
	trials, err := s.Trials(ctx, other.ID, store.TrialFilter{Summary: true})
	if err != nil {
		return nil, fmt.Errorf("trials of campaign %s run %d: %w", other.Name, other.Run, err)
	}
	translated := newTranslation(campaign, other, trials)
	var history []search.Observation
	for i := range trials {
		trial := &trials[i]
		if trial.Ended == nil || !trial.Ended.Before(place.Begun) {
			continue
		}
		observation, told := Observe(trial)
		if !told {
			continue
		}
		var ours bool
		if observation.Values, ours = translated.values(trial.Configuration.Values); ours {
			history = append(history, observation)
		}
	}
	return history, nil
}

// configurations counts the different ones that were measured.
func configurations(history []search.Observation) int {
	seen := map[string]bool{}
	for _, observation := range history {
		if observation.Outcome == search.Measured {
			seen[observation.Values.String()] = true
		}
	}
	return len(seen)
}

// thinned takes at most so many observations, evenly from first to last: a search
// looks wide at first and near the best at the end, and both tell something.
func thinned(history []search.Observation, most int) []search.Observation {
	if len(history) <= most {
		return history
	}
	kept := make([]search.Observation, most)
	for i := range kept {
		kept[i] = history[i*len(history)/most]
	}
	return kept
}
