package search

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// KnobError says that the definition of a knob or of a space is wrong.
type KnobError struct {
	Knob   string // empty when the fault is not one knob's
	Reason string
}

func (e *KnobError) Error() string {
	if e.Knob == "" {
		return e.Reason
	}
	return fmt.Sprintf("knob %s: %s", e.Knob, e.Reason)
}

// UnknownKnobError says that a configuration names a knob the space lacks.
type UnknownKnobError struct {
	Knob    string
	Nearest string // the known name that is closest in spelling, or empty
}

func (e *UnknownKnobError) Error() string {
	return fmt.Sprintf("unknown knob %s%s", e.Knob, suggestion(e.Nearest))
}

// LevelError says that a value is not a level of its knob.
type LevelError struct {
	Knob    string
	Value   Value
	Allowed []Value
	// Nearest is the level closest in size or in spelling; Found is false when
	// none is close.
	Nearest Value
	Found   bool
}

func (e *LevelError) Error() string {
	nearest := ""
	if e.Found {
		nearest = e.Nearest.literal()
	}
	return fmt.Sprintf("knob %s: %s is not allowed, want one of %s%s",
		e.Knob, e.Value.literal(), literals(e.Allowed), suggestion(nearest))
}

// ActivityError says that a configuration lacks a knob that matters under its
// other values, or has one that does not.
type ActivityError struct {
	Knob   string
	Active bool // the knob matters but has no value
	When   Condition
}

func (e *ActivityError) Error() string {
	if e.Active {
		return fmt.Sprintf("knob %s has no value", e.Knob)
	}
	return fmt.Sprintf("knob %s has a value but does not matter: it is active only when %s", e.Knob, e.When)
}

// RejectedError says which constraint rejects a configuration, and which of
// the configuration's values the constraint speaks of.
type RejectedError struct {
	Constraint string
	Values     Values
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("constraint %q rejects %s", e.Constraint, e.Values)
}

// ConstraintError says why the text of a constraint is refused.
type ConstraintError struct {
	Source  string
	Column  int // of the offending text, counted in characters from 1
	Message string
	Nearest string // the known name that is closest in spelling, or empty
}

func (e *ConstraintError) Error() string {
	return fmt.Sprintf("constraint %q: column %d: %s%s", e.Source, e.Column, e.Message, suggestion(e.Nearest))
}

func suggestion(nearest string) string {
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", nearest)
}

func literals(values []Value) string {
	const shown = 12
	texts := make([]string, 0, shown+1)
	for i, v := range values {
		if i == shown {
			texts = append(texts, fmt.Sprintf("... (%d in all)", len(values)))
			break
		}
		texts = append(texts, v.literal())
	}
	return strings.Join(texts, ", ")
}

// nearestName returns the known name with the fewest edits to name, when at
// most a third of its letters (and at least two) differ.
func nearestName(name string, known []string) string {
	best, bestDistance := "", max(2, len(name)/3)+1
	for _, candidate := range known {
		distance := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(candidate))
		if distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

func nearestLevel(value Value, levels []Value) (Value, bool) {
	if number, ok := value.Number(); ok {
		best, found, bestGap := Unset, false, math.Inf(1)
		for _, level := range levels {
			if candidate, ok := level.Number(); ok && math.Abs(candidate-number) < bestGap {
				best, found, bestGap = level, true, math.Abs(candidate-number)
			}
		}
		return best, found
	}
	texts := make([]string, len(levels))
	for i, level := range levels {
		texts[i] = level.String()
	}
	name := nearestName(value.String(), texts)
	i := slices.Index(texts, name)
	if name == "" || i < 0 {
		return Unset, false
	}
	return levels[i], true
}
