package search

// Space is what may be tried: knobs, when each of them matters, and which
// combinations are allowed. A Space is immutable once built by NewSpace.
type Space struct {
	knobs        []Knob
	constraints  []Constraint
	canonicalize func(Values) Values
	index        map[string]int
}

// KnobKind says how the levels of a knob relate to each other.
type KnobKind string

// Kinds of knobs.
const (
	Categorical KnobKind = "categorical" // no order
	Ordinal     KnobKind = "ordinal"     // listed from small to large
	Integer     KnobKind = "integer"     // a range of integers with a step
	Log2        KnobKind = "log2"        // powers of two of a range
	Switch      KnobKind = "switch"      // absent or present
	Group       KnobKind = "group"       // named bundles of variables and flags
)

// Knob is one thing that can be set. Its levels are finite and listed.
type Knob struct {
	// ID is the name used in constraints, configurations and reports: a
	// variable's name, flag.snake_name, a group's name, or speculative.steps.
	ID   string
	Kind KnobKind
	// Levels are the legal values; for ordered kinds in ascending order, with
	// Unset, when legal, in first place.
	Levels []Value
	// Default is the level of the baseline.
	Default Value
	// When, if set, says whether the knob matters under the values of the
	// knobs before it. An inactive knob has no value.
	When Condition
}

// Condition is an activity rule: the knob is active when the named knob has
// one of these values. It is data, so that it can be shown and stored.
type Condition struct {
	Knob string
	// In lists the values under which the knob is active; Not inverts the list.
	In  []Value
	Not bool
}

// Constraint is a rule that rejects combinations, in the expression language
// of campaign files.
type Constraint struct {
	Source string
	check  func(Values) (bool, error)
}
