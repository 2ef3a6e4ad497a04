package search

import "math"

// raw is a trial before scaling: sums over its measurements.
type raw struct {
	trial
	sum, variance   float64
	crashes, bounds int
	values, errors  []float64 // of the measures, in the objective's unit
	kept            map[string]int
}

func (k *knowledge) merge(history []Observation) []raw {
	var raws []raw
	index := make(map[string]int, len(history))
	for n := range history {
		p, err := k.space.pointOf(history[n].Values)
		if err != nil {
			k.taken[k.space.Key(history[n].Values)] = struct{}{}
			continue
		}
		key := k.space.pointKey(p)
		k.taken[key] = struct{}{}
		i, known := index[key]
		if !known {
			i = len(raws)
			index[key] = i
			raws = append(raws, raw{trial: trial{at: p, key: key}})
		}
		raws[i].add(&history[n], n, k.factors)
	}
	for i := range raws {
		r := &raws[i]
		r.crashed = r.count+r.bounds == 0
		r.pruned = r.count == 0 && !r.crashed
		for _, margin := range r.margins {
			r.broken = r.broken || margin < 0
		}
	}
	return raws
}

// add takes one observation in. A finished measurement outweighs a bound from a
// pruned trial, and either outweighs a crash.
func (r *raw) add(o *Observation, position int, factors []Factor) {
	r.last = position
	switch {
	case o.Outcome == Measured && finite(o.Value):
		r.count++
		r.sum += o.Value/float64(r.count) - r.sum/float64(r.count) // the mean; a sum of extremes would overflow
		r.variance += o.StandardError * o.StandardError
		r.values, r.errors = append(r.values, o.Value), append(r.errors, o.StandardError)
		r.measures = append(r.measures, measure{position: position, factors: logarithms(o, factors)})
		r.addMargins(o)
	case o.Outcome == Pruned && finite(o.Value) && r.count == 0:
		r.bounds++
		r.sum = o.Value
	default:
		r.crashes++
		r.failure = o.Failure
	}
}

func (r *raw) addMargins(o *Observation) {
	for limit, margin := range o.Margins {
		if math.IsNaN(margin) {
			continue
		}
		if r.margins == nil {
			r.margins, r.kept = make(map[string]float64), make(map[string]int)
		}
		r.kept[limit]++
		const most = 10 // a ratio of 20,000: beyond it all is the same
		r.margins[limit] += (max(-most, min(margin, most)) - r.margins[limit]) / float64(r.kept[limit])
	}
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// logarithms of the factors that an observation has.
func logarithms(o *Observation, factors []Factor) []float64 {
	list := make([]float64, len(factors))
	for i := range factors {
		list[i] = math.NaN()
		if value := o.Factors[factors[i].Name]; value > 0 && !math.IsInf(value, 0) {
			list[i] = math.Log(value)
		}
	}
	return list
}

// scale fills in the scores.
func (k *knowledge) scale(raws []raw, minimize bool) {
	s := scale{sign: 1, positive: true, reference: math.NaN()}
	best := usable
	for i := range raws {
		if raws[i].crashed {
			continue
		}
		if rank := raws[i].rank(); math.IsNaN(s.reference) || rank < best {
			s.reference, best = raws[i].sum, rank
		}
		s.positive = s.positive && raws[i].sum > 0
		for _, value := range raws[i].values {
			s.positive = s.positive && value > 0
		}
		s.largest = max(s.largest, math.Abs(raws[i].sum))
	}
	s.largest = max(s.largest, math.SmallestNonzeroFloat64)
	if minimize {
		s.sign = -1
	}
	k.ratios, k.sign = s.positive, s.sign
	for i := range raws {
		if !raws[i].crashed {
			s.apply(&k.trials[i], &raws[i])
		}
	}
}

// Ranks of what scores are relative to: the first configuration that may win, if
// there is one. What lies far below the reference is compressed, and a baseline
// that breaks a limit may be faster than all that may win.
const (
	winning = iota
	breaking
	bounded
	usable
)

func (r *raw) rank() int {
	switch {
	case r.pruned:
		return bounded
	case r.broken:
		return breaking
	}
	return winning
}

// scale turns values into scores.
type scale struct {
	sign, reference, largest float64
	positive                 bool
}

// score returns the score of a value and the size of a score of 1 in its unit.
func (s *scale) score(value float64) (score, unit float64) {
	if s.positive {
		return s.sign * (math.Log(value) - math.Log(s.reference)), value
	}
	return s.sign * (value/s.largest - s.reference/s.largest), s.largest
}

func (s *scale) apply(t *trial, r *raw) {
	score, unit := s.score(r.sum)
	t.score = score
	if t.count > 0 {
		t.noise = orZero(math.Sqrt(r.variance) / float64(t.count) / unit)
	}
	for i := range t.measures {
		m := &t.measures[i]
		m.score, unit = s.score(r.values[i])
		m.noise = orZero(r.errors[i] / unit)
	}
}

// orZero makes a standard error that is no number unknown.
func orZero(noise float64) float64 {
	if !finite(noise) {
		return 0
	}
	return noise
}
