package search

import (
	"math"
	"slices"

	"nocturne/search/internal/gp"
)

// fitLimits fits a process to the margins of each limit.
func (b *belief) fitLimits(ran []*trial) error {
	for _, limit := range limitsOf(ran) {
		var data []gp.Observation
		for _, t := range thin(ran, fitted) {
			if margin, ok := t.margins[limit]; ok {
				data = append(data, gp.Observation{X: b.effective(t.at), Y: compressMargin(margin), Count: t.count})
			}
		}
		if len(data) == 0 {
			continue // read by few of many trials
		}
		model, err := gp.Fit(b.knobs, data, objectivePriors(), fittingStep/2)
		if err != nil {
			return err
		}
		b.limits = append(b.limits, model)
	}
	return nil
}

func limitsOf(ran []*trial) []string {
	var limits []string
	for _, t := range ran {
		for limit := range t.margins {
			if !slices.Contains(limits, limit) {
				limits = append(limits, limit)
			}
		}
	}
	slices.Sort(limits)
	return limits
}

// compressMargin puts a margin in units; far from the limit only the side counts.
func compressMargin(margin float64) float64 {
	y := margin / unit
	return math.Copysign(math.Min(math.Abs(y), 1)+math.Log(math.Max(math.Abs(y), 1)), y)
}

// keeps is the logarithm of the probability that a configuration keeps all limits.
func (b *belief) keeps(x []int) float64 {
	sum := 0.0
	for _, model := range b.limits {
		mean, variance := model.Predict(x)
		sum += math.Log(max(normalCDF(mean/math.Sqrt(variance+model.Noise(0))), 1e-6))
	}
	return sum
}
