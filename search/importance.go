package search

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"nocturne/search/internal/gp"
)

// ErrTooLittle says that too little was measured to say anything about knobs.
var ErrTooLittle = errors.New("importance needs at least two measured configurations")

// Importance says how much a knob matters, as far as the trials show.
type Importance struct {
	Knob string
	// Share is this knob's part of the variance of the effects of all knobs, from
	// 0 to 1, over the levels that were measured; 0 when only one was.
	Share float64
	// Interval holds 95 % of the probability of the share.
	Interval [2]float64
	// Curve holds the measured levels in the order of the knob.
	Curve []CurvePoint
}

// CurvePoint is the effect of one level on the objective, averaged over the other
// settings of the best configurations.
type CurvePoint struct {
	Value Value
	// Effect is the ratio to the mean over the measured levels of the knob, above
	// 1 better; Interval holds 95 % of its probability.
	Effect   float64
	Interval [2]float64
}

// importanceDraws is the number of draws from the posterior.
const importanceDraws = 1000

// Importances fits the model of the auto sampler to a history and reads the
// effects of the knobs from it, the most important knob first. The draws behind the intervals
// are seeded.
func Importances(request Request) ([]Importance, error) {
	k := newKnowledge(request)
	ran, model, err := k.effectModel()
	if err != nil {
		return nil, err
	}
	list := make([]Importance, len(k.space.knobs))
	variances := make([][]float64, len(list))
	for i := range list {
		list[i], variances[i] = k.effects(i, model, ran)
	}
	for i := range list {
		list[i].Share, list[i].Interval = shares(variances, i)
	}
	slices.SortStableFunc(list, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return list, nil
}

// effectModel fits the process to the scores of what ran, not compressed: here it
// matters how bad the bad levels are.
func (k *knowledge) effectModel() (ran []*trial, model *gp.Model, err error) {
	ran, _ = k.split()
	switch {
	case len(ran) < 2:
		return nil, nil, ErrTooLittle
	case !k.ratios:
		return nil, nil, ErrNoRatios
	}
	b := &belief{knowledge: k, knobs: k.processKnobs()}
	model, err = b.fit(b.knobs, ran, nil, objectivePriors(), func(t *trial, m *measure) (y, noise float64, ok bool) {
		return m.score / unit, m.known(t), true
	})
	return ran, model, err
}

// effects returns the curve of a knob and draws of the variance of its effects.
func (k *knowledge) effects(i int, model *gp.Model, ran []*trial) (Importance, []float64) {
	knob := &k.space.knobs[i]
	importance := Importance{Knob: knob.ID}
	variances := make([]float64, importanceDraws)
	var levels []int
	for level := range knob.Levels {
		if slices.ContainsFunc(ran, func(t *trial) bool { return t.at[i] == level }) {
			levels = append(levels, level)
		}
	}
	if len(levels) < 2 {
		return importance, variances
	}
	mean, covariance := model.Effects(k.groups(i, levels, ran))
	for l, level := range levels {
		margin := 1.96 * math.Sqrt(max(0, covariance.At(l, l)))
		importance.Curve = append(importance.Curve, CurvePoint{
			Value:    knob.Levels[level],
			Effect:   math.Exp(unit * mean[l]),
			Interval: [2]float64{math.Exp(unit * (mean[l] - margin)), math.Exp(unit * (mean[l] + margin))},
		})
	}
	source := dice(mix(k.seed)).named(knob.ID)
	for n, drawn := range draws(mean, covariance, importanceDraws, source) {
		variances[n] = stat.PopVariance(drawn, nil)
	}
	return importance, variances
}

// references is how many of the best configurations an effect is averaged over.
const references = 24

// groups lists configurations that differ in knob i only, a group for each level.
func (k *knowledge) groups(i int, levels []int, ran []*trial) [][][]int {
	var active []*trial
	for _, t := range ran {
		if t.at[i] != inactive {
			active = append(active, t)
		}
	}
	groups := make([][][]int, len(levels))
	for g, level := range levels {
		for _, t := range thin(active, references) {
			groups[g] = append(groups[g], k.effective(k.space.with(t.at, i, level)))
		}
	}
	return groups
}

// shares turns draws of variances into the share of knob i.
func shares(variances [][]float64, i int) (float64, [2]float64) {
	drawn := make([]float64, importanceDraws)
	for n := range drawn {
		total := 0.0
		for j := range variances {
			total += variances[j][n]
		}
		if total > 0 {
			drawn[n] = variances[i][n] / total
		}
	}
	slices.Sort(drawn)
	interval := [2]float64{stat.Quantile(0.025, stat.Empirical, drawn, nil), stat.Quantile(0.975, stat.Empirical, drawn, nil)}
	return stat.Mean(drawn, nil), interval
}

// normal returns a standard normal draw.
func (d dice) normal() float64 { return math.Sqrt2 * math.Erfinv(2*(d.unit()+1.0/(1<<54))-1) }
