// Package problems draws synthetic tuning problems at random, with a known
// optimum, so that samplers can be compared without a server, and reads recorded
// tables of real ones.
//
// A problem has a space, a noise-free objective, configurations that crash, and
// the noise of a launch. The families are:
//
//   - Server follows the cost of one decode step of a speculating inference
//     server on several GPUs: compute plus communication, whose factors depend on
//     protocol, algorithm, channels, buffers and so on with interactions, and
//     accepted tokens against the cost of drafting. 13 knobs, about 1.4e9
//     configurations, a sixth of them crash.
//   - RuledServers are the same with real settings of NCCL, many of which come to
//     the same launch.
//   - Table has any number of knobs with random main effects and random pairwise
//     interactions of a given share, some knobs without any effect. Mixed draws
//     its options at random too.
//   - Recorded is a table of measurements.
//
// Labels, optima, interactions and crash rules are drawn anew for each seed, so
// that no sampler gains from the order in which levels are listed.
//
// What a sampler may know besides is added to a problem: counters (WithCounters),
// a screening by a cheap benchmark (Screening), an earlier campaign on a sibling
// problem (Sibling, Unrelated, Learned), a recipe (Near), a limit on a second
// metric (WithLimit).
package problems

import (
	"math"
	"math/rand/v2"

	"nocturne/search"
)

// Problem is one objective over one space. Its exported fields may be set before
// a campaign; the methods that add knowledge return a copy.
type Problem struct {
	Name     string
	Space    *search.Space
	Minimize bool
	// Noise is the standard deviation of one launch, relative to the value.
	Noise float64
	// SpeculationNoise is that of a launch that speculates; 0 is the same as Noise.
	SpeculationNoise float64
	// RoundShare is the standard error that a launch reports of its rounds, as a
	// share of the launch's own deviation; 0 reports none.
	RoundShare float64
	// Drift is the relative change of all values over 100 trials.
	Drift float64
	// Hosts is how many trials are measured at the same time; 0 counts as 1.
	Hosts int

	// What a campaign tells its sampler besides its own trials.
	Starts  []search.Start
	Related []search.Related
	Factors []search.Factor

	grid
	model   model
	limit   *limit
	best    []int
	optimum float64
	seed    uint64
}

// model decides what configurations do, without noise.
type model interface {
	crashes(at []int) bool
	// value is defined for what crashes too.
	value(at []int) float64
}

// drawn is a model whose effects were drawn.
type drawn interface {
	model
	// jittered is a copy with every effect off by a random share.
	jittered(random *rand.Rand, share float64) drawn
	// redrawn is another model of the same space, of about the same difficulty.
	redrawn(random *rand.Rand, start []int) drawn
}

// speculating is a model in which some configurations speculate.
type speculating interface {
	// acceptance is the mean number of tokens of one step, 1 without speculation.
	acceptance(at []int) float64
	speculates(at []int) bool
}

func newProblem(name string, seed uint64, space *search.Space, m model) *Problem {
	return &Problem{Name: name, Space: space, Noise: 0.015, grid: newGrid(space), model: m, seed: seed}
}

// mustSpace builds a space from knobs that are made here, not given.
func mustSpace(knobs []search.Knob, constraints []search.Constraint, canonicalize func(search.Values) search.Values) *search.Space {
	space, err := search.NewSpace(knobs, constraints, canonicalize)
	if err != nil {
		panic("problems: " + err.Error())
	}
	return space
}

// random is a source of dice of its own for a purpose.
func (p *Problem) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, purpose)) }

// Purposes of dice; 1 and 2 draw the problems themselves.
const (
	forCrashShare = 77 + iota
	forOptimum
	forSibling
	forUnrelated
	forScreening
	forResidual
	forLimit
	forRecipe
)

// defaultBetween reports whether the default lies at such a distance from the
// optimum, found anew from some starts unless starts is 0.
func (p *Problem) defaultBetween(least, most float64, starts int) bool {
	if starts > 0 {
		p.findOptimum(starts)
	}
	regret := p.Regret(p.Space.Default())
	return regret > least && regret < most
}

// Truth is the noise-free value of a configuration; false when it crashes.
func (p *Problem) Truth(values search.Values) (float64, bool) {
	at := p.at(values)
	if p.model.crashes(at) {
		return 0, false
	}
	return p.model.value(at), true
}

// Keeps reports whether a configuration runs and keeps the limit, if there is one.
func (p *Problem) Keeps(values search.Values) bool {
	at := p.at(values)
	return !p.model.crashes(at) && (p.limit == nil || p.limit.margin(at) >= 0)
}

// Optimum is the best noise-free value of any configuration that keeps the limit.
func (p *Problem) Optimum() float64 { return p.optimum }

// Best is a configuration that reaches the optimum.
func (p *Problem) Best() search.Values { return p.values(p.best) }

// Regret is the distance of a configuration from the optimum as a share of the
// optimum; 1 for one that crashes. One that breaks the limit is worth no more than
// the default, since the check at the end of a campaign refuses it.
func (p *Problem) Regret(values search.Values) float64 {
	value, ok := p.Truth(values)
	if !ok {
		return 1
	}
	if !p.Keeps(values) {
		value, _ = p.Truth(p.Space.Default())
	}
	return p.distance(value)
}

// distance of a value from the optimum, as a share of the optimum.
func (p *Problem) distance(value float64) float64 {
	if p.Minimize {
		return value/p.optimum - 1
	}
	return 1 - value/p.optimum
}

// CrashShare is the share of random configurations that crash.
func (p *Problem) CrashShare() float64 {
	const draws = 4000
	random := p.random(forCrashShare)
	crashed := 0
	for range draws {
		if p.model.crashes(p.draw(random)) {
			crashed++
		}
	}
	return float64(crashed) / draws
}

// score is what the optimum has most of, minus infinity for what may not win.
func (p *Problem) score(at []int) float64 {
	if p.model.crashes(at) || (p.limit != nil && p.limit.margin(at) < 0) {
		return math.Inf(-1)
	}
	if p.Minimize {
		return -p.model.value(at)
	}
	return p.model.value(at)
}
