package knowledge

import (
	"math"

	"nocturne/runners"
	"nocturne/store"
)

// farthestMargin bounds a margin: ten times below a limit is as good as a
// thousand times, and a limit or a measurement of zero has no ratio at all.
const farthestMargin = 2.302585092994046 // ln 10

// margins tells for each limit of the objective how far a trial keeps it: the
// logarithm of the ratio of the largest allowed value to the measured one (turned
// round for a least allowed value), below 0 when it is broken, at the load point
// that counts where it is least. It is false when a limited metric was not
// reported: such a trial keeps no limit, by nobody knows how much.
func margins(objective store.Objective, points []runners.PointResult) (map[string]float64, bool) {
	if len(objective.Limits) == 0 {
		return nil, true
	}
	counted, err := Counted(objective, points)
	if err != nil {
		return nil, false
	}
	out := make(map[string]float64, len(objective.Limits))
	for metric, limit := range objective.Limits {
		least := math.Inf(1)
		for _, point := range counted {
			value, reported := point.Metrics[metric]
			if !reported {
				return nil, false
			}
			if limit.Max != nil {
				least = min(least, margin(*limit.Max, value))
			}
			if limit.Min != nil {
				least = min(least, margin(value, *limit.Min))
			}
		}
		out[metric] = least
	}
	return out, true
}

// margin is ln(large/small), which is at least 0 exactly when small <= large.
func margin(large, small float64) float64 {
	ratio := farthestMargin
	if large > 0 && small > 0 {
		ratio = math.Log1p((large - small) / small) // its sign is that of the difference
	} else if small > large {
		ratio = -farthestMargin
	}
	return min(max(ratio, -farthestMargin), farthestMargin)
}
