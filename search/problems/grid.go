package problems

import (
	"math/rand/v2"
	"slices"

	"nocturne/search"
)

// absent is the level of a knob that does not matter.
const absent = -1

// grid gives the configurations of a space as positions of levels, in the order
// in which its knobs were given.
type grid struct {
	knobs   []search.Knob
	levels  []map[search.Value]int
	parents []int    // knob that decides whether this one matters, or absent
	matters [][]bool // by level of the parent
	start   []int    // levels of the defaults, those of absent knobs too
}

func newGrid(space *search.Space) grid {
	g := grid{knobs: space.Knobs()}
	for _, knob := range g.knobs {
		levels := make(map[search.Value]int, len(knob.Levels))
		for i, level := range knob.Levels {
			levels[level] = i
		}
		g.levels = append(g.levels, levels)
		g.start = append(g.start, levels[knob.Default])
		g.addCondition(&knob.When)
	}
	return g
}

func (g *grid) addCondition(when *search.Condition) {
	parent, matters := absent, []bool(nil)
	for j := range g.parents {
		if g.knobs[j].ID == when.Knob {
			parent = j
			for _, level := range g.knobs[j].Levels {
				matters = append(matters, slices.Contains(when.In, level) != when.Not)
			}
		}
	}
	g.parents, g.matters = append(g.parents, parent), append(g.matters, matters)
}

// defaults is the default configuration.
func (g *grid) defaults() []int {
	at := slices.Clone(g.start)
	g.settle(at)
	return at
}

// at gives a configuration as levels; knobs that it does not name are absent.
func (g *grid) at(values search.Values) []int {
	at := make([]int, len(g.knobs))
	for i, knob := range g.knobs {
		at[i] = absent
		if value, ok := values[knob.ID]; ok {
			at[i] = g.levels[i][value]
		}
	}
	return at
}

func (g *grid) values(at []int) search.Values {
	values := make(search.Values, len(at))
	for i, level := range at {
		if level != absent {
			values[g.knobs[i].ID] = g.knobs[i].Levels[level]
		}
	}
	return values
}

// draw is a random configuration, each level of a knob with equal probability.
func (g *grid) draw(random *rand.Rand) []int {
	at := make([]int, len(g.knobs))
	for i := range at {
		at[i] = random.IntN(len(g.knobs[i].Levels))
	}
	g.settle(at)
	return at
}

// settle makes knobs absent or present as their conditions say.
func (g *grid) settle(at []int) {
	for i, parent := range g.parents {
		switch {
		case parent == absent:
		case at[parent] == absent || !g.matters[i][at[parent]]:
			at[i] = absent
		case at[i] == absent:
			at[i] = g.start[i]
		}
	}
}
