package output

import (
	"maps"
	"math"
	"slices"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
)

// leastForImportance: with fewer measured trials any knob could be the cause.
const leastForImportance = 3

// strongestInteractions is how many interactions are told.
const strongestInteractions = 10

// learned fills in what the model of the search makes of the trials; nothing while
// too little was measured.
func (show *Show) learned(campaign store.Campaign, trials []store.Trial) {
	request, err := knowledge.Recorded(campaign, trials)
	if err != nil || measuredOf(request.History) < leastForImportance {
		return
	}
	// What the model cannot tell stays empty.
	if found, err := search.Importances(request); err == nil {
		show.Importance = importances(found)
	}
	if found, err := search.Interactions(request); err == nil {
		show.Interactions = interactions(found)
	}
	if found, err := search.Leaders(request); err == nil {
		show.Tied = tied(found, trials)
	}
}

// importances are the knobs that matter, the most important first. Knobs of which
// one value was measured are left out.
func importances(found []search.Importance) []Importance {
	list := []Importance{}
	for _, knob := range found {
		if len(knob.Curve) == 0 {
			continue
		}
		importance := Importance{Knob: knob.Knob, Share: knob.Share, Interval: &knob.Interval}
		told := true
		for _, point := range knob.Curve {
			importance.Curve = append(importance.Curve, Effect(point))
			told = told && finite(point.Effect, point.Interval[0], point.Interval[1])
		}
		if told {
			list = append(list, importance)
		}
	}
	return list
}

func interactions(found []search.Interaction) []Interaction {
	list := []Interaction{}
	for _, pair := range found {
		if len(list) < strongestInteractions && finite(pair.Spread, pair.Interval[0], pair.Interval[1]) {
			list = append(list, Interaction(pair))
		}
	}
	return list
}

// tied finds the trials of the leaders.
func tied(leaders []search.Leader, trials []store.Trial) []Tied {
	list := []Tied{}
	for _, leader := range leaders {
		at := slices.IndexFunc(trials, func(trial store.Trial) bool { return maps.Equal(trial.Configuration.Values, leader.Values) })
		if at < 0 || !finite(leader.Ratio, leader.Interval[0], leader.Interval[1]) {
			continue
		}
		list = append(list, Tied{Configuration: ConfigurationOf(trials[at].Configuration), Ratio: leader.Ratio, Interval: leader.Interval,
			Launches: leader.Launches, Changes: leader.Changes, Simplest: leader.Simplest})
	}
	return list
}

func finite(numbers ...float64) bool {
	return !slices.ContainsFunc(numbers, func(number float64) bool { return math.IsNaN(number) || math.IsInf(number, 0) })
}

func measuredOf(history []search.Observation) int {
	count := 0
	for _, observation := range history {
		if observation.Outcome == search.Measured {
			count++
		}
	}
	return count
}
