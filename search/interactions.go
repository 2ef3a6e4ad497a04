package search

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"nocturne/search/internal/gp"
)

// Interaction says how far two knobs do together what is not the sum of what each
// of them does alone, as far as the trials show.
type Interaction struct {
	Knobs [2]string
	// Spread is the standard deviation of that part of the objective over the levels
	// that were measured, as a share of it: 0.03 is 3 %.
	Spread float64
	// Interval holds 95 % of the probability of the spread.
	Interval [2]float64
}

const (
	// pairLevels is the most levels of a knob that are looked at, and pairReferences
	// the most configurations that a cell is averaged over.
	pairLevels     = 4
	pairReferences = 6
	pairDraws      = 200
)

// Interactions fits the model of the auto sampler to a history and reads the
// interactions of all pairs of knobs from it, the strongest first. The draws
// behind the intervals are seeded.
func Interactions(request Request) ([]Interaction, error) {
	k := newKnowledge(request)
	ran, model, err := k.effectModel()
	if err != nil {
		return nil, err
	}
	var list []Interaction
	for i := range k.space.knobs {
		for j := range i {
			if found, ok := k.interaction(j, i, model, ran); ok {
				list = append(list, found)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Interaction) int { return cmp.Compare(b.Spread, a.Spread) })
	return list, nil
}

// interaction reads that of two knobs; false when they were not both varied.
func (k *knowledge) interaction(i, j int, model *gp.Model, ran []*trial) (Interaction, bool) {
	rows, columns := measuredLevels(i, ran), measuredLevels(j, ran)
	groups := k.pairGroups(i, j, rows, columns, ran)
	if len(rows) < 2 || len(columns) < 2 || len(groups) == 0 {
		return Interaction{}, false
	}
	mean, covariance := model.Averages(groups)
	source := dice(mix(k.seed)).named(k.space.knobs[i].ID).named(k.space.knobs[j].ID)
	spreads := make([]float64, 0, pairDraws)
	for _, surface := range draws(mean, covariance, pairDraws, source) {
		spreads = append(spreads, unit*residualSpread(surface, len(columns)))
	}
	if len(spreads) == 0 {
		return Interaction{}, false
	}
	slices.Sort(spreads)
	return Interaction{
		Knobs:    [2]string{k.space.knobs[i].ID, k.space.knobs[j].ID},
		Spread:   stat.Mean(spreads, nil),
		Interval: [2]float64{stat.Quantile(0.025, stat.Empirical, spreads, nil), stat.Quantile(0.975, stat.Empirical, spreads, nil)},
	}, true
}

// measuredLevels lists the levels of a knob in the best trials, at most pairLevels.
func measuredLevels(i int, ran []*trial) []int {
	order := slices.Clone(ran)
	slices.SortStableFunc(order, func(a, b *trial) int { return cmp.Compare(b.score, a.score) })
	var levels []int
	for _, t := range order {
		if t.at[i] != inactive && len(levels) < pairLevels && !slices.Contains(levels, t.at[i]) {
			levels = append(levels, t.at[i])
		}
	}
	slices.Sort(levels)
	return levels
}

// pairGroups lists configurations for each pair of levels, row by row. Only those
// trials are starting points in which both knobs stay active throughout.
func (k *knowledge) pairGroups(i, j int, rows, columns []int, ran []*trial) [][][]int {
	var both []*trial
	for _, t := range ran {
		if t.at[i] != inactive && t.at[j] != inactive && k.staysActive(t.at, i, rows, j) {
			both = append(both, t)
		}
	}
	both = thin(both, pairReferences)
	if len(both) == 0 {
		return nil
	}
	groups := make([][][]int, 0, len(rows)*len(columns))
	for _, row := range rows {
		for _, column := range columns {
			var group [][]int
			for _, t := range both {
				group = append(group, k.effective(k.space.with(k.space.with(t.at, i, row), j, column)))
			}
			groups = append(groups, group)
		}
	}
	return groups
}

func (k *knowledge) staysActive(at point, i int, rows []int, j int) bool {
	for _, row := range rows {
		if k.space.with(at, i, row)[j] == inactive {
			return false
		}
	}
	return true
}

// residualSpread is the standard deviation of a surface, given row by row, around
// the sum of its row and column means.
func residualSpread(surface []float64, columns int) float64 {
	rows := len(surface) / columns
	table := mat.NewDense(rows, columns, surface)
	row, column := make([]float64, rows), make([]float64, columns)
	for i := range row {
		row[i] = stat.Mean(mat.Row(nil, i, table), nil)
	}
	for j := range column {
		column[j] = stat.Mean(mat.Col(nil, j, table), nil)
	}
	whole, square := stat.Mean(row, nil), 0.0
	for i := range row {
		for j := range column {
			rest := table.At(i, j) - row[i] - column[j] + whole
			square += rest * rest
		}
	}
	return math.Sqrt(square / float64(rows*columns))
}

// draws from a normal distribution.
func draws(mean []float64, covariance *mat.SymDense, count int, source dice) [][]float64 {
	var eigen mat.EigenSym
	if !eigen.Factorize(covariance, true) {
		return nil
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	spreads := eigen.Values(nil)
	list := make([][]float64, count)
	for n := range list {
		list[n] = slices.Clone(mean)
		for e, spread := range spreads {
			step := math.Sqrt(max(0, spread)) * source.next(uint64(n)).next(uint64(e)).normal()
			for l := range list[n] {
				list[n][l] += step * vectors.At(l, e)
			}
		}
	}
	return list
}
