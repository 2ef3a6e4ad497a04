package problems

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"nocturne/search"
)

// Record is one row of a recorded table.
type Record struct {
	Values search.Values
	// Value of the objective; NaN for a configuration that is known to be invalid.
	Value float64
}

// RecordedOptions say what a table is.
type RecordedOptions struct {
	Name string
	// Knobs are the columns that were varied, in their order.
	Knobs    []string
	Minimize bool
	// Constraints reject combinations that the table lacks.
	Constraints []string
	// FirstIsDefault takes the first row for the default, which must be valid.
	// Otherwise it is drawn from the valid rows of the worse half, one for each seed.
	FirstIsDefault bool
}

// recorded is a table of measurements by configuration.
type recorded struct {
	rows map[string]float64 // of the valid rows, by packed levels
}

// Recorded makes a problem of a table in which a space was measured as a whole.
// Numbers become ordered knobs, texts and booleans categorical ones, and a missing
// value the level unset. What the table lacks crashes, unless a constraint rejects
// it. The recorded value counts as free of noise; the seed decides the default and
// the noise of launches.
func Recorded(seed uint64, rows []Record, options RecordedOptions) (*Problem, error) {
	space, err := recordedSpace(seed, rows, options)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", options.Name, err)
	}
	r := &recorded{rows: make(map[string]float64, len(rows))}
	problem := newProblem(options.Name, seed, space, r)
	problem.Minimize = options.Minimize
	for _, row := range rows {
		at := problem.at(row.Values)
		if math.IsNaN(row.Value) || space.Check(row.Values) != nil {
			continue
		}
		r.rows[packed(at)] = row.Value
		if problem.best == nil || problem.better(row.Value, problem.optimum) {
			problem.best, problem.optimum = at, row.Value
		}
	}
	if problem.best == nil {
		return nil, fmt.Errorf("table %s: the constraints reject every valid row", options.Name)
	}
	return problem, nil
}

func packed(at []int) string {
	levels := make([]byte, 0, 2*len(at))
	for _, level := range at {
		levels = append(levels, byte(level), byte(level>>8))
	}
	return string(levels)
}

func (r *recorded) crashes(at []int) bool {
	_, valid := r.rows[packed(at)]
	return !valid
}

func (r *recorded) value(at []int) float64 { return r.rows[packed(at)] }

func recordedSpace(seed uint64, rows []Record, options RecordedOptions) (*search.Space, error) {
	start, err := recordedDefault(seed, rows, options)
	if err != nil {
		return nil, err
	}
	var knobs []search.Knob
	for _, id := range options.Knobs {
		knob := search.Knob{ID: id, Default: start[id]}
		for _, row := range rows {
			if value := row.Values[id]; !slices.Contains(knob.Levels, value) {
				knob.Levels = append(knob.Levels, value)
			}
		}
		knob.Kind = kindOf(knob.Levels)
		knobs = append(knobs, knob)
	}
	var constraints []search.Constraint
	for _, source := range options.Constraints {
		constraints = append(constraints, search.Constraint{Source: source})
	}
	return search.NewSpace(knobs, constraints, nil)
}

// kindOf sorts levels that are numbers and names the kind.
func kindOf(levels []search.Value) search.KnobKind {
	whole, powers, set := true, true, 0
	for _, level := range levels {
		if level.IsUnset() {
			continue
		}
		set++
		if _, number := level.Number(); !number {
			return search.Categorical
		}
		n, integer := level.Integer()
		whole = whole && integer
		powers = powers && integer && n > 0 && bits.OnesCount64(uint64(n)) == 1
	}
	slices.SortFunc(levels, func(a, b search.Value) int { return cmp.Compare(place(a), place(b)) })
	switch {
	case powers && set > 2:
		return search.Log2
	case whole:
		return search.Integer
	}
	return search.Ordinal
}

// place puts unset before all numbers.
func place(level search.Value) float64 {
	if number, set := level.Number(); set {
		return number
	}
	return math.Inf(-1)
}

func recordedDefault(seed uint64, rows []Record, options RecordedOptions) (search.Values, error) {
	valid := slices.DeleteFunc(slices.Clone(rows), func(r Record) bool { return math.IsNaN(r.Value) })
	switch {
	case len(valid) == 0:
		return nil, fmt.Errorf("none of its %d rows has a value", len(rows))
	case !options.FirstIsDefault:
		slices.SortStableFunc(valid, func(a, b Record) int {
			if options.Minimize {
				a, b = b, a
			}
			return cmp.Compare(a.Value, b.Value)
		})
		return valid[rand.New(rand.NewPCG(seed, 4)).IntN((len(valid)+1)/2)].Values, nil
	case math.IsNaN(rows[0].Value):
		return nil, fmt.Errorf("its first row is to be the default and has no value")
	}
	return rows[0].Values, nil
}
