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
	// baseCount is how many of the best configurations are starting points.
	baseCount = 2
	// noDrift is the prior median of the drift of what does not drift.
	noDrift = 1e-6
)

// belief is what the processes say about configurations.
type belief struct {
	*knowledge
	knobs     []gp.Knob
	objective *gp.Model
	running   *gp.Model // nil while nothing has crashed
	limits    []*gp.Model
	related   []relation
	bases     []point // the best configurations by the model's mean, best first
	bestMean  float64
	met       bool // some configuration keeps the limits
	stalled   int  // trials since the best value last rose
}

// newBelief fits the processes.
func newBelief(k *knowledge, related []relation) (*belief, error) {
	b := &belief{knowledge: k, knobs: k.processKnobs(), related: related}
	ran, crashed := k.split()
	if err := b.fitObjective(ran); err != nil {
		return nil, err
	}
	if err := b.fitRunning(ran, crashed); err != nil {
		return nil, err
	}
	if err := b.fitLimits(ran); err != nil {
		return nil, err
	}
	b.chooseBases(ran)
	b.stalled = k.stalledFor()
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

// objectivePriors are for log ratios in units.
func objectivePriors() gp.Priors {
	priors := gp.DefaultPriors()
	priors.Pair.Median = 0.5
	priors.Scale.Spread = 1
	return priors
}

// fit fits a process to what is read from trials and, as related tasks, from
// related ones. Pending configurations count as measured with the value that is
// expected, so that the next proposal looks elsewhere.
func (b *belief) fit(knobs []gp.Knob, ran []*trial, related []relation, priors gp.Priors, read reading) (*gp.Model, error) {
	groups := 1
	if b.uneven(thin(ran, fitted)) {
		groups = 2
	}
	data := func(most, mostRelated int) []gp.Observation {
		own := b.observations(thin(ran, most), read)
		for i := range own {
			own[i].Group = min(b.group(own[i].X), groups-1)
		}
		return join(own, related, groups, mostRelated, read)
	}
	model, err := gp.Fit(knobs, data(fitted, relatedFitted), priors, fittingStep)
	if err != nil {
		return nil, err
	}
	pending := b.pending[:min(len(b.pending), conditioned/2)]
	if len(ran) <= fitted && len(related) == 0 && len(pending) == 0 {
		return model, nil
	}
	all := data(conditioned-len(pending), relatedConditioned)
	if model, err = model.With(all); err != nil || len(pending) == 0 {
		return model, err
	}
	now := float64(b.length) / night
	for _, p := range pending {
		all = append(all, gp.Observation{X: b.effective(p), Y: model.Mean(b.effective(p)), Time: now})
	}
	return model.With(all)
}

// fitRunning fits the process of what runs: 0 for a configuration that ran and
// -2 for one that crashed, so that it is expected to run where nothing is known.
// What crashed elsewhere is a related task: as likely to crash here as the crashes
// here say.
func (b *belief) fitRunning(ran, crashed []*trial) error {
	data := b.observationsOfRunning(ran, crashed, fitted, 0)
	crashes, task := len(crashed), 0
	for _, r := range b.related {
		ranThere, crashedThere := r.split()
		if len(crashedThere) == 0 {
			continue
		}
		crashes += len(crashedThere)
		task++
		data = append(data, r.observationsOfRunning(ranThere, crashedThere, max(8, relatedFitted/len(b.related)), task)...)
	}
	if crashes == 0 {
		return nil
	}
	priors := gp.DefaultPriors()
	priors.Amplitude = gp.Prior{Median: 0.3, Spread: 0.7}
	priors.Pair.Median = 0.3
	priors.Noise = gp.Prior{Median: 0.02, Spread: 0.1}
	priors.TaskNoise = gp.Prior{Median: 0.1, Spread: 0.5}
	priors.Drift.Median = noDrift
	var err error
	b.running, err = gp.Fit(b.knobs, data, priors, fittingStep/2)
	return err
}

func (k *knowledge) observationsOfRunning(ran, crashed []*trial, most, task int) []gp.Observation {
	kept := latest(crashed, most/2)
	var data []gp.Observation
	for _, t := range kept {
		data = append(data, gp.Observation{X: k.effective(t.at), Y: -2, Task: task, Group: task})
	}
	for _, t := range thin(ran, most-len(kept)) {
		data = append(data, gp.Observation{X: k.effective(t.at), Task: task, Group: task})
	}
	return data
}

// chooseBases ranks the trials by what the process believes of them, which
// forgives a lucky launch. Those that keep the limits come first.
func (b *belief) chooseBases(ran []*trial) {
	type ranked struct {
		at     point
		mean   float64
		broken bool
	}
	measured := slices.DeleteFunc(slices.Clone(ran), func(t *trial) bool { return t.pruned })
	list := make([]ranked, 0, len(measured))
	for _, t := range thin(measured, conditioned) {
		list = append(list, ranked{t.at, b.objective.Mean(b.effective(t.at)), t.broken})
	}
	slices.SortStableFunc(list, func(x, y ranked) int {
		if x.broken != y.broken {
			if y.broken {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.mean, x.mean)
	})
	b.bestMean, b.met = list[0].mean, !list[0].broken
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
		if t := &k.trials[i]; !t.crashed && !t.pruned && !t.broken && t.score > best+noise {
			best, since = t.score, 0
		}
	}
	return since
}
