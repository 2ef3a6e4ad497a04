package search

import (
	"context"
	"math/rand/v2"
)

const (
	// countingSteps bounds the walk over one component of a space: about a
	// million combinations, well under a second.
	countingSteps = 1 << 22
	// distinctLimit is the most configurations whose launches are compared one
	// by one when several of them may be the same launch.
	distinctLimit = 1 << 18
	// countingSamples and classSamples are the draws of an estimate; a share
	// p is found within about sqrt((1-p)/(p*samples)) of itself.
	countingSamples = 1 << 15
	classSamples    = 1 << 10
)

// Count returns the number of distinct legal configurations: those that come to
// the same launch count once.
//
// It is exact when the space has no canonicalize function and each group of
// knobs that conditions and constraints tie together has up to some million
// combinations (the groups' counts are multiplied), or when there are at most
// 262,144 configurations in all. Otherwise it is an estimate from seeded random
// draws, the same each time: the share of legal combinations among all; and, for
// the launches, the mean of one over the size of a configuration's class, where
// the size is taken as the product over the knobs of how many of its levels make
// the same launch. That holds when the levels that are inert or equivalent for
// one knob do not depend on which of them another knob has.
//
// When ctx ends early the number is an estimate from what was seen.
func (s *Space) Count(ctx context.Context) (n float64, exact bool) {
	n, exact = s.countLegal(ctx)
	if s.canonicalize == nil || n == 0 {
		return n, exact
	}
	if n <= distinctLimit {
		seen := make(map[string]struct{})
		whole := s.enumerate(ctx, func(p point) bool {
			s.firstOfItsKind(p, seen)
			return true
		})
		if whole {
			return float64(len(seen)), true
		}
	}
	return max(1, n*s.distinctShare(ctx)), false
}

// countLegal counts the points that the constraints allow.
func (s *Space) countLegal(ctx context.Context) (n float64, exact bool) {
	n, exact = 1, true
	for _, component := range s.components() {
		count := 0.0
		w := walker{space: s, positions: component, order: s.listedOrder(), budget: countingSteps, ctx: ctx,
			visit: func(point) bool { count++; return true }}
		if !w.walk() {
			count, exact = s.estimateLegal(component), false
		}
		n *= count
	}
	return n, exact
}

// draw sets random levels for the knobs at the positions. The weight is one over
// the number of raw combinations that stand for the drawn configuration: an
// inactive knob stands for as many as it has levels.
func (s *Space) draw(positions []int, p point, random *rand.Rand) (weight float64) {
	weight = 1
	for _, i := range positions {
		if !s.isActive(i, p) {
			p[i] = inactive
			weight /= float64(len(s.knobs[i].Levels))
			continue
		}
		p[i] = random.IntN(len(s.knobs[i].Levels))
	}
	return weight
}

func (s *Space) legalFor(positions []int, p point) bool {
	for _, i := range positions {
		if !s.legalAt(i, p) {
			return false
		}
	}
	return true
}

func (s *Space) estimateLegal(positions []int) float64 {
	random := rand.New(rand.NewPCG(1, uint64(positions[0])))
	combinations := 1.0
	for _, i := range positions {
		combinations *= float64(len(s.knobs[i].Levels))
	}
	sum := 0.0
	p := make(point, len(s.knobs))
	for range countingSamples {
		weight := s.draw(positions, p, random)
		if s.legalFor(positions, p) {
			sum += weight
		}
	}
	return combinations * sum / countingSamples
}

// distinctShare estimates the number of launches per legal configuration.
func (s *Space) distinctShare(ctx context.Context) float64 {
	random := rand.New(rand.NewPCG(2, 0))
	positions := s.allPositions()
	p := make(point, len(s.knobs))
	total, distinct := 0.0, 0.0
	for accepted, drawn := 0, 0; accepted < classSamples && drawn < countingSamples && ctx.Err() == nil; drawn++ {
		weight := s.draw(positions, p, random)
		if !s.legal(p) {
			continue
		}
		accepted++
		total += weight
		distinct += weight / s.classSize(p)
	}
	if total == 0 {
		return 1
	}
	return distinct / total
}

// classSize is the number of points that come to the same launch as p, when the
// equivalent levels of different knobs can be chosen independently.
func (s *Space) classSize(p point) float64 {
	own := s.pointKey(p)
	size := 1.0
	for i := range s.knobs {
		if p[i] == inactive {
			continue
		}
		same := 1.0
		for level := range s.knobs[i].Levels {
			if level == p[i] {
				continue
			}
			if changed := s.with(p, i, level); s.legal(changed) && s.pointKey(changed) == own {
				same++
			}
		}
		size *= same
	}
	return size
}
