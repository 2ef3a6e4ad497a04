package search

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/tpe"
)

// NewTPE returns goptuna's tree-structured Parzen estimator (v0.9.0), guarded.
//
// Each ask builds a study in memory from the history and asks goptuna for one
// trial. What is done from outside, because of how goptuna behaves:
//
//   - Every knob is given as a categorical over the positions of its levels.
//     goptuna's density ratio is NaN for numeric parameters most of the time, its
//     integer ranges miss their top value, and its mixture draws use the global
//     random source. Its categorical estimator has none of these faults once
//     more candidates are asked for than there are levels: it then compares all
//     levels, draws nothing, and a proposal is repeatable. What is lost is that
//     neighbouring levels of an ordered knob do not learn from each other.
//   - Weights are one for each observation: goptuna indexes them by category.
//   - Values are scores to maximize and told as their negatives; a crash is told
//     as the worst score seen, since goptuna ignores failed trials and would go
//     on proposing a category that always crashes.
//   - The first trials are drawn by this package: goptuna's start-up draws ignore
//     the seed.
//   - Knobs with one level are not given to goptuna, and knobs that do not
//     matter in a trial are left out of it; a knob that matters in the proposal
//     takes what goptuna suggests for it.
//   - A proposal that is rejected, known or suspect of crashing is replaced by
//     the nearest one that is not.
//   - A panic inside goptuna becomes a random proposal whose reason says so.
func NewTPE() Sampler { return tpeSampler{} }

type tpeSampler struct{}

func (tpeSampler) Name() string { return "tpe" }

// startup is the number of configurations before the estimator is asked, as in
// goptuna.
const startup = 10

func (tpeSampler) Ask(ctx context.Context, request Request) (Proposal, error) {
	k := newKnowledge(request)
	if p := k.space.defaultPoint(); len(k.trials)+len(k.pending) == 0 && k.isNew(p) {
		return k.proposal(p, "the baseline"), nil
	}
	doubt := k.newSuspicion()
	if len(k.trials) < startup {
		return k.drawn(ctx, &doubt, "drawn at random: the estimator starts after "+strconv.Itoa(startup)+" configurations")
	}
	suggested, err := k.suggest()
	if err != nil {
		return k.drawn(ctx, &doubt, fmt.Sprintf("drawn at random: %v", err))
	}
	p, distance, err := k.repair(ctx, suggested, &doubt)
	if err != nil {
		return Proposal{}, err
	}
	reason := "the levels that are most frequent among the best trials"
	if distance > 0 {
		reason = fmt.Sprintf("nearest new configuration to %s (%d knobs away)", reason, distance)
	}
	return k.proposal(p, reason), nil
}

func (k *knowledge) drawn(ctx context.Context, doubt *suspicion, reason string) (Proposal, error) {
	p, err := k.restart(ctx, doubt)
	if err != nil {
		return Proposal{}, err
	}
	return k.proposal(p, reason), nil
}

// suggest asks goptuna for a point.
func (k *knowledge) suggest() (p point, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("goptuna's estimator failed: %v", reason)
		}
	}()
	study, err := k.study()
	if err != nil {
		return nil, fmt.Errorf("goptuna study: %w", err)
	}
	id, err := study.Storage.CreateNewTrial(study.ID)
	if err != nil {
		return nil, fmt.Errorf("goptuna trial: %w", err)
	}
	asked := goptuna.Trial{Study: study, ID: id}
	p = make(point, len(k.space.knobs))
	for i := range p {
		if p[i] = k.space.defaultLevel(i, p); p[i] == inactive || len(k.space.knobs[i].Levels) == 1 {
			continue
		}
		choice, err := asked.SuggestCategorical(k.space.knobs[i].ID, choices(&k.space.knobs[i]))
		if err != nil {
			return nil, fmt.Errorf("goptuna suggestion for %s: %w", k.space.knobs[i].ID, err)
		}
		if p[i], err = strconv.Atoi(choice); err != nil {
			return nil, fmt.Errorf("goptuna suggestion for %s: %w", k.space.knobs[i].ID, err)
		}
	}
	return p, nil
}

// choices names the levels of a knob by position.
func choices(knob *Knob) []string {
	names := make([]string, len(knob.Levels))
	for level := range names {
		names[level] = strconv.Itoa(level)
	}
	return names
}

// study builds a study that minimizes the negative score, filled with what is
// known.
func (k *knowledge) study() (*goptuna.Study, error) {
	sampler := tpe.NewSampler(
		tpe.SamplerOptionNumberOfStartupTrials(0),
		tpe.SamplerOptionNumberOfEICandidates(maxLevels+1),
		tpe.SamplerOptionWeights(equalWeights),
	)
	study, err := goptuna.CreateStudy("ask",
		goptuna.StudyOptionStorage(goptuna.NewInMemoryStorage()),
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMinimize),
		goptuna.StudyOptionSampler(sampler),
		goptuna.StudyOptionLogger(nil),
	)
	if err != nil {
		return nil, err
	}
	distributions := make([]goptuna.CategoricalDistribution, len(k.space.knobs))
	for i := range distributions {
		distributions[i].Choices = choices(&k.space.knobs[i])
	}
	worst := k.worstScore()
	for i := range k.trials {
		t := k.trials[i]
		if t.crashed {
			t.score = worst
		}
		if _, err := study.Storage.CloneTrial(study.ID, k.frozen(&t, distributions)); err != nil {
			return nil, err
		}
	}
	return study, nil
}

// frozen writes a trial as goptuna stores it.
func (k *knowledge) frozen(t *trial, distributions []goptuna.CategoricalDistribution) goptuna.FrozenTrial {
	frozen := goptuna.FrozenTrial{
		State:          goptuna.TrialStateComplete,
		Value:          -t.score,
		InternalParams: make(map[string]float64, len(t.at)),
		Params:         make(map[string]any, len(t.at)),
		Distributions:  make(map[string]any, len(t.at)),
	}
	for i, level := range t.at {
		knob := &k.space.knobs[i]
		if level == inactive || len(knob.Levels) == 1 {
			continue
		}
		frozen.InternalParams[knob.ID] = float64(level)
		frozen.Params[knob.ID] = strconv.Itoa(level)
		frozen.Distributions[knob.ID] = distributions[i]
	}
	return frozen
}

func equalWeights(n int) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}

// repair returns the new configuration nearest to p, and how many knobs it is
// away: p itself, else the least suspect of the changes of one knob, of two,
// and of random changes of more and more knobs.
func (k *knowledge) repair(ctx context.Context, p point, doubt *suspicion) (point, int, error) {
	const limit = 0.5 // more than this share of the crashes explained is avoided
	if k.isNew(p) && doubt.of(p) < limit {
		return p, 0, nil
	}
	fallback, fallbackDistance := point(nil), 0
	if k.isNew(p) {
		fallback = p
	}
	for distance := 1; distance <= len(p); distance++ {
		best, bestDoubt := point(nil), math.Inf(1)
		for n := range uint64(256) {
			candidate := k.scatter(p, distance, k.dice.named("repair").next(uint64(distance)).next(n))
			if d := doubt.of(candidate); d < bestDoubt && k.isNew(candidate) {
				best, bestDoubt = candidate, d
			}
		}
		if bestDoubt < limit {
			return best, distance, nil
		}
		if fallback == nil && best != nil {
			fallback, fallbackDistance = best, distance
		}
	}
	if fallback != nil {
		return fallback, fallbackDistance, nil
	}
	anywhere, err := k.anyNew(ctx, k.dice.named("repair"))
	return anywhere, len(p), err
}

// scatter changes the levels of some knobs at random.
func (k *knowledge) scatter(p point, changes int, d dice) point {
	changed := p
	for n := range uint64(changes) {
		i := d.next(n).intN(len(p))
		if changed[i] != inactive {
			changed = k.space.with(changed, i, d.next(n).named("level").intN(len(k.space.knobs[i].Levels)))
		}
	}
	return changed
}
