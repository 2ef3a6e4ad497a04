package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Space is what may be tried: knobs, when each of them matters, and which
// combinations are allowed. A Space is immutable once built by NewSpace and
// safe for concurrent use, provided that the canonicalize function is.
//
// Inside, the knobs stand in an order of their own (by id, parents before
// children), so that nothing depends on the order in which a file lists them.
type Space struct {
	knobs        []Knob
	given        []int // positions of the knobs in the order they were given
	constraints  []Constraint
	canonicalize func(Values) Values
	index        map[string]int
	levels       []map[Value]int // level of a value, by knob
	activity     []activity      // by knob
	rules        [][]rule        // by the last knob that a rule mentions
	byID         []int           // positions of the knobs, sorted by id
	labels       [][]string      // "id=literal" by knob and level
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
// one of these values. It is data, so that it can be shown and stored. Under a
// knob that is itself inactive the condition never holds, inverted or not.
type Condition struct {
	Knob string
	// In lists the values under which the knob is active; Not inverts the list.
	In  []Value
	Not bool
}

// String writes the condition in the language of constraints; it is empty for
// a knob that always matters.
func (c Condition) String() string {
	if c.Knob == "" {
		return ""
	}
	operator := "in"
	if c.Not {
		operator = "not in"
	}
	return fmt.Sprintf("%s %s [%s]", c.Knob, operator, literals(c.In))
}

// activity is a Condition resolved to positions.
type activity struct {
	parent int    // position of the knob it depends on, or -1
	active []bool // by level of the parent
}

// NewSpace checks the knobs and builds a space from them. All faults are
// reported at once, as KnobError and ConstraintError joined.
//
// A constraint that has only its Source is parsed here. canonicalize, which may
// be nil, maps a configuration to the form that decides whether two of them are
// the same launch: it may drop knobs that are inert and replace values by what
// they come to. It must be pure and must not keep its argument, which is a copy
// it may change and return.
func NewSpace(knobs []Knob, constraints []Constraint, canonicalize func(Values) Values) (*Space, error) {
	if len(knobs) == 0 {
		return nil, &KnobError{Reason: "the space has no knobs, want at least one"}
	}
	s := &Space{
		knobs:        cloneKnobs(knobs),
		constraints:  slices.Clone(constraints),
		canonicalize: canonicalize,
		rules:        make([][]rule, len(knobs)),
	}
	if err := s.indexKnobs(); err != nil {
		return nil, err
	}
	s.sortKnobs()
	if err := s.indexKnobs(); err != nil {
		return nil, err
	}
	var faults []error
	for i := range s.constraints {
		faults = append(faults, s.addConstraint(i))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	s.byID = make([]int, len(s.knobs))
	for i := range s.byID {
		s.byID[i] = i
	}
	slices.SortFunc(s.byID, func(a, b int) int { return strings.Compare(s.knobs[a].ID, s.knobs[b].ID) })
	return s, nil
}

func (s *Space) indexKnobs() error {
	s.index = make(map[string]int, len(s.knobs))
	s.levels, s.labels, s.activity = nil, nil, nil
	var faults []error
	for i := range s.knobs {
		faults = append(faults, s.addKnob(i))
	}
	return errors.Join(faults...)
}

// sortKnobs puts the knobs in the inner order: always the one with the smallest
// id among those whose parent has been placed.
func (s *Space) sortKnobs() {
	rest := slices.Clone(s.knobs)
	slices.SortFunc(rest, func(a, b Knob) int { return strings.Compare(a.ID, b.ID) })
	placed := make(map[string]int, len(rest))
	sorted := make([]Knob, 0, len(rest))
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(k Knob) bool {
			_, ok := placed[k.When.Knob]
			return ok || k.When.Knob == ""
		})
		placed[rest[i].ID] = len(sorted)
		sorted = append(sorted, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	s.given = make([]int, len(sorted))
	for i := range s.knobs {
		s.given[i] = placed[s.knobs[i].ID]
	}
	s.knobs = sorted
}

func (s *Space) addKnob(i int) error {
	knob := &s.knobs[i]
	fault := func(format string, args ...any) error {
		return &KnobError{Knob: knob.ID, Reason: fmt.Sprintf(format, args...)}
	}
	if knob.ID == "" {
		return &KnobError{Reason: fmt.Sprintf("knob number %d has no name", i+1)}
	}
	if _, ok := s.index[knob.ID]; ok {
		return fault("is defined twice")
	}
	levels := make(map[Value]int, len(knob.Levels))
	labels := make([]string, len(knob.Levels))
	for l, level := range knob.Levels {
		levels[level] = l
		labels[l] = label(knob.ID, level)
	}
	resolved, conditionErr := s.resolveCondition(knob.When, fault)
	s.index[knob.ID] = i
	s.levels = append(s.levels, levels)
	s.labels = append(s.labels, labels)
	s.activity = append(s.activity, resolved)
	return errors.Join(knob.validate(), conditionErr)
}

func (s *Space) resolveCondition(when Condition, fault func(string, ...any) error) (activity, error) {
	if when.Knob == "" {
		return activity{parent: -1}, nil
	}
	parent, ok := s.index[when.Knob]
	if !ok {
		return activity{parent: -1}, fault("depends on %s, which is not a knob before it%s",
			when.Knob, suggestion(nearestName(when.Knob, s.ids())))
	}
	active := make([]bool, len(s.knobs[parent].Levels))
	for l, level := range s.knobs[parent].Levels {
		active[l] = slices.Contains(when.In, level) != when.Not
	}
	for _, value := range when.In {
		if _, ok := s.levels[parent][value]; !ok {
			return activity{parent: -1}, fault("depends on %s being %s, which is not one of its levels %s",
				when.Knob, value.literal(), literals(s.knobs[parent].Levels))
		}
	}
	return activity{parent: parent, active: active}, nil
}

func (s *Space) addConstraint(i int) error {
	constraint := &s.constraints[i]
	if constraint.eval == nil {
		parsed, err := ParseConstraint(constraint.Source, s.knobs)
		if err != nil {
			return err
		}
		*constraint = parsed
	}
	positions := make([]int, len(constraint.mentions))
	for slot, id := range constraint.mentions {
		position, ok := s.index[id]
		if !ok {
			return &ConstraintError{Source: constraint.Source, Column: 1,
				Message: fmt.Sprintf("mentions %s, which is not a knob of the space", id), Nearest: nearestName(id, s.ids())}
		}
		positions[slot] = position
	}
	if len(positions) == 0 {
		return &ConstraintError{Source: constraint.Source, Column: 1, Message: "mentions no knob, so it rejects everything or nothing"}
	}
	last := slices.Max(positions)
	s.rules[last] = append(s.rules[last], newRule(constraint, positions, s.knobs))
	return nil
}

// Knobs returns the knobs in the order they were given. The copy is the
// caller's.
func (s *Space) Knobs() []Knob {
	knobs := make([]Knob, len(s.given))
	for n, i := range s.given {
		knobs[n] = s.knobs[i]
	}
	return cloneKnobs(knobs)
}

// Knob returns the knob with this id.
func (s *Space) Knob(id string) (Knob, bool) {
	i, ok := s.index[id]
	if !ok {
		return Knob{}, false
	}
	return cloneKnobs(s.knobs[i : i+1])[0], true
}

// Constraints returns the constraints in the order they were given.
func (s *Space) Constraints() []Constraint { return slices.Clone(s.constraints) }

func (s *Space) ids() []string {
	ids := make([]string, 0, len(s.index))
	for i := range s.knobs {
		if _, ok := s.index[s.knobs[i].ID]; ok {
			ids = append(ids, s.knobs[i].ID)
		}
	}
	return ids
}

func cloneKnobs(knobs []Knob) []Knob {
	clones := slices.Clone(knobs)
	for i := range clones {
		clones[i].Levels = slices.Clone(clones[i].Levels)
		clones[i].When.In = slices.Clone(clones[i].When.In)
	}
	return clones
}

// Describe writes the space for a person, one knob a line, then the
// constraints.
func (s *Space) Describe() string {
	var text strings.Builder
	for _, i := range s.given {
		knob := &s.knobs[i]
		fmt.Fprintf(&text, "%s  %s: %s, default %s", knob.ID, knob.Kind, literals(knob.Levels), knob.Default.literal())
		if knob.When.Knob != "" {
			fmt.Fprintf(&text, ", only when %s", knob.When)
		}
		text.WriteByte('\n')
	}
	for i := range s.constraints {
		fmt.Fprintf(&text, "constraint  %s\n", s.constraints[i].Source)
	}
	return text.String()
}
