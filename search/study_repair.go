package search

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// askGoptuna is an ask of one of goptuna's samplers: the baseline first, then what
// suggest gives, made legal and new. When suggest fails the proposal is random and
// its reason says so.
func askGoptuna(ctx context.Context, request Request, suggest func(*knowledge) (p point, reason string, err error)) (Proposal, error) {
	k := newKnowledge(request)
	if p := k.space.defaultPoint(); len(k.trials)+len(k.pending) == 0 && k.isNew(p) {
		return k.proposal(p, "the baseline"), nil
	}
	doubt := k.newSuspicion()
	suggested, reason, failure := suggest(k)
	if failure != nil {
		p, err := k.restart(ctx, &doubt)
		if err != nil {
			return Proposal{}, err
		}
		return k.proposal(p, fmt.Sprintf("drawn at random: %v", failure)), nil
	}
	p, distance, err := k.repair(ctx, suggested, &doubt)
	if err != nil {
		return Proposal{}, err
	}
	if distance > 0 {
		reason = fmt.Sprintf("nearest new configuration to %s (%d knobs away)", reason, distance)
	}
	return k.proposal(p, reason), nil
}

// doubtful is the share of the crashes that a suspected cause must explain for
// what has it to be avoided.
const doubtful = 0.5

// leaveOut takes the doubtful levels of each knob out of an order, unless all of
// them are.
func (s *suspicion) leaveOut(order func(int, point) []int) func(int, point) []int {
	orders := make([][]int, len(s.shares))
	for i, shares := range s.shares {
		orders[i] = slices.DeleteFunc(slices.Clone(order(i, nil)), func(level int) bool { return shares[level] >= doubtful })
		if len(orders[i]) == 0 {
			orders[i] = order(i, nil)
		}
	}
	return func(i int, _ point) []int { return orders[i] }
}

// repair returns the new configuration nearest to p, and how many knobs it is
// away: p itself, else the least suspect of the changes of one knob, of two,
// and of random changes of more and more knobs.
func (k *knowledge) repair(ctx context.Context, p point, doubt *suspicion) (point, int, error) {
	if k.isNew(p) && doubt.of(p) < doubtful {
		return p, 0, nil
	}
	fallback, fallbackDistance := point(nil), 0
	if k.isNew(p) {
		fallback = p
	}
	for distance := 1; distance <= len(p); distance++ {
		best, bestDoubt := point(nil), math.Inf(1)
		for n := range uint64(256) {
			candidate := k.scatter(p, distance, k.dice.named("repair").next(uint64(distance)).next(n))
			if d := doubt.of(candidate); d < bestDoubt && k.isNew(candidate) {
				best, bestDoubt = candidate, d
			}
		}
		if bestDoubt < doubtful {
			return best, distance, nil
		}
		if fallback == nil && best != nil {
			fallback, fallbackDistance = best, distance
		}
	}
	if fallback != nil {
		return fallback, fallbackDistance, nil
	}
	anywhere, err := k.anyNew(ctx, k.dice.named("repair"))
	return anywhere, len(p), err
}

// scatter changes the levels of some knobs at random.
func (k *knowledge) scatter(p point, changes int, d dice) point {
	changed := p
	for n := range uint64(changes) {
		i := d.next(n).intN(len(p))
		if changed[i] != inactive {
			changed = k.space.with(changed, i, d.next(n).named("level").intN(len(k.space.knobs[i].Levels)))
		}
	}
	return changed
}
