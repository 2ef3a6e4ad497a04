package problems

import (
	"math"
	"slices"
)

// optimumStarts is how many climbs look for the optimum of a problem.
const optimumStarts = 16

// findOptimum climbs from many starts by changes of one and two knobs. The
// objectives are smooth enough in that neighbourhood that the best of the climbs
// is the optimum; the tests compare it with a full search on small problems.
func (p *Problem) findOptimum(starts int) {
	random := p.random(forOptimum)
	best := math.Inf(-1)
	for start := range starts {
		at := p.draw(random)
		if start == 0 {
			at = p.defaults()
		}
		if score := p.climb(at); score > best {
			best, p.best = score, slices.Clone(at)
		}
	}
	p.optimum = p.model.value(p.best)
}

// climb improves at until no change of one or two knobs helps.
func (p *Problem) climb(at []int) float64 {
	score := p.score(at)
	for improved := true; improved; {
		improved = false
		for i := range at {
			improved = p.improve(at, &score, i, i) || improved
		}
		if improved {
			continue
		}
		for i := range at {
			for j := range i {
				improved = p.improve(at, &score, i, j) || improved
			}
		}
	}
	return score
}

// improve sets knobs i and j to their best levels together.
func (p *Problem) improve(at []int, score *float64, i, j int) bool {
	trial, kept, improved := make([]int, len(at)), slices.Clone(at), false
	for a := range p.knobs[i].Levels {
		for b := range p.knobs[j].Levels {
			if i == j && b > 0 {
				break
			}
			copy(trial, kept)
			trial[j] = b
			trial[i] = a
			p.settle(trial)
			if candidate := p.score(trial); candidate > *score+1e-12*math.Abs(candidate) {
				*score, improved = candidate, true
				copy(at, trial)
			}
		}
	}
	return improved
}
