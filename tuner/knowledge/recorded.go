package knowledge

import (
	"cmp"
	"maps"
	"slices"

	"nocturne/search"
	"nocturne/store"
)

// Recorded is what trials tell of knobs, from the record alone: the campaign file
// may name what only the machine of the campaign has, and a store is read on
// others. The space has the knobs and the levels that were tried; the defaults are
// those of the baseline.
func Recorded(campaign store.Campaign, trials []store.Trial) (search.Request, error) {
	request := search.Request{Minimize: campaign.Objective.Minimize(), Seed: campaign.Seed}
	var tried []search.Values
	var baseline search.Values
	for i := range trials {
		if observation, told := Observe(&trials[i]); told {
			if observation.Outcome == search.Measured {
				observation.Margins = kept(campaign.Objective, &trials[i])
			}
			request.History = append(request.History, observation)
			tried = append(tried, observation.Values)
			if trials[i].Role == store.RoleBaseline {
				baseline = observation.Values
			}
		}
	}
	var err error
	request.Space, err = search.NewSpace(knobsOf(tried, baseline), nil, nil)
	return request, err
}

// kept are the margins of a trial; of one that was read without its load points
// the record only says on which side of each limit it lies.
func kept(objective store.Objective, trial *store.Trial) map[string]float64 {
	if found, reported := margins(objective, trial.Points); reported && len(trial.Points) > 0 {
		return found
	}
	const apart = 0.1 // of the logarithm: clearly on one side
	margins := make(map[string]float64, len(objective.Limits))
	for metric := range objective.Limits {
		margins[metric] = apart
		if slices.Contains(trial.BrokenLimits, metric) {
			margins[metric] = -apart
		}
	}
	return margins
}

// knobsOf are the knobs of some configurations, by id, a knob that another one
// makes idle behind that one.
func knobsOf(tried []search.Values, baseline search.Values) []search.Knob {
	levels := map[string]map[search.Value]bool{}
	for _, values := range tried {
		for id, value := range values {
			if levels[id] == nil {
				levels[id] = map[search.Value]bool{}
			}
			levels[id][value] = true
		}
	}
	var always, sometimes []search.Knob
	for _, id := range slices.Sorted(maps.Keys(levels)) {
		knob := search.Knob{ID: id, Kind: search.Categorical, Levels: slices.SortedFunc(maps.Keys(levels[id]), inOrder)}
		if counted(knob.Levels) {
			knob.Kind = search.Ordinal
		}
		knob.Default = knob.Levels[0]
		if usual, active := baseline[id]; active {
			knob.Default = usual
		}
		if slices.ContainsFunc(tried, func(values search.Values) bool { _, active := values[id]; return !active }) {
			sometimes = append(sometimes, knob)
		} else {
			always = append(always, knob)
		}
	}
	for i := range sometimes {
		sometimes[i].When = condition(sometimes[i].ID, always, tried)
	}
	return slices.Concat(always, sometimes)
}

// condition finds the knob whose values decide whether another one is active;
// none when no single knob does. Of several that would explain the record, it is
// the one whose name is most alike.
func condition(id string, always []search.Knob, tried []search.Values) search.Condition {
	best, alike := search.Condition{}, -1
	for _, parent := range always {
		active, idle := map[search.Value]bool{}, map[search.Value]bool{}
		for _, values := range tried {
			if _, given := values[id]; given {
				active[values[parent.ID]] = true
			} else {
				idle[values[parent.ID]] = true
			}
		}
		both := func(value search.Value) bool { return active[value] && idle[value] }
		if common := commonPrefix(id, parent.ID); common > alike && !slices.ContainsFunc(parent.Levels, both) {
			best, alike = search.Condition{Knob: parent.ID, In: slices.SortedFunc(maps.Keys(active), inOrder)}, common
		}
	}
	return best
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// inOrder puts absence first, then numbers by size, then texts.
func inOrder(a, b search.Value) int {
	x, aIsNumber := a.Number()
	y, bIsNumber := b.Number()
	switch {
	case a.IsUnset() != b.IsUnset():
		return order(a.IsUnset())
	case aIsNumber != bIsNumber:
		return order(aIsNumber)
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.String(), b.String()))
}

func order(first bool) int {
	if first {
		return -1
	}
	return 1
}

// counted reports whether levels are numbers, but for absence.
func counted(levels []search.Value) bool {
	return !slices.ContainsFunc(levels, func(level search.Value) bool {
		_, number := level.Number()
		return !number && !level.IsUnset()
	})
}
