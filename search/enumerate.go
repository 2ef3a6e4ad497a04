package search

import (
	"context"
	"iter"
	"slices"
)

// walker visits the legal points of some knobs of a space, depth first, and
// leaves a branch as soon as a constraint rejects it.
type walker struct {
	space     *Space
	positions []int                      // ascending, closed under conditions and constraints
	order     func(i int, p point) []int // levels of knob i in the order to try
	visit     func(p point) bool         // false ends the walk
	budget    int                        // steps left
	ctx       context.Context            //nolint:containedctx // a walker lives within one call
}

// walk reports whether it saw everything; false means that visit, the budget or
// the context ended it.
func (w *walker) walk() bool { return w.descend(0, make(point, len(w.space.knobs))) }

func (w *walker) descend(depth int, p point) bool {
	if depth == len(w.positions) {
		return w.visit(p)
	}
	i := w.positions[depth]
	if !w.space.isActive(i, p) {
		p[i] = inactive
		return w.step() && w.descend(depth+1, p)
	}
	for _, level := range w.order(i, p) {
		if !w.step() {
			return false
		}
		p[i] = level
		if w.space.legalAt(i, p) && !w.descend(depth+1, p) {
			return false
		}
	}
	return true
}

func (w *walker) step() bool {
	w.budget--
	if w.budget&1023 == 0 && w.ctx.Err() != nil {
		return false
	}
	return w.budget > 0
}

// unlimited is a budget that no walk uses up.
const unlimited = int(^uint(0) >> 1)

func (s *Space) allPositions() []int {
	positions := make([]int, len(s.knobs))
	for i := range positions {
		positions[i] = i
	}
	return positions
}

// listedOrder tries levels as they are listed.
func (s *Space) listedOrder() func(int, point) []int {
	orders := make([][]int, len(s.knobs))
	for i := range orders {
		for level := range s.knobs[i].Levels {
			orders[i] = append(orders[i], level)
		}
	}
	return func(i int, _ point) []int { return orders[i] }
}

// defaultOrder tries the default first, then the others as they are listed.
func (s *Space) defaultOrder() func(int, point) []int {
	listed := s.listedOrder()
	orders := make([][]int, len(s.knobs))
	for i := range orders {
		first := s.levels[i][s.knobs[i].Default]
		orders[i] = append(orders[i], first)
		for _, level := range listed(i, nil) {
			if level != first {
				orders[i] = append(orders[i], level)
			}
		}
	}
	return func(i int, _ point) []int { return orders[i] }
}

// Enumerate yields the legal configurations, each launch once, in the order of
// the knobs and their levels. It is meant for small spaces: see Count.
func (s *Space) Enumerate() iter.Seq[Values] {
	return func(yield func(Values) bool) {
		seen := make(map[string]struct{})
		s.enumerate(context.Background(), func(p point) bool {
			if !s.firstOfItsKind(p, seen) {
				return true
			}
			return yield(s.values(p))
		})
	}
}

func (s *Space) enumerate(ctx context.Context, visit func(point) bool) bool {
	w := walker{space: s, positions: s.allPositions(), order: s.listedOrder(), visit: visit, budget: unlimited, ctx: ctx}
	return w.walk()
}

// firstOfItsKind records the point's launch and reports whether it is new.
// Without a canonicalize function each point is its own launch.
func (s *Space) firstOfItsKind(p point, seen map[string]struct{}) bool {
	if s.canonicalize == nil {
		return true
	}
	key := s.pointKey(p)
	_, known := seen[key]
	seen[key] = struct{}{}
	return !known
}

// Neighbours yields the legal configurations that differ from the given one in
// the level of one knob, and in the knobs that this makes matter or not; those
// that come to the same launch are left out. Knobs that values does not name
// count as at their defaults.
func (s *Space) Neighbours(values Values) iter.Seq[Values] {
	return func(yield func(Values) bool) {
		p, err := s.pointOf(values)
		if err != nil {
			return
		}
		own := s.pointKey(p)
		for neighbour := range s.neighbours(p) {
			if s.pointKey(neighbour) != own && !yield(s.values(neighbour)) {
				return
			}
		}
	}
}

func (s *Space) neighbours(p point) iter.Seq[point] {
	return func(yield func(point) bool) {
		for i := range s.knobs {
			if p[i] == inactive {
				continue
			}
			for level := range s.knobs[i].Levels {
				if level == p[i] {
					continue
				}
				if changed := s.with(p, i, level); s.legal(changed) && !yield(changed) {
					return
				}
			}
		}
	}
}

// AnyLegal finds a legal configuration, the baseline if it is one and else one
// near it. False says that the constraints exclude everything, or, when
// ctx.Err() is set, that the search was cut short.
func (s *Space) AnyLegal(ctx context.Context) (Values, bool) {
	whole := s.defaultPoint()
	for _, component := range s.components() {
		found := false
		w := walker{space: s, positions: component, order: s.defaultOrder(), budget: unlimited, ctx: ctx,
			visit: func(p point) bool {
				for _, i := range component {
					whole[i] = p[i]
				}
				found = true
				return false
			}}
		w.walk()
		if !found {
			return nil, false
		}
	}
	return s.values(whole), true
}

// components splits the knobs into groups that no condition and no constraint
// connects, so that each can be searched and counted by itself.
func (s *Space) components() [][]int {
	root := s.allPositions()
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	join := func(a, b int) { root[find(a)] = find(b) }
	for i := range s.knobs {
		if parent := s.activity[i].parent; parent >= 0 {
			join(i, parent)
		}
		for r := range s.rules[i] {
			for _, other := range s.rules[i][r].positions {
				join(i, other)
			}
		}
	}
	groups := make(map[int][]int)
	for i := range s.knobs {
		groups[find(i)] = append(groups[find(i)], i)
	}
	components := make([][]int, 0, len(groups))
	for _, group := range groups {
		components = append(components, group)
	}
	slices.SortFunc(components, func(a, b []int) int { return a[0] - b[0] })
	return components
}
