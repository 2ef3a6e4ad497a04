package search

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// candidate is a configuration with what the processes say of it.
type candidate struct {
	at, base    point
	x           point   // what acts in place of at
	mean        float64 // of the objective, in units
	spread      float64 // standard deviation, in units
	improvement float64 // logarithm of the expected improvement, in units
	crash       float64 // probability of a crash
	value       float64 // what decides
}

// wholeSpace is the most configurations that are all looked at.
const wholeSpace = 512

// candidates lists configurations worth trying, best first. They may have been
// tried.
func (b *belief) candidates(ctx context.Context) []candidate {
	list, whole := b.everything(ctx)
	if !whole {
		list = nil
		for _, base := range b.starts() {
			list = append(list, b.around(base)...)
		}
	}
	slices.SortStableFunc(list, compareCandidates)
	return list
}

// trusting is how many configurations are chosen by what is expected of them,
// after the baseline, when related measurements say something: what they call
// good is measured before anything else.
const trusting = 2

// trusts reports whether the next proposal follows related measurements.
func (b *belief) trusts() bool {
	return len(b.trials) <= trusting && slices.ContainsFunc(b.related, func(r relation) bool { return len(r.kept) > 0 })
}

// listening is how many configurations the best related ones stay starting points.
const listening = 12

// starts are the configurations that proposals are changes of.
func (b *belief) starts() []point {
	if len(b.trials) > listening {
		return b.bases
	}
	return append(slices.Clone(b.bases), leading(b.space, b.related, 1)...)
}

// compareCandidates leaves differences below a thousandth of the expected
// improvement to the order of the list: they are made by rounding errors, and a
// proposal must not depend on them.
func compareCandidates(a, b candidate) int {
	return cmp.Compare(math.Round(1000*b.value), math.Round(1000*a.value))
}

// everything looks at the whole space, when it is small.
func (b *belief) everything(ctx context.Context) ([]candidate, bool) {
	var list []candidate
	w := walker{space: b.space, positions: b.space.allPositions(), order: b.space.listedOrder(), budget: 8 * wholeSpace, ctx: ctx,
		visit: func(p point) bool {
			if len(list) == wholeSpace {
				return false
			}
			list = append(list, candidate{at: slices.Clone(p), base: b.bases[0], x: b.effective(slices.Clone(p))})
			return true
		}}
	if !w.walk() {
		return nil, false
	}
	for i := range list {
		b.judge(&list[i])
	}
	return list, true
}

// reach is how far a proposal may lie from its base.
type reach struct {
	changes int     // knobs that differ
	stride  float64 // of an ordered knob, as a share of its range
	thrift  int     // divides the beam: a wider reach is searched less closely
}

// reach widens while the best value does not rise.
func (b *belief) reach() reach {
	switch {
	case b.stalled < 8:
		return reach{4, 0.25, 1}
	case b.stalled < 16:
		return reach{5, 0.5, 2}
	}
	return reach{6, 1, 2}
}

// beam is how many partial changes are developed further.
const beam = 8

// around develops changes of one knob, the best of them into changes of two, and
// so on.
func (b *belief) around(base point) []candidate {
	reach := b.reach()
	var list []candidate
	seen := map[string]struct{}{b.effective(base).packed(): {}}
	front := []candidate{{at: base}}
	for range reach.changes {
		var next []candidate
		for _, from := range front {
			for i := range b.space.knobs {
				if from.at[i] == inactive || from.at[i] != base[i] {
					continue
				}
				next = b.change(next, from.at, base, i, reach.stride, seen)
			}
		}
		slices.SortStableFunc(next, compareCandidates)
		list = append(list, next...)
		front = next[:min(len(next), beam/reach.thrift)]
	}
	return list
}

// change appends the candidates that differ from a point in knob i.
func (b *belief) change(list []candidate, from, base point, i int, stride float64, seen map[string]struct{}) []candidate {
	for level := range b.space.knobs[i].Levels {
		if level == from[i] || !b.space.knobs[i].within(stride, from[i], level) {
			continue
		}
		to := b.space.with(from, i, level)
		if !b.space.legal(to) {
			continue
		}
		x := b.effective(to)
		name := x.packed()
		if _, known := seen[name]; known {
			continue
		}
		seen[name] = struct{}{}
		c := candidate{at: to, base: base, x: x}
		b.judge(&c)
		list = append(list, c)
	}
	return list
}

// within reports whether a step stays within a share of an ordered knob's range.
func (k *Knob) within(stride float64, from, to int) bool {
	first := k.firstOrdered()
	if !k.ordered() || from < first || to < first {
		return true
	}
	limit := max(1, int(stride*float64(len(k.Levels)-1-first)))
	return to-from <= limit && from-to <= limit
}

// packed is the point as a map key.
func (p point) packed() string {
	packed := make([]byte, 0, 2*len(p))
	for _, level := range p {
		packed = append(packed, byte(level), byte(level>>8))
	}
	return string(packed)
}

// judge fills in what the processes say.
func (b *belief) judge(c *candidate) {
	mean, variance := b.objective.Predict(c.x)
	c.mean, c.spread = mean, math.Sqrt(variance)
	c.improvement = logImprovement((mean-b.bestMean)/c.spread) + math.Log(c.spread)
	c.value = c.improvement
	if b.trusts() {
		c.value = c.mean
	}
	if len(b.limits) > 0 {
		kept := b.keeps(c.x)
		if !b.met {
			c.value = 0 // first of all something that may be used
		}
		c.value += kept
	}
	if b.running != nil {
		mean, variance := b.running.Predict(c.x)
		// The threshold lies half way between what ran (0) and what crashed (-2).
		c.crash = normalCDF((-1 - mean) / math.Sqrt(variance+b.running.Noise(0)))
		c.value += math.Log(max(1-c.crash, 1e-6))
	}
}

func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// logImprovement is the logarithm of the expected improvement of a standard
// normal variable over -z; below -5 by the first term of its expansion (Ament et
// al., "Unexpected improvements to expected improvement", NeurIPS 2023).
func logImprovement(z float64) float64 {
	if z > -5 {
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		return math.Log(density + z*normalCDF(z))
	}
	return -z*z/2 - math.Log(2*math.Pi)/2 - 2*math.Log(-z)
}
