// Package problems draws synthetic tuning problems at random, with a known
// optimum, so that samplers can be compared without a server.
//
// A problem has a space, a noise-free objective (tokens per second, more is
// better), configurations that crash, and relaunch noise. Two families exist:
//
//   - Server follows the cost of one decode step of a speculating inference
//     server on several GPUs: compute plus communication, whose factors depend on
//     protocol, algorithm, channels, buffers and so on with interactions, and
//     accepted tokens against the cost of drafting. 13 knobs, about 1.4e9
//     configurations, a sixth of them crash.
//   - Table has any number of knobs with random main effects and random pairwise
//     interactions of a given share, some knobs without any effect.
//
// Labels, optima, interactions and crash rules are drawn anew for each seed, so
// that no sampler gains from the order in which levels are listed.
package problems

import (
	"math"
	"math/rand/v2"
	"slices"

	"nocturne/search"
)

// Problem is one objective over one space.
type Problem struct {
	Name  string
	Space *search.Space
	// Noise is the standard deviation of one launch, relative to the value.
	Noise float64
	// Drift is the relative change of all values over 100 trials.
	Drift float64

	knobs   []search.Knob
	levels  []map[search.Value]int
	parents []int    // knob that decides whether this one matters, or absent
	matters [][]bool // by level of the parent
	start   []int    // levels of the defaults
	truth   func(at []int) (value float64, ok bool)
	best    []int
	optimum float64
	seed    uint64
}

// absent is the level of a knob that does not matter.
const absent = -1

func newProblem(name string, seed uint64, knobs []search.Knob, truth func([]int) (float64, bool)) *Problem {
	space, err := search.NewSpace(knobs, nil, nil)
	if err != nil {
		panic("problems: " + err.Error()) // the knobs are made here, not given
	}
	p := &Problem{Name: name, Space: space, Noise: 0.015, knobs: knobs, truth: truth, seed: seed}
	for _, knob := range knobs {
		levels := make(map[search.Value]int, len(knob.Levels))
		for i, level := range knob.Levels {
			levels[level] = i
		}
		p.levels = append(p.levels, levels)
		p.start = append(p.start, levels[knob.Default])
		p.addCondition(&knob.When)
	}
	return p
}

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
	at := make([]int, len(p.knobs))
	for i, knob := range p.knobs {
		at[i] = absent
		if value, ok := values[knob.ID]; ok {
			at[i] = p.levels[i][value]
		}
	}
	return p.truth(at)
}

// Optimum is the best noise-free value of any configuration.
func (p *Problem) Optimum() float64 { return p.optimum }

// Best is a configuration that reaches the optimum.
func (p *Problem) Best() search.Values { return p.values(p.best) }

func (p *Problem) values(at []int) search.Values {
	values := make(search.Values, len(at))
	for i, level := range at {
		if level != absent {
			values[p.knobs[i].ID] = p.knobs[i].Levels[level]
		}
	}
	return values
}

// Regret is the distance of a configuration from the optimum as a share of the
// optimum; 1 for one that crashes.
func (p *Problem) Regret(values search.Values) float64 {
	value, ok := p.Truth(values)
	if !ok {
		return 1
	}
	return 1 - value/p.optimum
}

// Observe launches a configuration as the given trial of a campaign. The noise
// depends on the problem's seed, the campaign and the trial alone.
func (p *Problem) Observe(values search.Values, campaign uint64, trial int) search.Observation {
	observation := search.Observation{Trial: trial, Values: values}
	value, ok := p.Truth(values)
	if !ok {
		observation.Outcome = search.Infeasible
		return observation
	}
	random := rand.New(rand.NewPCG(p.seed^campaign<<32, uint64(trial)))
	observation.Value = value * (1 + p.Noise*random.NormFloat64()) * (1 + p.Drift*float64(trial)/100)
	return observation
}

// CrashShare is the share of random configurations that crash.
func (p *Problem) CrashShare() float64 {
	const draws = 4000
	random := rand.New(rand.NewPCG(p.seed, 77))
	crashed := 0
	at := make([]int, len(p.knobs))
	for range draws {
		p.draw(at, random)
		if _, ok := p.truth(at); !ok {
			crashed++
		}
	}
	return float64(crashed) / draws
}

func (p *Problem) draw(at []int, random *rand.Rand) {
	for i := range at {
		at[i] = random.IntN(len(p.knobs[i].Levels))
	}
	p.settle(at)
}

func (p *Problem) addCondition(when *search.Condition) {
	parent, matters := absent, []bool(nil)
	for j := range p.parents {
		if p.knobs[j].ID == when.Knob {
			parent = j
			for _, level := range p.knobs[j].Levels {
				matters = append(matters, slices.Contains(when.In, level) != when.Not)
			}
		}
	}
	p.parents, p.matters = append(p.parents, parent), append(p.matters, matters)
}

// settle makes knobs absent or present as their conditions say.
func (p *Problem) settle(at []int) {
	for i, parent := range p.parents {
		switch {
		case parent == absent:
		case at[parent] == absent || !p.matters[i][at[parent]]:
			at[i] = absent
		case at[i] == absent:
			at[i] = p.start[i]
		}
	}
}

// findOptimum climbs from many starts by changes of one and two knobs. The
// objectives are smooth enough in that neighbourhood that the best of the climbs
// is the optimum; the tests compare it with a full search on small problems.
func (p *Problem) findOptimum(starts int) {
	random := rand.New(rand.NewPCG(p.seed, 78))
	p.optimum = math.Inf(-1)
	at := make([]int, len(p.knobs))
	for start := range starts {
		p.draw(at, random)
		if start == 0 {
			copy(at, p.start)
			p.settle(at)
		}
		if value := p.climb(at); value > p.optimum {
			p.optimum, p.best = value, slices.Clone(at)
		}
	}
}

func (p *Problem) value(at []int) float64 {
	value, ok := p.truth(at)
	if !ok {
		return math.Inf(-1)
	}
	return value
}

// climb improves at until no change of one or two knobs helps.
func (p *Problem) climb(at []int) float64 {
	value := p.value(at)
	for improved := true; improved; {
		improved = false
		for i := range at {
			improved = p.improve(at, &value, i, i) || improved
		}
		if improved {
			continue
		}
		for i := range at {
			for j := range i {
				improved = p.improve(at, &value, i, j) || improved
			}
		}
	}
	return value
}

// improve sets knobs i and j to their best levels together.
func (p *Problem) improve(at []int, value *float64, i, j int) bool {
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
			if candidate := p.value(trial); candidate > *value*(1+1e-12) {
				*value, improved = candidate, true
				copy(at, trial)
			}
		}
	}
	return improved
}
