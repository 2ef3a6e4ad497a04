package problems

import (
	"math"
	"math/rand/v2"
	"strings"

	"nocturne/search"
)

// ScreeningOptions describe a screening by a cheap benchmark.
type ScreeningOptions struct {
	// Measurements is how many random configurations are measured; those that
	// crash are left out.
	Measurements int
	// Correlation is that of the logarithms of the benchmark's result and of the
	// objective over random configurations that run, positive when what the benchmark
	// finds good is good.
	Correlation float64
	// Systematic says what the rest is. If set, the benchmark follows a law of its
	// own there: the logarithm of the objective of an unrelated problem, less its
	// correlation with this one. If not, the rest is drawn for each configuration by
	// itself; measuring it again would give the same.
	Systematic bool
	// CollectivesOnly varies the knobs of NCCL alone, and compares the benchmark with
	// the objective at the defaults of the others.
	CollectivesOnly bool
}

// screeningSpread is the standard deviation of the logarithm of the benchmark's
// result over random configurations, and screeningNoise that of repeating it.
const (
	screeningSpread = 0.25
	screeningNoise  = 0.01
	screeningScale  = 40 // microseconds
)

// WithScreening adds measurements by a cheap benchmark, in microseconds, at random
// configurations. Their logarithms have a standard deviation of 25 %.
func (p *Problem) WithScreening(options ScreeningOptions) *Problem {
	varies := p.everything()
	if options.CollectivesOnly {
		for i := range varies {
			varies[i] = isCollective(p.knobs[i].ID)
		}
	}
	metric := p.screen(options, varies)
	random := p.random(forResidual)
	related := search.Related{Name: "screening", Minimize: true}
	for _, at := range p.running()[:options.Measurements] {
		latency := screeningScale * math.Exp(-screeningSpread*metric(at)+screeningNoise*random.NormFloat64())
		related.History = append(related.History, search.Observation{
			Trial: len(related.History) + 1, Values: p.named(at, varies), Value: latency,
		})
	}
	screened := *p
	screened.Related = append(screened.Related[:len(screened.Related):len(screened.Related)], related)
	return &screened
}

// screen is the benchmark's result, more being better.
func (p *Problem) screen(options ScreeningOptions, varies []bool) func(at []int) float64 {
	other := p.unrelated(p.random(forUnrelated))
	if options.Systematic {
		return p.correlated(other, options.Correlation, varies)
	}
	alike := p.correlated(other, 1, varies)
	return func(at []int) float64 {
		rest := rand.New(rand.NewPCG(p.seed, forResidual^hash(p.reduced(at, varies)))).NormFloat64()
		return options.Correlation*alike(at) + math.Sqrt(1-options.Correlation*options.Correlation)*rest
	}
}

// named are the values of the knobs that vary.
func (p *Problem) named(at []int, varies []bool) search.Values {
	values := p.values(at)
	for i := range at {
		if !varies[i] {
			delete(values, p.knobs[i].ID)
		}
	}
	return values
}

// hash is FNV-1a over levels.
func hash(at []int) uint64 {
	sum := uint64(14695981039346656037)
	for _, level := range at {
		sum = (sum ^ uint64(level+1)) * 1099511628211
	}
	return sum
}

func isCollective(id string) bool  { return strings.HasPrefix(id, "NCCL_") }
func isSpeculative(id string) bool { return strings.HasPrefix(id, "speculative.") }
