package search

import (
	"context"
	"fmt"
	"math"

	"nocturne/search/internal/gp"
)

// NewGaussian returns a sampler that models the objective with a Gaussian process
// over all knobs and proposes the configuration with the largest expected
// improvement, weighed by the probability that it runs at all.
//
// What makes it work with a few dozen trials:
//
//   - The model is additive in the knobs with interactions of pairs and a joint
//     rest, whose shares are fitted: what is learned of one protocol holds for
//     another unless the data say otherwise.
//   - Effects are expected in absolute size, about 10 % for a knob, on the
//     logarithm of the ratio to the first measurement; values far below it are
//     compressed, since how bad a bad configuration is matters little.
//   - Steps are short: a proposal changes at most four knobs against one of the
//     best configurations, ordered ones by at most a quarter of their range, more
//     when the search stalls. Small spaces are looked at as a whole.
//   - A second process learns which configurations crash.
//   - Pending configurations count as measured with the value that is expected.
//
// It keeps no state and does not depend on the order of the knobs.
func NewGaussian() Sampler { return gaussian{} }

type gaussian struct{}

func (gaussian) Name() string { return "auto" }

func (gaussian) Ask(ctx context.Context, request Request) (Proposal, error) {
	k := newKnowledge(request)
	if _, measured := k.best(); !measured {
		return k.begin(ctx)
	}
	m, err := k.newBelief()
	if err != nil {
		// Only values at the limits of floating point come here.
		return descent{}.Ask(ctx, request)
	}
	if c, ok := m.choose(m.candidates(ctx)); ok {
		return k.proposal(c.at, m.reason(&c)), nil
	}
	p, err := k.anyNew(ctx, k.dice)
	if err != nil {
		return Proposal{}, err
	}
	return k.proposal(p, "drawn at random: all changes near the best configurations are known"), nil
}

// clearCrashes is the number of crashes from which on a common cause is taken
// for certain.
const clearCrashes = 3

// choose takes the best new candidate. When every crash so far has one level in
// common, with which nothing ever ran, candidates with that level come last: the
// process that learns crashes expects what it has not seen to run, and would try
// the corner once more for each of its edges.
func (b *belief) choose(candidates []candidate) (candidate, bool) {
	doubt := b.newSuspicion()
	var doubtful *candidate
	for i := range candidates {
		c := &candidates[i]
		switch {
		case !b.isNew(c.at):
		case doubt.crashes < clearCrashes || doubt.of(c.at) < 1:
			return *c, true
		case doubtful == nil:
			doubtful = c
		}
	}
	if doubtful == nil {
		return candidate{}, false
	}
	return *doubtful, true
}

// begin proposes the baseline, and while nothing has been measured what is
// nearest to it and not suspect of crashing.
func (k *knowledge) begin(ctx context.Context) (Proposal, error) {
	start := k.space.defaultPoint()
	doubt := k.newSuspicion()
	p, distance, err := k.repair(ctx, start, &doubt)
	if err != nil {
		return Proposal{}, err
	}
	reason := "the baseline"
	if distance > 0 {
		reason = "near the baseline, which cannot be had: " + k.differences(p, start)
	}
	return k.proposal(p, reason), nil
}

// belief is what the processes say about configurations.
type belief struct {
	*knowledge
	objective *gp.Model
	running   *gp.Model // nil while nothing has crashed
	bases     []point   // the best configurations by the model's mean, best first
	bestMean  float64
	stalled   int // trials since the best value last rose
}

// unit is the scale of scores inside the model: effects of a tenth are ordinary.
const unit = 0.1

// compress turns a score into the model's value. Values more than one unit below
// the reference count logarithmically.
func compress(score float64) float64 {
	y := score / unit
	if y < -1 {
		return -1 - math.Log(-y)
	}
	return y
}

// reason says in words why a candidate was chosen.
func (b *belief) reason(c *candidate) string {
	gain := 100 * (math.Exp(unit*(c.mean-b.bestMean)) - 1)
	spread := 100 * unit * c.spread
	text := fmt.Sprintf("expected %+.1f ± %.1f %% against the best so far with %s", gain, spread, b.differences(c.at, c.base))
	if c.crash > 0.1 {
		text += fmt.Sprintf("; may crash (%.0f %%)", 100*c.crash)
	}
	if hope := 100 * unit * math.Exp(c.improvement); hope < 100*b.noise()/10 {
		text += "; little is left to gain"
	}
	return text
}
