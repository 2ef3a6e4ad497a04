package search

import (
	"math"

	"nocturne/search/internal/gp"
)

// factorProcess is what is known of a factor: a process over the knobs that it
// depends on, in units of the score.
//
// Factors take noise away. Two launches of one configuration differ largely
// because other tokens were accepted, and the counters say how many: so the part of
// a score that comes from a factor is replaced by what the process expects of the
// factor at that configuration, which is the mean over all launches with the same
// speculation. The objective is then learned as a whole. Learning the rest apart
// and adding the two was measured and is worse (docs/search.md): acceptance
// length and step time both rise steeply with the number of steps, the
// uncertainty of both adds up where nothing was measured, and the objective, their
// ratio, is far smoother than either.
type factorProcess struct {
	model *gp.Model
	knobs []int // positions in the space
	shift float64
}

func (f *factorProcess) project(x []int) []int {
	projected := make([]int, len(f.knobs))
	for n, i := range f.knobs {
		projected[n] = x[i]
	}
	return projected
}

// mean is the expected factor of a configuration, in units of the score.
func (f *factorProcess) mean(x []int) float64 { return f.model.Mean(f.project(x)) + f.shift }

// readable lists the factors that enough measurements report to learn them.
func (k *knowledge) readable(ran []*trial) []int {
	const least = 2
	var list []int
	if !k.ratios {
		return nil
	}
	for n := range k.factors {
		count := 0
		for _, t := range ran {
			for i := range t.measures {
				if !math.IsNaN(t.measures[i].factors[n]) {
					count++
				}
			}
		}
		if count >= least && len(k.factorKnobs(n)) > 0 {
			list = append(list, n)
		}
	}
	return list
}

func (k *knowledge) factorKnobs(n int) []int {
	var positions []int
	for _, id := range k.factors[n].Knobs {
		if i, ok := k.space.index[id]; ok {
			positions = append(positions, i)
		}
	}
	return positions
}

// fitObjective fits the process of the objective.
func (b *belief) fitObjective(ran []*trial) error {
	readable := b.readable(thin(ran, fitted))
	factors := make([]factorProcess, len(readable))
	for i, n := range readable {
		var err error
		if factors[i], err = b.fitFactor(n, ran); err != nil {
			return err
		}
	}
	read := func(t *trial, m *measure) (y, noise float64, ok bool) {
		score := m.score
		for i, n := range readable {
			if value, ok := b.reported(n, m); ok {
				score -= unit * (value - factors[i].mean(b.effective(t.at)))
			}
		}
		return compress(score), m.known(t), true
	}
	var err error
	if b.objective, err = b.fit(b.knobs, ran, b.related, objectivePriors(), read); err != nil || !b.dropDisagreeing(ran) {
		return err
	}
	b.objective, err = b.fit(b.knobs, ran, b.related, objectivePriors(), read)
	return err
}

// reported is the measured factor in units of the score.
func (b *belief) reported(n int, m *measure) (value float64, ok bool) {
	if n >= len(m.factors) || math.IsNaN(m.factors[n]) {
		return 0, false
	}
	return b.sign * b.factors[n].Power * m.factors[n] / unit, true
}

// fitFactor fits a factor to the knobs that it depends on.
func (b *belief) fitFactor(n int, ran []*trial) (factorProcess, error) {
	f := factorProcess{knobs: b.factorKnobs(n)}
	knobs := make([]gp.Knob, len(f.knobs))
	for i, knob := range f.knobs {
		knobs[i] = b.knobs[knob]
	}
	sum, count := 0.0, 0
	read := func(_ *trial, m *measure) (y, noise float64, ok bool) {
		y, ok = b.reported(n, m)
		return y - f.shift, 0, ok
	}
	for _, t := range ran {
		for i := range t.measures {
			if y, _, ok := read(t, &t.measures[i]); ok {
				sum, count = sum+y, count+1
			}
		}
	}
	f.shift = sum / float64(count)
	priors := gp.DefaultPriors()
	priors.Amplitude.Median = 4 // an acceptance length moves by tens of percent, where 10 are usual
	priors.Drift.Median = noDrift
	data := join(b.observations(thin(ran, fitted), read), b.related, 1, relatedFitted, read)
	for i := range data {
		data[i].X = f.project(data[i].X)
	}
	var err error
	f.model, err = gp.Fit(knobs, data, priors, fittingStep)
	return f, err
}
