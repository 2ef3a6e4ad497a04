package problems

import (
	"fmt"
	"math"
	"math/rand/v2"

	"nocturne/search"
)

// TableOptions describe a problem of the Table family.
type TableOptions struct {
	Knobs int // number of knobs, at least 1
	// Size, if set, replaces Knobs: about so many configurations, at most 1e15.
	Size float64
	// Levels are the least and the most levels of a knob.
	MinLevels, MaxLevels int
	// Interaction is the share of the variance that lies in pairs of knobs.
	Interaction float64
	// Inert is the share of knobs without any effect.
	Inert float64
	// Crash is the share of random configurations that crash, about.
	Crash float64
	// Published gives every other crash rule to the space as a constraint.
	Published bool
	// Gap is the distance of the default from the optimum, as a share of it.
	Gap float64
}

// table holds the drawn effects of one Table problem, on the logarithm of the
// value.
type table struct {
	options TableOptions
	knobs   []search.Knob
	main    [][]float64 // by knob and level
	pairs   []pairTable
	rules   []crashRule
	scale   float64
}

type pairTable struct {
	a, b   int
	effect [][]float64
}

// crashRule crashes configurations with both knobs at or above a level (or, for
// knobs without order, at exactly that level).
type crashRule struct {
	a, b           int
	levelA, levelB int
	exactA, exactB bool
}

// Table draws a problem of the table family.
func Table(seed uint64, options TableOptions) *Problem {
	random := rand.New(rand.NewPCG(seed, 2))
	for {
		t := newTable(random, options, drawKnobs(random, options))
		problem := newProblem(fmt.Sprintf("table-%d", seed), seed, mustSpace(t.knobs, t.published(), nil), t)
		problem.findOptimum(optimumStarts)
		start, ok := problem.Truth(problem.Space.Default())
		if !ok || start >= 0.98*problem.optimum {
			continue
		}
		// Scaling the logarithms moves the gap to where it is wanted and leaves
		// the optimum where it is.
		t.scale = math.Log(1-options.Gap) / math.Log(start/problem.optimum)
		problem.optimum = t.value(problem.best)
		return problem
	}
}

// Mixed draws a problem of the table family whose options are drawn too: 200 to
// 1e7 configurations, any share of interactions, inert knobs and crashes up to two
// thirds, a half and a quarter, a default 10 to 50 % from the optimum, noise of 0.5
// to 3 %, and a drift of up to 4 % over a night of 40 trials in either direction.
func Mixed(seed uint64) *Problem {
	random := rand.New(rand.NewPCG(seed, 3))
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*random.Float64() }
	problem := Table(seed, TableOptions{
		Size: math.Exp(between(math.Log(200), math.Log(1e7))), MinLevels: 2, MaxLevels: 9,
		Interaction: between(0, 0.67), Inert: between(0, 0.5), Crash: between(0, 0.25),
		Published: random.IntN(2) == 0, Gap: between(0.1, 0.5),
	})
	problem.Name = fmt.Sprintf("mixed-%d", seed)
	problem.Noise = math.Exp(between(math.Log(0.005), math.Log(0.03)))
	problem.Drift = between(-0.1, 0.1)
	return problem
}

func (t *table) crashes(at []int) bool {
	for i := range t.rules {
		rule := &t.rules[i]
		if beyond(at[rule.a], rule.levelA, rule.exactA) && beyond(at[rule.b], rule.levelB, rule.exactB) {
			return true
		}
	}
	return false
}

func beyond(level, limit int, exact bool) bool {
	if exact {
		return level == limit
	}
	return level >= limit
}

func (t *table) value(at []int) float64 {
	sum := 0.0
	for i, level := range at {
		sum += t.main[i][level]
	}
	for i := range t.pairs {
		sum += t.pairs[i].effect[at[t.pairs[i].a]][at[t.pairs[i].b]]
	}
	return 100 * math.Exp(t.scale*sum)
}

// published are the constraints that the space is told.
func (t *table) published() []search.Constraint {
	if !t.options.Published {
		return nil
	}
	var constraints []search.Constraint
	for i := 0; i < len(t.rules); i += 2 {
		rule := &t.rules[i]
		source := fmt.Sprintf("!(%s && %s)", t.reaches(rule.a, rule.levelA, rule.exactA), t.reaches(rule.b, rule.levelB, rule.exactB))
		constraints = append(constraints, search.Constraint{Source: source})
	}
	return constraints
}

// reaches writes the condition of beyond in the language of constraints.
func (t *table) reaches(knob, level int, exact bool) string {
	if exact {
		return fmt.Sprintf("%s == %q", t.knobs[knob].ID, t.knobs[knob].Levels[level])
	}
	return fmt.Sprintf("%s >= %s", t.knobs[knob].ID, t.knobs[knob].Levels[level])
}

// redrawn draws other effects and crashes for the same knobs; published rules
// are not those of the space any more.
func (t *table) redrawn(random *rand.Rand, start []int) drawn {
	for {
		other := newTable(random, t.options, t.knobs)
		if other.scale = t.scale; !other.crashes(start) {
			return other
		}
	}
}

// jittered has the same crashes; knobs without effect stay so.
func (t *table) jittered(random *rand.Rand, share float64) drawn {
	row := func(effects []float64) []float64 {
		list := make([]float64, len(effects))
		for i, effect := range effects {
			if effect != 0 {
				list[i] = effect + share*random.NormFloat64()/t.scale
			}
		}
		return list
	}
	other := *t
	other.main, other.pairs = make([][]float64, len(t.main)), make([]pairTable, len(t.pairs))
	for i := range t.main {
		other.main[i] = row(t.main[i])
	}
	for i, pair := range t.pairs {
		other.pairs[i] = pairTable{a: pair.a, b: pair.b, effect: make([][]float64, len(pair.effect))}
		for j := range pair.effect {
			other.pairs[i].effect[j] = row(pair.effect[j])
		}
	}
	return &other
}
