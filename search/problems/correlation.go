package problems

import (
	"math"
	"math/rand/v2"
	"slices"
)

// population is the number of random configurations over which correlations and
// shares are set.
const population = 4000

// running are random configurations that do not crash.
func (p *Problem) running() [][]int {
	random := p.random(forScreening)
	list := make([][]int, 0, population)
	for len(list) < population {
		if at := p.draw(random); !p.model.crashes(at) {
			list = append(list, at)
		}
	}
	return list
}

// reduced leaves the knobs that varies does not name at their defaults.
func (p *Problem) reduced(at []int, varies []bool) []int {
	reduced := p.defaults()
	for i := range at {
		if varies[i] {
			reduced[i] = at[i]
		}
	}
	p.settle(reduced)
	return reduced
}

func (p *Problem) everything() []bool {
	return slices.Repeat([]bool{true}, len(p.knobs))
}

// correlated is a metric with mean 0 and variance 1 over random configurations
// that run, whose correlation with the logarithm of the objective there is exactly
// the one asked for. The rest is the logarithm of the other model's objective,
// less what it happens to have in common with this one.
//
// Only the knobs in varies are varied: both objectives are taken with the others
// at their defaults.
func (p *Problem) correlated(other model, correlation float64, varies []bool) func(at []int) float64 {
	truth := func(at []int) float64 { return math.Log(p.model.value(p.reduced(at, varies))) }
	foreign := func(at []int) float64 { return math.Log(other.value(p.reduced(at, varies))) }
	points := p.running()
	truth = standardized(truth, points)
	foreign = standardized(foreign, points)
	common := 0.0
	for _, at := range points {
		common += truth(at) * foreign(at) / float64(len(points))
	}
	rest := standardized(func(at []int) float64 { return foreign(at) - common*truth(at) }, points)
	return func(at []int) float64 {
		return correlation*truth(at) + math.Sqrt(1-correlation*correlation)*rest(at)
	}
}

// standardized has mean 0 and variance 1 over the points.
func standardized(metric func(at []int) float64, points [][]int) func(at []int) float64 {
	mean, square := 0.0, 0.0
	for _, at := range points {
		value := metric(at)
		mean += value / float64(len(points))
		square += value * value / float64(len(points))
	}
	deviation := math.Sqrt(max(square-mean*mean, 1e-12))
	return func(at []int) float64 { return (metric(at) - mean) / deviation }
}

// unrelated is a model of the same space that has nothing to do with the problem.
func (p *Problem) unrelated(random *rand.Rand) drawn {
	return p.model.(drawn).redrawn(random, p.defaults())
}
