package search

import (
	"cmp"
	"math"
	"slices"

	"nocturne/search/internal/gp"
)

const (
	// fitted is the most trials that the hyperparameters are fitted to, which
	// costs their cube in each step; conditioned the most that predictions rest
	// on.
	fitted      = 64
	conditioned = 128
	fittingStep = 20
	// boundNoise is the variance of a pruned trial's bound, in square units.
	boundNoise = 0.25
	// baseCount is how many of the best configurations are starting points.
	baseCount = 3
)

// newBelief fits the processes.
func (k *knowledge) newBelief() (*belief, error) {
	b := &belief{knowledge: k}
	knobs := k.processKnobs()
	ran, crashed := k.split()
	var err error
	if b.objective, err = fitObjective(knobs, ran, compress); err != nil {
		return nil, err
	}
	if len(crashed) > 0 {
		if b.running, err = fitRunning(knobs, ran, crashed); err != nil {
			return nil, err
		}
	}
	b.chooseBases(ran)
	b.stalled = k.stalledFor()
	if len(k.pending) > 0 {
		return b, b.imaginePending(ran)
	}
	return b, nil
}

func (k *knowledge) split() (ran, crashed []*trial) {
	for i := range k.trials {
		if t := &k.trials[i]; t.crashed {
			crashed = append(crashed, t)
		} else {
			ran = append(ran, t)
		}
	}
	return ran, crashed
}

// processKnobs describes the knobs for the process: ordered levels lie at equal
// distances, which for powers of two is the logarithm.
func (k *knowledge) processKnobs() []gp.Knob {
	knobs := make([]gp.Knob, len(k.space.knobs))
	for i := range knobs {
		knob := &k.space.knobs[i]
		knobs[i].Levels = len(knob.Levels)
		first := knob.firstOrdered()
		last := len(knob.Levels) - 1
		if !knob.ordered() || last-first < 2 {
			continue
		}
		knobs[i].Position = make([]float64, len(knob.Levels))
		for level := range knobs[i].Position {
			knobs[i].Position[level] = float64(level-first) / float64(last-first)
		}
		if first > 0 {
			knobs[i].Position[0] = math.NaN()
		}
	}
	return knobs
}

// firstOrdered is the first level that has a place in the order: unset has none.
func (k *Knob) firstOrdered() int {
	if k.Levels[0].IsUnset() {
		return 1
	}
	return 0
}

// fitObjective fits the process of the objective to scores on the given scale.
func fitObjective(knobs []gp.Knob, ran []*trial, scaled func(score float64) float64) (*gp.Model, error) {
	priors := gp.DefaultPriors()
	priors.Pair.Median = 0.5
	priors.Scale.Spread = 1
	model, err := gp.Fit(knobs, objectiveData(thin(ran, fitted), scaled), priors, fittingStep)
	if err != nil || len(ran) <= fitted {
		return model, err
	}
	return model.With(objectiveData(thin(ran, conditioned), scaled))
}

func objectiveData(ran []*trial, scaled func(float64) float64) gp.Data {
	var data gp.Data
	for _, t := range ran {
		noise := t.noise / unit * t.noise / unit
		if t.pruned {
			noise = boundNoise
		}
		data.X = append(data.X, t.at)
		data.Y = append(data.Y, scaled(t.score))
		data.Noise = append(data.Noise, min(noise, 1))
		data.Count = append(data.Count, float64(max(1, t.count)))
	}
	return data
}

// fitRunning fits the process of what runs: 0 for a configuration that ran and
// -2 for one that crashed, so that it is expected to run where nothing is known.
func fitRunning(knobs []gp.Knob, ran, crashed []*trial) (*gp.Model, error) {
	priors := gp.DefaultPriors()
	priors.Amplitude = gp.Prior{Median: 0.3, Spread: 0.7}
	priors.Pair.Median = 0.3
	priors.Noise = gp.Prior{Median: 0.02, Spread: 0.1}
	data := func(most int) gp.Data {
		kept := latest(crashed, most/2)
		var data gp.Data
		add := func(t *trial, y float64) {
			data.X, data.Y = append(data.X, t.at), append(data.Y, y)
			data.Noise, data.Count = append(data.Noise, 0), append(data.Count, 1)
		}
		for _, t := range kept {
			add(t, -2)
		}
		for _, t := range thin(ran, most-len(kept)) {
			add(t, 0)
		}
		return data
	}
	model, err := gp.Fit(knobs, data(fitted), priors, fittingStep/2)
	if err != nil || len(ran)+len(crashed) <= fitted {
		return model, err
	}
	return model.With(data(conditioned / 2))
}

func latest(trials []*trial, most int) []*trial { return trials[max(0, len(trials)-most):] }

// thin keeps at most so many trials: the best half of them, the latest quarter,
// and a quarter spread over the rest of the night. The order stays.
func thin(trials []*trial, most int) []*trial {
	if len(trials) <= most {
		return trials
	}
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[b].score, trials[a].score) })
	keep := make([]bool, len(trials))
	for _, i := range order[:most/2] {
		keep[i] = true
	}
	left := most - most/2
	for i := len(trials) - 1; i >= 0 && left > most/4; i-- {
		if !keep[i] {
			keep[i] = true
			left--
		}
	}
	var rest []int
	for i := range trials {
		if !keep[i] {
			rest = append(rest, i)
		}
	}
	for n := range left {
		keep[rest[n*len(rest)/left]] = true
	}
	var kept []*trial
	for i, t := range trials {
		if keep[i] {
			kept = append(kept, t)
		}
	}
	return kept
}

// chooseBases ranks the trials by what the process believes of them, which
// forgives a lucky launch.
func (b *belief) chooseBases(ran []*trial) {
	type ranked struct {
		at   point
		mean float64
	}
	list := make([]ranked, 0, len(ran))
	for _, t := range thin(ran, conditioned) {
		if !t.pruned {
			list = append(list, ranked{t.at, b.objective.Mean(t.at)})
		}
	}
	slices.SortStableFunc(list, func(x, y ranked) int { return cmp.Compare(y.mean, x.mean) })
	b.bestMean = list[0].mean
	for _, r := range list[:min(len(list), baseCount)] {
		b.bases = append(b.bases, r.at)
	}
}

// stalledFor counts the trials since the best score last rose by more than the
// noise.
func (k *knowledge) stalledFor() int {
	noise := k.noise()
	best, since := math.Inf(-1), 0
	for i := range k.trials {
		since++
		if t := &k.trials[i]; !t.crashed && !t.pruned && t.score > best+noise {
			best, since = t.score, 0
		}
	}
	return since
}

// imaginePending adds the pending configurations with the values expected of
// them, so that the next proposal looks elsewhere.
func (b *belief) imaginePending(ran []*trial) error {
	imagined := thin(ran, conditioned-min(len(b.pending), conditioned/2))
	data := objectiveData(imagined, compress)
	for _, p := range b.pending[:min(len(b.pending), conditioned/2)] {
		data.X = append(data.X, p)
		data.Y = append(data.Y, b.objective.Mean(p))
		data.Noise = append(data.Noise, 0)
		data.Count = append(data.Count, 1)
	}
	model, err := b.objective.With(data)
	if err != nil {
		return err
	}
	b.objective = model
	return nil
}
