package problems

import (
	"math"
	"math/rand/v2"
	"slices"
)

// TimeToFirstToken is the metric that WithLimit limits.
const TimeToFirstToken = "ttft_p99"

// limit is a largest allowed value of a second metric. The metric is given as the
// logarithm of its ratio to the metric's scale.
type limit struct {
	name   string
	metric func(at []int) float64
	most   float64
	noise  float64 // standard deviation of the logarithm, over launches
}

// margin is how far the limit is kept, below 0 when it is broken.
func (l *limit) margin(at []int) float64 { return l.most - l.metric(at) }

// Of the 99th percentile of the time to first token.
const (
	limitSpread = 0.25 // standard deviation of its logarithm over random configurations
	limitNoise  = 0.03 // of one launch
	limitSlack  = 0.05 // that the default has at least
	limitCost   = 0.03
)

// WithLimit adds a 99th percentile of the time to first token that may not exceed
// a limit. It depends on all knobs, in a way that has nothing to do with the
// objective; its logarithm has a standard deviation of 25 % over random
// configurations. The limit cuts off at most the given share of the configurations
// that run, never the default, and the best of them: it costs 3 % of the optimum
// at least, or what it costs at most in many draws.
func (p *Problem) WithLimit(share float64) *Problem {
	const tries = 60
	random, points := p.random(forLimit), p.running()
	var limited *Problem
	for range tries {
		metric := p.secondMetric(random, points)
		most := max(quantile(metric, points, 1-share), metric(p.defaults())+limitSlack)
		other := *p
		if other.limit = (&limit{name: TimeToFirstToken, metric: metric, most: most, noise: limitNoise}); limited == nil {
			limited = &other
		}
		if other.limit.margin(p.best) >= 0 {
			continue
		}
		if other.findOptimum(2); p.better(limited.optimum, other.optimum) {
			limited = &other
		}
		if p.distance(limited.optimum) >= limitCost {
			break
		}
	}
	limited.findOptimum(optimumStarts)
	return limited
}

// secondMetric draws the logarithm of a metric that is better when smaller.
func (p *Problem) secondMetric(random *rand.Rand, points [][]int) func(at []int) float64 {
	other := p.unrelated(random)
	mixed := standardized(func(at []int) float64 { return -math.Log(other.value(at)) }, points)
	return func(at []int) float64 { return limitSpread * mixed(at) }
}

func quantile(metric func(at []int) float64, points [][]int, share float64) float64 {
	list := make([]float64, len(points))
	for i, at := range points {
		list[i] = metric(at)
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(math.Round(share*float64(len(list)))))]
}
