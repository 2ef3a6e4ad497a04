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
	// Levels are the least and the most levels of a knob.
	MinLevels, MaxLevels int
	// Interaction is the share of the variance that lies in pairs of knobs.
	Interaction float64
	// Inert is the share of knobs without any effect.
	Inert float64
	// Crash is the share of random configurations that crash, about.
	Crash float64
	// Gap is the distance of the default from the optimum, as a share of it.
	Gap float64
}

// table holds the drawn effects of one Table problem, on the logarithm of the
// value.
type table struct {
	main   [][]float64 // by knob and level
	pairs  []pairTable
	rules  []crashRule
	scale  float64
	levels []int
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
		t := &table{scale: 1}
		knobs := t.drawKnobs(random, options)
		t.drawEffects(random, options, knobs)
		t.drawCrashes(random, options, knobs)
		name := fmt.Sprintf("table-%d", seed)
		problem := newProblem(name, seed, knobs, t.truth)
		problem.findOptimum(16)
		start, ok := problem.Truth(problem.Space.Default())
		if !ok || start >= 0.98*problem.optimum {
			continue
		}
		// Scaling the logarithms moves the gap to where it is wanted and leaves
		// the optimum where it is.
		t.scale = math.Log(1-options.Gap) / math.Log(start/problem.optimum)
		problem.optimum, _ = t.truth(problem.best)
		return problem
	}
}

func (t *table) drawKnobs(random *rand.Rand, options TableOptions) []search.Knob {
	knobs := make([]search.Knob, options.Knobs)
	for i := range knobs {
		n := options.MinLevels + random.IntN(options.MaxLevels-options.MinLevels+1)
		t.levels = append(t.levels, n)
		id := fmt.Sprintf("knob_%c", 'a'+i)
		if random.IntN(2) == 0 {
			knobs[i] = named(id, n)
		} else {
			values := make([]int64, n)
			for level := range values {
				values[level] = int64(level)
			}
			knobs[i] = numbers(id, search.Integer, values...)
		}
		knobs[i].Default = knobs[i].Levels[random.IntN(n)]
	}
	return knobs
}

// effects draws levels of one knob with mean 0 and variance 1: any values for a
// knob without order, a curve with one peak for an ordered one.
func effects(random *rand.Rand, knob *search.Knob) []float64 {
	n := len(knob.Levels)
	list := make([]float64, n)
	peak, tilt := random.Float64(), random.NormFloat64()*0.5
	for level := range list {
		if knob.Kind == search.Categorical {
			list[level] = random.NormFloat64()
			continue
		}
		x := float64(level) / float64(max(1, n-1))
		list[level] = -4*(x-peak)*(x-peak) + tilt*x
	}
	mean, square := 0.0, 0.0
	for _, effect := range list {
		mean += effect / float64(n)
	}
	for level := range list {
		list[level] -= mean
		square += list[level] * list[level] / float64(n)
	}
	for level := range list {
		list[level] /= math.Sqrt(max(square, 1e-9))
	}
	return list
}

func (t *table) drawEffects(random *rand.Rand, options TableOptions, knobs []search.Knob) {
	var live []int
	for i := range knobs {
		if random.Float64() >= options.Inert || (i == len(knobs)-1 && len(live) == 0) {
			live = append(live, i)
		}
	}
	t.main = make([][]float64, len(knobs))
	total := 0.0
	amplitudes := make([]float64, len(knobs))
	for _, i := range live {
		amplitudes[i] = math.Exp(random.NormFloat64() * 0.8)
		total += amplitudes[i] * amplitudes[i]
	}
	for i := range knobs {
		t.main[i] = effects(random, &knobs[i])
		for level := range t.main[i] {
			t.main[i][level] *= amplitudes[i] * math.Sqrt((1-options.Interaction)/total)
		}
	}
	if options.Interaction == 0 || len(live) < 2 {
		return
	}
	pairs := len(live)
	for range pairs {
		i := random.IntN(len(live))
		j := (i + 1 + random.IntN(len(live)-1)) % len(live)
		t.pairs = append(t.pairs, drawPair(random, knobs, live[i], live[j], math.Sqrt(options.Interaction/float64(pairs))))
	}
}

// drawPair draws an interaction as a sum of two products of curves.
func drawPair(random *rand.Rand, knobs []search.Knob, a, b int, amplitude float64) pairTable {
	pair := pairTable{a: a, b: b, effect: make([][]float64, len(knobs[a].Levels))}
	for row := range pair.effect {
		pair.effect[row] = make([]float64, len(knobs[b].Levels))
	}
	for range 2 {
		left, right := effects(random, &knobs[a]), effects(random, &knobs[b])
		for row := range left {
			for column := range right {
				pair.effect[row][column] += amplitude * left[row] * right[column] / math.Sqrt2
			}
		}
	}
	return pair
}

func (t *table) drawCrashes(random *rand.Rand, options TableOptions, knobs []search.Knob) {
	if len(knobs) < 2 {
		return
	}
	// Few levels leave no rule that is narrow enough: then the problem crashes less.
	for share, tries := 0.0, 0; share < options.Crash && tries < 1000; tries++ {
		a := random.IntN(len(knobs))
		b := (a + 1 + random.IntN(len(knobs)-1)) % len(knobs)
		rule := crashRule{
			a: a, b: b,
			exactA: knobs[a].Kind == search.Categorical, exactB: knobs[b].Kind == search.Categorical,
			levelA: random.IntN(t.levels[a]), levelB: random.IntN(t.levels[b]),
		}
		covered := coverage(rule.exactA, rule.levelA, t.levels[a]) * coverage(rule.exactB, rule.levelB, t.levels[b])
		if covered > 0.6*options.Crash+0.02 {
			continue
		}
		share += covered
		t.rules = append(t.rules, rule)
	}
}

func coverage(exact bool, level, n int) float64 {
	if exact {
		return 1 / float64(n)
	}
	return float64(n-level) / float64(n)
}

func (t *table) truth(at []int) (float64, bool) {
	for _, rule := range t.rules {
		if beyond(at[rule.a], rule.levelA, rule.exactA) && beyond(at[rule.b], rule.levelB, rule.exactB) {
			return 0, false
		}
	}
	sum := 0.0
	for i, level := range at {
		sum += t.main[i][level]
	}
	for _, pair := range t.pairs {
		sum += pair.effect[at[pair.a]][at[pair.b]]
	}
	return 100 * math.Exp(t.scale*sum), true
}

func beyond(level, limit int, exact bool) bool {
	if exact {
		return level == limit
	}
	return level >= limit
}
