package problems

import (
	"fmt"
	"math"
	"math/rand/v2"

	"nocturne/search"
)

func newTable(random *rand.Rand, options TableOptions, knobs []search.Knob) *table {
	t := &table{options: options, knobs: knobs, scale: 1}
	t.drawEffects(random)
	t.drawCrashes(random)
	return t
}

func drawKnobs(random *rand.Rand, options TableOptions) []search.Knob {
	var knobs []search.Knob
	more := func(size float64) bool {
		if options.Size > 0 {
			return size < 0.75*options.Size
		}
		return len(knobs) < options.Knobs
	}
	for size := 1.0; more(size); size *= float64(len(knobs[len(knobs)-1].Levels)) {
		n := options.MinLevels + random.IntN(options.MaxLevels-options.MinLevels+1)
		if options.Size > 0 {
			n = min(n, max(2, int(math.Round(options.Size/size))))
		}
		knobs = append(knobs, drawKnob(random, fmt.Sprintf("knob_%c", 'a'+len(knobs)), n))
	}
	return knobs
}

// drawKnob makes every other knob one without order.
func drawKnob(random *rand.Rand, id string, n int) search.Knob {
	var knob search.Knob
	if random.IntN(2) == 0 {
		knob = named(id, n)
	} else {
		values := make([]int64, n)
		for level := range values {
			values[level] = int64(level)
		}
		knob = numbers(id, search.Integer, values...)
	}
	knob.Default = knob.Levels[random.IntN(n)]
	return knob
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

func (t *table) drawEffects(random *rand.Rand) {
	options, knobs := t.options, t.knobs
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

func (t *table) drawCrashes(random *rand.Rand) {
	options, knobs := t.options, t.knobs
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
			levelA: random.IntN(len(knobs[a].Levels)), levelB: random.IntN(len(knobs[b].Levels)),
		}
		covered := coverage(rule.exactA, rule.levelA, len(knobs[a].Levels)) * coverage(rule.exactB, rule.levelB, len(knobs[b].Levels))
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
