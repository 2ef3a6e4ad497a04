package tuner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/knowledge"
)

// objectiveValue is the objective of a measured trial with the standard error
// over its rounds (nil with fewer than two rounds). A metric that is absent is
// an error that names those that are there.
func objectiveValue(objective store.Objective, points []runners.PointResult) (value float64, standardError *float64, err error) {
	chosen, err := knowledge.Counted(objective, points)
	if err != nil {
		return 0, nil, err
	}
	logs, variance, known := 0.0, 0.0, true
	for _, point := range chosen {
		one, ok := point.Metrics[objective.Metric]
		if !ok {
			return 0, nil, fmt.Errorf("metric %q was not reported; there are: %s", objective.Metric, metricNames(point.Metrics))
		}
		if len(chosen) > 1 && one <= 0 {
			return 0, nil, fmt.Errorf("metric %q is %g; a geometric mean needs positive values", objective.Metric, one)
		}
		relative, ok := relativeError(objective.Metric, point.Rounds)
		known = known && ok
		variance += relative * relative
		if len(chosen) == 1 {
			value = one
		} else {
			logs += math.Log(one)
		}
	}
	if count := float64(len(chosen)); count > 1 {
		value, variance = math.Exp(logs/count), variance/(count*count)
	}
	if known {
		absolute := math.Sqrt(variance) * math.Abs(value)
		standardError = &absolute
	}
	return value, standardError, nil
}

// metricAt is a metric at the first load point that counts; nil when absent.
func metricAt(objective store.Objective, metric string, points []runners.PointResult) *float64 {
	chosen, err := knowledge.Counted(objective, points)
	if err != nil {
		return nil
	}
	if value, ok := chosen[0].Metrics[metric]; ok {
		return &value
	}
	return nil
}

// relativeError is the standard error of the mean over rounds, relative to it.
func relativeError(metric string, rounds []runners.RoundResult) (float64, bool) {
	var sum, squares float64
	count := 0.0
	for _, round := range rounds {
		if value, ok := round.Metrics[metric]; ok {
			sum, squares, count = sum+value, squares+value*value, count+1
		}
	}
	if count < 2 || sum == 0 {
		return 0, false
	}
	mean := sum / count
	variance := math.Max(0, (squares-sum*mean)/(count-1))
	return math.Sqrt(variance/count) / math.Abs(mean), true
}

// limitsMet reports whether every limit holds at every load point that counts.
func limitsMet(objective store.Objective, points []runners.PointResult) bool {
	return len(brokenLimits(objective, points)) == 0
}

// brokenLimits names the metrics whose limit does not hold at some load point
// that counts. One that was not reported does not hold.
func brokenLimits(objective store.Objective, points []runners.PointResult) []string {
	chosen, err := knowledge.Counted(objective, points)
	var broken []string
	for _, metric := range slices.Sorted(maps.Keys(objective.Limits)) {
		limit := objective.Limits[metric]
		fits := func(point runners.PointResult) bool {
			value, ok := point.Metrics[metric]
			return ok && (limit.Max == nil || value <= *limit.Max) && (limit.Min == nil || value >= *limit.Min)
		}
		if err != nil || slices.ContainsFunc(chosen, func(point runners.PointResult) bool { return !fits(point) }) {
			broken = append(broken, metric)
		}
	}
	return broken
}

func metricNames(metrics runners.Metrics) string {
	names := make([]string, 0, len(metrics))
	for name := range metrics {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
