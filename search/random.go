package search

import (
	"hash/fnv"
	"math/bits"
)

// dice is a source of repeatable draws that are addressed by name, so that a
// proposal does not depend on the order in which knobs are listed.
type dice uint64

// newDice makes the dice of one ask. The history's length is part of it: a
// sampler that draws must not draw the same again after the next trial.
func newDice(request Request) dice {
	return dice(mix(request.Seed)).next(uint64(len(request.History))).next(uint64(len(request.Pending)) + 1<<32)
}

// next returns the dice of a sub-stream.
func (d dice) next(n uint64) dice { return dice(mix(uint64(d) ^ mix(n+0x632be59bd9b4e019))) }

// named returns the dice of a named sub-stream.
func (d dice) named(name string) dice { return d.next(hashText(name)) }

// intN returns a number from 0 to n-1.
func (d dice) intN(n int) int {
	high, _ := bits.Mul64(mix(uint64(d)), uint64(n))
	return int(high)
}

// unit returns a number in [0, 1).
func (d dice) unit() float64 { return float64(mix(uint64(d))>>11) / (1 << 53) }

// shuffled returns the numbers 0 to n-1 in a random order.
func (d dice) shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		j := d.next(uint64(i)).intN(i + 1)
		order[i] = order[j]
		order[j] = i
	}
	return order
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func hashText(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // a hash never fails
	return hash.Sum64()
}

// restarts is how often a random point is begun anew before giving up.
const restarts = 64

// randomPoint draws a legal point, a random level for each knob in turn; a level
// that a constraint rejects is drawn again. It gives up (false) on spaces where
// that rarely succeeds.
func (s *Space) randomPoint(d dice) (point, bool) {
	p := make(point, len(s.knobs))
	for attempt := range uint64(restarts) {
		if s.tryRandomPoint(p, d.next(attempt)) {
			return p, true
		}
	}
	return nil, false
}

func (s *Space) tryRandomPoint(p point, d dice) bool {
	for i := range s.knobs {
		if !s.isActive(i, p) {
			p[i] = inactive
			continue
		}
		own := d.named(s.knobs[i].ID)
		legal := false
		for draw := uint64(0); draw < uint64(2*len(s.knobs[i].Levels)) && !legal; draw++ {
			p[i] = own.next(draw).intN(len(s.knobs[i].Levels))
			legal = s.legalAt(i, p)
		}
		if !legal {
			return false
		}
	}
	return true
}

// randomOrder tries the levels of each knob in an order drawn once.
func (s *Space) randomOrder(d dice) func(int, point) []int {
	orders := make([][]int, len(s.knobs))
	for i := range orders {
		orders[i] = d.named(s.knobs[i].ID).shuffled(len(s.knobs[i].Levels))
	}
	return func(i int, _ point) []int { return orders[i] }
}
