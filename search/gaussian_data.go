package search

import (
	"cmp"
	"math"
	"slices"

	"nocturne/search/internal/gp"
)

// night is how many trials count as one unit of time in the process: over it the
// expected drift is stated.
const night = 40

// separate is the most measurements of one configuration that enter the process
// one by one; more of them are averaged into so many.
const separate = 4

// processKnobs describes the knobs for the process: ordered levels lie at equal
// distances, which for powers of two is the logarithm.
func (k *knowledge) processKnobs() []gp.Knob {
	knobs := make([]gp.Knob, len(k.space.knobs))
	for i := range knobs {
		knob := &k.space.knobs[i]
		knobs[i].Levels = len(knob.Levels)
		first := knob.firstOrdered()
		last := len(knob.Levels) - 1
		if !knob.ordered() || last-first < 2 {
			continue
		}
		knobs[i].Position = make([]float64, len(knob.Levels))
		for level := range knobs[i].Position {
			knobs[i].Position[level] = float64(level-first) / float64(last-first)
		}
		if first > 0 {
			knobs[i].Position[0] = math.NaN()
		}
	}
	return knobs
}

// firstOrdered is the first level that has a place in the order: unset has none.
func (k *Knob) firstOrdered() int {
	if k.Levels[0].IsUnset() {
		return 1
	}
	return 0
}

// reading is what one observation is to the process: a value made of the score
// and the factors of a measurement.
type reading func(t *trial, m *measure) (y, noise float64, ok bool)

// effective is the point that acts in place of p: knobs that the space's
// canonicalize function finds without effect are unset, or absent where they
// cannot be. The process then takes for one what comes to one launch, and learns
// nothing of a knob from trials in which it did not act.
func (k *knowledge) effective(p point) point {
	if k.space.canonicalize == nil {
		return p
	}
	name := p.packed()
	if acting, known := k.acting[name]; known {
		return acting
	}
	values := k.space.canonicalize(k.space.values(p))
	acting := slices.Clone(p)
	for i := range acting {
		if p[i] == inactive {
			continue
		}
		value, acts := values[k.space.knobs[i].ID]
		level, legal := k.space.levels[i][value]
		switch {
		case acts && legal:
			acting[i] = level
		case !acts && k.space.knobs[i].Levels[0].IsUnset():
			acting[i] = 0
		case !acts:
			acting[i] = inactive
		}
	}
	if k.acting == nil {
		k.acting = make(map[string]point)
	}
	k.acting[name] = acting
	return acting
}

// observations lists the measurements of trials as the process takes them.
func (k *knowledge) observations(trials []*trial, read reading) []gp.Observation {
	var data []gp.Observation
	for _, t := range trials {
		measures := t.measures
		if t.pruned {
			measures = []measure{{score: t.score, position: t.last}}
		}
		data = append(data, averages(k.effective(t.at), t, measures, read)...)
	}
	return data
}

// averages reads the measures of a trial, many of them averaged into few.
func averages(x []int, t *trial, measures []measure, read reading) []gp.Observation {
	parts := min(len(measures), separate)
	data := make([]gp.Observation, 0, parts)
	for part := range parts {
		o := gp.Observation{X: x}
		for i := part * len(measures) / parts; i < (part+1)*len(measures)/parts; i++ {
			y, noise, ok := read(t, &measures[i])
			if !ok {
				continue
			}
			o.Count++
			share := 1 / float64(o.Count)
			o.Y += (y - o.Y) * share
			o.Noise += (noise - o.Noise) * share
			o.Time += (float64(measures[i].position)/night - o.Time) * share
		}
		if o.Count > 0 {
			o.Noise /= float64(o.Count)
			data = append(data, o)
		}
	}
	return data
}

// boundNoise is the variance of a pruned trial's bound, in square units.
const boundNoise = 0.25

// known is the variance that a measure reports of itself, in square units.
func (m *measure) known(t *trial) float64 {
	if t.pruned {
		return boundNoise
	}
	return min(m.noise/unit*m.noise/unit, 1)
}

// uneven reports whether enough trials with and without active conditional knobs
// were measured for each to have a noise of its own: launches that speculate
// spread more than others.
func (k *knowledge) uneven(ran []*trial) bool {
	const enough = 3
	counts := [2]int{}
	for _, t := range ran {
		counts[k.group(k.effective(t.at))]++
	}
	return counts[0] >= enough && counts[1] >= enough
}

// group is 1 for effective points with an active conditional knob.
func (k *knowledge) group(at []int) int {
	for i, level := range at {
		if k.space.activity[i].parent >= 0 && level != inactive {
			return 1
		}
	}
	return 0
}

func latest(trials []*trial, most int) []*trial { return trials[max(0, len(trials)-most):] }

// compareTrials orders trials from the best to the worst: those that may win first.
func compareTrials(a, b *trial) int {
	if a.broken != b.broken {
		if b.broken {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.score, a.score)
}

// thin keeps at most so many trials: the best half of them, the latest quarter,
// and a quarter spread over the rest of the night. The order stays.
func thin(trials []*trial, most int) []*trial {
	if len(trials) <= most {
		return trials
	}
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareTrials(trials[a], trials[b]) })
	keep := make([]bool, len(trials))
	for _, i := range order[:most/2] {
		keep[i] = true
	}
	left := most - most/2
	for i := len(trials) - 1; i >= 0 && left > most/4; i-- {
		if !keep[i] {
			keep[i] = true
			left--
		}
	}
	var rest []int
	for i := range trials {
		if !keep[i] {
			rest = append(rest, i)
		}
	}
	for n := range left {
		keep[rest[n*len(rest)/left]] = true
	}
	var kept []*trial
	for i, t := range trials {
		if keep[i] {
			kept = append(kept, t)
		}
	}
	return kept
}
