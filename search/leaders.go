package search

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Leader is a measured configuration that cannot be told from the best one.
type Leader struct {
	Values Values
	// Ratio of its objective to that of the best configuration as the model sees it,
	// 1 for the best itself and below 1 for all others; Interval holds 95 % of its
	// probability.
	Ratio    float64
	Interval [2]float64
	// Launches that were measured.
	Launches int
	// Changes is how many knobs are not at their defaults.
	Changes int
	// Simplest is set for the leader with the fewest changes, the better one of
	// equals.
	Simplest bool
}

// ErrNoRatios says that values of 0 or below were measured, which have no ratios.
var ErrNoRatios = errors.New("the measured values are not all above 0, so their ratios say nothing")

// tiedAt is the quantile of the standard normal distribution for a one-sided test
// at 5 %: a configuration that falls short by less is tied with the best.
const tiedAt = 1.645

// mostLeaders is how many of the best configurations are compared.
const mostLeaders = 32

// Leaders fits the model of the auto sampler to a history and returns the measured
// configurations that are statistically tied with the best of them, the best
// first. Those that break a limit are left out while others keep it. It returns
// ErrTooLittle when nothing was measured and ErrNoRatios when not all values are
// positive.
func Leaders(request Request) ([]Leader, error) {
	k := newKnowledge(request)
	if _, measured := k.best(); !measured {
		return nil, ErrTooLittle
	}
	if !k.ratios {
		return nil, ErrNoRatios
	}
	b, err := newBelief(k, relations(request))
	if err != nil {
		return nil, err
	}
	best := b.ranked()
	means, covariance := b.objective.Averages(b.singles(best))
	var leaders []Leader
	for i, t := range best {
		behind := means[0] - means[i]
		spread := math.Sqrt(max(0, covariance.At(0, 0)+covariance.At(i, i)-2*covariance.At(0, i)))
		if behind > tiedAt*spread {
			continue
		}
		leaders = append(leaders, Leader{
			Values: k.space.values(t.at), Launches: t.count, Changes: k.space.changes(t.at),
			Ratio:    math.Exp(-unit * behind),
			Interval: [2]float64{math.Exp(unit * (-behind - 1.96*spread)), math.Exp(unit * (-behind + 1.96*spread))},
		})
	}
	simplest := slices.MinFunc(indices(leaders), func(i, j int) int { return cmp.Compare(leaders[i].Changes, leaders[j].Changes) })
	leaders[simplest].Simplest = true
	return leaders, nil
}

func indices[T any](list []T) []int {
	positions := make([]int, len(list))
	for i := range positions {
		positions[i] = i
	}
	return positions
}

// ranked lists the measured trials that may win by the mean of the process.
func (b *belief) ranked() []*trial {
	var list []*trial
	means := make(map[*trial]float64)
	for i := range b.trials {
		if t := &b.trials[i]; t.count > 0 && t.broken == !b.met {
			list = append(list, t)
			means[t] = b.objective.Mean(b.effective(t.at))
		}
	}
	slices.SortStableFunc(list, func(x, y *trial) int { return cmp.Compare(means[y], means[x]) })
	return list[:min(len(list), mostLeaders)]
}

// changes counts the knobs that are not as in the default, those of them that the
// default has no value for included.
func (s *Space) changes(p point) int {
	start, count := s.defaultPoint(), 0
	for i := range p {
		if p[i] != start[i] && p[i] != inactive {
			count++
		}
	}
	return count
}

// singles makes a group of each trial.
func (k *knowledge) singles(trials []*trial) [][][]int {
	groups := make([][][]int, len(trials))
	for i, t := range trials {
		groups[i] = [][]int{k.effective(t.at)}
	}
	return groups
}
