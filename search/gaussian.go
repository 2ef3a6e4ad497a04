package search

import (
	"context"
	"fmt"
	"math"
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

func (gaussian) Ask(ctx context.Context, request Request) (proposal Proposal, err error) {
	defer func() {
		// A night must not end because of a fault in here.
		if fault := recover(); fault != nil {
			proposal, err = descent{}.Ask(ctx, request)
			proposal.Reason += fmt.Sprintf(" (by descent: the model failed: %v)", fault)
		}
	}()
	k := newKnowledge(request)
	if _, measured := k.best(); !measured {
		return k.begin(ctx)
	}
	b, err := newBelief(k, relations(request))
	if err != nil {
		// Only values at the limits of floating point come here.
		proposal, err = descent{}.Ask(ctx, request)
		proposal.Reason += " (by descent: the values cannot be modelled)"
		return proposal, err
	}
	if c, ok := b.choose(b.candidates(ctx)); ok {
		proposal = k.proposal(c.at, b.reason(&c))
		proposal.Expected = b.expected(&c)
		return proposal, nil
	}
	p, err := k.anyNew(ctx, k.dice)
	if err != nil {
		return Proposal{}, err
	}
	return k.proposal(p, "drawn at random: all changes near the best configurations are known"), nil
}

// clearCrashes is the number of crashes of one cause from which on a common level
// is taken for certain.
const clearCrashes = 3

// likely is the probability of a crash from which on a candidate comes last.
const likely = 0.5

// choose takes the best new candidate. When every crash of one cause has one level
// in common, with which nothing ever ran, candidates with that level come last:
// the process that learns crashes expects what it has not seen to run, and would
// try the corner once more for each of its edges. So do candidates that are likely
// to crash: near the end, when little is left to gain anywhere, the acquisition
// would prefer them for being unknown.
func (b *belief) choose(candidates []candidate) (candidate, bool) {
	doubts := b.suspicions(clearCrashes)
	var doubtful *candidate
	for i := range candidates {
		c := &candidates[i]
		switch {
		case !b.isNew(c.at):
		case !certain(doubts, c.at) && c.crash < likely:
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

// certain reports whether a point has a level that explains all crashes of some
// cause.
func certain(doubts []suspicion, p point) bool {
	for i := range doubts {
		if doubts[i].of(p) == 1 {
			return true
		}
	}
	return false
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
