package problems

import (
	"cmp"
	"fmt"
	"slices"

	"nocturne/search"
)

// Sibling is the same job under other circumstances, as another driver or another
// model makes it: the same space, defaults and crashes, every effect off by the
// share: a factor f of the time becomes f times exp(share times a normal deviate).
func (p *Problem) Sibling(share float64) *Problem {
	return p.with("sibling", p.model.(drawn).jittered(p.random(forSibling), share))
}

// Unrelated is a problem of the same space and defaults that has nothing to do
// with this one.
func (p *Problem) Unrelated() *Problem {
	return p.with("unrelated", p.unrelated(p.random(forUnrelated)))
}

func (p *Problem) with(name string, m model) *Problem {
	made := newProblem(fmt.Sprintf("%s of %s", name, p.Name), p.seed^forSibling<<48, p.Space, m)
	made.Noise, made.SpeculationNoise, made.RoundShare = p.Noise, p.SpeculationNoise, p.RoundShare
	made.findOptimum(optimumStarts)
	return made
}

// bestOfEarlier is how many of an earlier campaign's best configurations are
// measured early.
const bestOfEarlier = 2

// WithEarlier adds an earlier campaign: all its measurements, and the best of
// them as starts.
func (p *Problem) WithEarlier(earlier *Run) *Problem {
	told := *p
	told.Related = append(told.Related[:len(told.Related):len(told.Related)],
		search.Related{Name: "earlier campaign", Minimize: p.Minimize, History: earlier.History})
	measured := slices.DeleteFunc(slices.Clone(earlier.History), func(o search.Observation) bool {
		return o.Outcome != search.Measured || breaksLimit(&o)
	})
	slices.SortStableFunc(measured, func(a, b search.Observation) int {
		if p.Minimize {
			return cmp.Compare(a.Value, b.Value)
		}
		return cmp.Compare(b.Value, a.Value)
	})
	for _, o := range measured[:min(len(measured), bestOfEarlier)] {
		told.Starts = append(told.Starts[:len(told.Starts):len(told.Starts)],
			search.Start{Values: o.Values, Reason: "among the best of an earlier campaign"})
	}
	return &told
}

// WithRecipe adds a published configuration as a start: the recipe fits when it is
// this problem's, else it is the best of an unrelated problem.
func (p *Problem) WithRecipe(fits bool) *Problem {
	values := p.near()
	if !fits {
		values = p.Unrelated().Best()
	}
	told := *p
	told.Starts = append(told.Starts[:len(told.Starts):len(told.Starts)], search.Start{Values: values, Reason: "recipe"})
	return &told
}

// near is a random configuration between 1 % and 3 % from the optimum that runs,
// by changes of one to three knobs; the optimum itself when there is none.
func (p *Problem) near() search.Values {
	const draws = 20000
	random := p.random(forRecipe)
	for range draws {
		at := slices.Clone(p.best)
		for range 1 + random.IntN(3) {
			i := random.IntN(len(at))
			if at[i] != absent {
				at[i] = random.IntN(len(p.knobs[i].Levels))
			}
		}
		p.settle(at)
		values := p.values(at)
		if regret := p.Regret(values); p.Keeps(values) && regret >= 0.01 && regret <= 0.03 {
			return values
		}
	}
	return p.Best()
}
