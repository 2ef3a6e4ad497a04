package search

import (
	"context"
	"fmt"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/tpe"
)

// NewTPE returns goptuna's tree-structured Parzen estimator (v0.9.0), guarded.
//
// Each ask builds a study in memory from the history and asks goptuna for one
// trial. What is done from outside, because of how goptuna behaves:
//
//   - Every knob is given as a categorical over its levels. goptuna's density
//     ratio is NaN for numeric parameters most of the time, its integer ranges miss
//     their top value or leave the range, and its mixture draws use the global
//     random source; none of that can be mended from outside. Its categorical
//     estimator has none of these faults once more candidates are asked for than
//     there are levels: it then compares all levels, draws nothing, and a proposal
//     is repeatable. What is lost is that neighbouring levels of an ordered knob
//     do not learn from each other.
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

func (s tpeSampler) Ask(ctx context.Context, request Request) (Proposal, error) {
	return askGoptuna(ctx, request, func(k *knowledge) (point, string, error) {
		if len(k.trials) < startup {
			return nil, "", fmt.Errorf("the estimator starts after %d configurations", startup)
		}
		p, err := k.estimate(ctx, s.Name())
		return p, "the levels that are most frequent among the best trials", err
	})
}

// estimate asks goptuna's estimator for a point.
func (k *knowledge) estimate(ctx context.Context, name string) (point, error) {
	study, err := newStudy(ctx, name, k.space, k.space.choiceParameters(), goptuna.StudyOptionSampler(newEstimator()))
	if err != nil {
		return nil, err
	}
	if err := study.tell(k.toldScores()...); err != nil {
		return nil, err
	}
	return study.ask()
}

// newEstimator makes goptuna's sampler. With more candidates than any knob has
// levels its categorical part draws nothing at random.
func newEstimator() goptuna.Sampler {
	return tpe.NewSampler(
		tpe.SamplerOptionNumberOfStartupTrials(0),
		tpe.SamplerOptionNumberOfEICandidates(maxLevels+1),
		tpe.SamplerOptionWeights(equalWeights),
	)
}

func equalWeights(n int) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}
