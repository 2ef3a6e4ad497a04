package output

import (
	"math"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
)

// leastForImportance: with fewer measured trials any knob could be the cause.
const leastForImportance = 3

// importances reads from the model of the search which knobs matter, the most
// important first; empty while too little was measured. Knobs of which one value
// was measured are left out.
func importances(campaign store.Campaign, trials []store.Trial) []Importance {
	list := []Importance{}
	request, err := knowledge.Recorded(campaign, trials)
	if err != nil || measuredOf(request.History) < leastForImportance {
		return list
	}
	found, err := search.Importances(request)
	if err != nil {
		return list
	}
	for _, knob := range found {
		if len(knob.Curve) == 0 {
			continue
		}
		importance := Importance{Knob: knob.Knob, Share: knob.Share, Interval: &knob.Interval}
		finite := true
		for _, point := range knob.Curve {
			importance.Curve = append(importance.Curve, Effect(point))
			finite = finite && !math.IsInf(point.Interval[1], 1) && !math.IsNaN(point.Effect)
		}
		if finite {
			list = append(list, importance)
		}
	}
	return list
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
