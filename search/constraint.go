package search

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// Constraint is a rule that rejects combinations, in the expression language
// of campaign files. See ParseConstraint.
type Constraint struct {
	Source   string
	mentions []string
	eval     condition
}

// maxConstraint bounds the text of a constraint, in bytes.
const maxConstraint = 4096

// ParseConstraint compiles a rule over the knobs.
//
// The language is a subset of expr-lang's: names of knobs (with dots, as in
// speculative.steps), numbers, "texts", true, false, unset, the operators
// == != < <= > >= in, not in, && || ! (or and, or, not), + - * / %, lists
// [1, 2] and ranges 1..4 after in, and brackets. There are no calls, so a
// constraint has no effect and always ends.
//
// A name that is not a knob, a comparison that can never hold because the types
// differ, and a rule that is not true or false are refused with a
// ConstraintError.
//
// Meaning where a value is missing: a rule that mentions a knob that is
// inactive holds. unset is a value for == != in; but an ordering comparison or
// arithmetic with an unset value is neither true nor false, since nobody knows
// what the server chooses by itself, and a rule rejects only what makes it
// false for certain. That is the rule of SQL's CHECK with NULL, and the
// three-valued logic is Kleene's. To forbid unset say so: X != unset && X <= 8.
//
// A switch counts as true when present and false when absent. Ordinal knobs
// with text levels compare by position with one of their own levels.
func ParseConstraint(source string, knobs []Knob) (Constraint, error) {
	if len(source) > maxConstraint {
		return Constraint{}, &ConstraintError{Source: source[:32] + "...", Column: maxConstraint,
			Message: fmt.Sprintf("has %d bytes, at most %d are allowed", len(source), maxConstraint)}
	}
	if !utf8.ValidString(source) {
		return Constraint{}, &ConstraintError{Source: source, Column: 1, Message: "is not valid UTF-8"}
	}
	tree, err := parser.Parse(source)
	if err != nil {
		return Constraint{}, syntaxError(source, err)
	}
	c := compiler{source: source, knobs: knobs}
	root, err := c.compile(tree.Node)
	if err != nil {
		return Constraint{}, err
	}
	if root.kinds&mayBool == 0 {
		return Constraint{}, c.fault(tree.Node, "is %s, a constraint must be true or false", root.kinds)
	}
	return Constraint{Source: source, mentions: c.mentions, eval: root.condition()}, nil
}

func syntaxError(source string, err error) error {
	fault := &ConstraintError{Source: source, Column: 1, Message: err.Error()}
	var located *file.Error
	if errors.As(err, &located) {
		fault.Column, fault.Message = located.Column+1, located.Message
	}
	return fault
}

// Mentions returns the ids of the knobs that the rule speaks of.
func (c Constraint) Mentions() []string { return slices.Clone(c.mentions) }

// Holds says whether the rule lets the values pass. A constraint that was not
// made by ParseConstraint or NewSpace lets everything pass.
func (c Constraint) Holds(values Values) bool {
	if c.eval == nil {
		return true
	}
	slots := make([]Value, len(c.mentions))
	for slot, id := range c.mentions {
		value, active := values[id]
		if !active {
			return true
		}
		slots[slot] = value
	}
	return c.eval(slots) != isFalse
}

// rule is a constraint bound to the positions of a space.
type rule struct {
	constraint *Constraint
	positions  []int
	knobs      []Knob
	// verdicts by combined level position, when there are few combinations:
	// a sampler checks millions of candidates.
	verdicts []bool
}

// maxVerdicts bounds the table of one rule.
const maxVerdicts = 1 << 14

func newRule(constraint *Constraint, positions []int, knobs []Knob) rule {
	r := rule{constraint: constraint, positions: positions, knobs: knobs}
	size := 1
	for _, i := range positions {
		if size *= len(knobs[i].Levels); size > maxVerdicts {
			return r
		}
	}
	verdicts := make([]bool, size)
	p := make(point, len(knobs))
	for combination := range verdicts {
		rest := combination
		for _, i := range slices.Backward(positions) {
			p[i] = rest % len(knobs[i].Levels)
			rest /= len(knobs[i].Levels)
		}
		verdicts[combination] = r.evaluate(p)
	}
	r.verdicts = verdicts
	return r
}

func (r *rule) holds(p point) bool {
	combination := 0
	for _, i := range r.positions {
		if p[i] == inactive {
			return true
		}
		combination = combination*len(r.knobs[i].Levels) + p[i]
	}
	if r.verdicts != nil {
		return r.verdicts[combination]
	}
	return r.evaluate(p)
}

func (r *rule) evaluate(p point) bool {
	slots := make([]Value, len(r.positions))
	for slot, i := range r.positions {
		slots[slot] = r.knobs[i].Levels[p[i]]
	}
	return r.constraint.eval(slots) != isFalse
}
