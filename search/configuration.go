package search

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// inactive is the level of a knob that has no value.
const inactive = -1

// point is a configuration by level positions, in the order of the space's
// knobs; inactive knobs hold the level inactive.
type point []int

// Default returns the baseline: every active knob at its default.
func (s *Space) Default() Values { return s.values(s.defaultPoint()) }

func (s *Space) defaultPoint() point {
	p := make(point, len(s.knobs))
	for i := range p {
		p[i] = s.defaultLevel(i, p)
	}
	return p
}

// defaultLevel is the level that knob i takes when nothing else is said; the
// knobs before it are set.
func (s *Space) defaultLevel(i int, p point) int {
	if !s.isActive(i, p) {
		return inactive
	}
	return s.levels[i][s.knobs[i].Default]
}

func (s *Space) isActive(i int, p point) bool {
	rule := &s.activity[i]
	if rule.parent < 0 {
		return true
	}
	return p[rule.parent] != inactive && rule.active[p[rule.parent]]
}

func (s *Space) values(p point) Values {
	values := make(Values, len(p))
	for i, level := range p {
		if level != inactive {
			values[s.knobs[i].ID] = s.knobs[i].Levels[level]
		}
	}
	return values
}

// Complete turns a partial configuration into a whole one: knobs it does not
// name take their defaults, values of knobs that do not matter under the others
// are dropped. All faults are reported at once, as UnknownKnobError and
// LevelError joined. Constraints are not looked at; see Check.
func (s *Space) Complete(partial Values) (Values, error) {
	p, err := s.pointOf(partial)
	if err != nil {
		return nil, err
	}
	return s.values(p), nil
}

func (s *Space) pointOf(partial Values) (point, error) {
	faults := s.unknownKnobs(partial)
	p := make(point, len(s.knobs))
	for i := range p {
		p[i] = s.defaultLevel(i, p)
		value, given := partial[s.knobs[i].ID]
		if !given {
			continue
		}
		level, ok := s.levels[i][value]
		if !ok {
			faults = append(faults, s.levelError(i, value))
		} else if p[i] != inactive {
			p[i] = level
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return p, nil
}

func (s *Space) unknownKnobs(values Values) []error {
	var faults []error
	for _, id := range slices.Sorted(maps.Keys(values)) {
		if _, ok := s.index[id]; !ok {
			faults = append(faults, &UnknownKnobError{Knob: id, Nearest: nearestName(id, s.ids())})
		}
	}
	return faults
}

func (s *Space) levelError(i int, value Value) error {
	nearest, found := nearestLevel(value, s.knobs[i].Levels)
	return &LevelError{Knob: s.knobs[i].ID, Value: value, Allowed: slices.Clone(s.knobs[i].Levels), Nearest: nearest, Found: found}
}

// Active returns the ids of the knobs that matter under the values, in the
// order of the space. Knobs that values does not name count as at their
// defaults, and a value that is no level activates nothing.
func (s *Space) Active(values Values) []string {
	p := s.tolerantPoint(values)
	var ids []string
	for _, i := range s.given {
		if s.isActive(i, p) {
			ids = append(ids, s.knobs[i].ID)
		}
	}
	return ids
}

// tolerantPoint is pointOf for values that may be wrong: those become inactive.
func (s *Space) tolerantPoint(values Values) point {
	p := make(point, len(s.knobs))
	for i := range p {
		p[i] = s.defaultLevel(i, p)
		if value, given := values[s.knobs[i].ID]; given && p[i] != inactive {
			level, ok := s.levels[i][value]
			if !ok {
				level = inactive
			}
			p[i] = level
		}
	}
	return p
}

// Check says whether a whole configuration may be tried: it has a level for
// each active knob, nothing else, and no constraint rejects it. All faults are
// joined: UnknownKnobError, LevelError, ActivityError, RejectedError.
func (s *Space) Check(values Values) error {
	p, err := s.pointOf(values)
	if err != nil {
		return err
	}
	var faults []error
	for i := range p {
		_, given := values[s.knobs[i].ID]
		if given != (p[i] != inactive) {
			faults = append(faults, &ActivityError{Knob: s.knobs[i].ID, Active: !given, When: s.knobs[i].When})
		}
	}
	for _, rules := range s.rules {
		for i := range rules {
			if !rules[i].holds(p) {
				faults = append(faults, s.rejection(&rules[i], p))
			}
		}
	}
	return errors.Join(faults...)
}

func (s *Space) rejection(broken *rule, p point) error {
	mentioned := make(Values, len(broken.positions))
	for _, i := range broken.positions {
		mentioned[s.knobs[i].ID] = s.knobs[i].Levels[p[i]]
	}
	return &RejectedError{Constraint: broken.constraint.Source, Values: mentioned}
}

// legal reports whether no constraint rejects the point.
func (s *Space) legal(p point) bool {
	for i := range s.rules {
		if !s.legalAt(i, p) {
			return false
		}
	}
	return true
}

// legalAt checks the rules whose last knob is i; the knobs after i need not be
// set.
func (s *Space) legalAt(i int, p point) bool {
	for r := range s.rules[i] {
		if !s.rules[i][r].holds(p) {
			return false
		}
	}
	return true
}

// Key is the identity of a configuration: equal for two of them exactly when
// they come to the same launch. Knobs that do not matter are left out, knobs
// that are missing count as at their defaults, the space's canonicalize function
// is applied, and the order of the knobs plays no part. It never fails, so that
// configurations of an older space keep an identity.
func (s *Space) Key(values Values) string {
	p := s.tolerantPoint(values)
	whole := s.values(p)
	for id, value := range values {
		i, known := s.index[id]
		if !known || (p[i] == inactive && s.isActive(i, p)) {
			whole[id] = value
		}
	}
	return s.canonicalKey(whole)
}

func (s *Space) canonicalKey(whole Values) string {
	if s.canonicalize != nil {
		whole = s.canonicalize(whole)
	}
	return whole.String()
}

// pointKey is Key for a point of this space.
func (s *Space) pointKey(p point) string {
	if s.canonicalize != nil {
		return s.canonicalKey(s.values(p))
	}
	var text strings.Builder
	for _, i := range s.byID {
		if p[i] != inactive {
			if text.Len() > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(s.labels[i][p[i]])
		}
	}
	return text.String()
}

// String lists the values sorted by knob, as `A=1 B="text" C=unset`.
func (v Values) String() string {
	labels := make([]string, 0, len(v))
	for _, id := range slices.Sorted(maps.Keys(v)) {
		labels = append(labels, label(id, v[id]))
	}
	return strings.Join(labels, " ")
}

func label(id string, value Value) string { return id + "=" + value.literal() }

// adopt sets the levels of the knobs from first on to what is consistent with
// the knobs before: inactive where they do not matter, the default where they
// matter and had no level.
func (s *Space) adopt(p point, first int) {
	for i := first; i < len(p); i++ {
		switch {
		case !s.isActive(i, p):
			p[i] = inactive
		case p[i] == inactive:
			p[i] = s.levels[i][s.knobs[i].Default]
		}
	}
}

// with returns a copy of the point with knob i at another level.
func (s *Space) with(p point, i, level int) point {
	changed := slices.Clone(p)
	changed[i] = level
	s.adopt(changed, i+1)
	return changed
}
