package spec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nocturne/nccl"
	"nocturne/search"
)

// typing says how the values of a knob are read.
type typing struct {
	name   string
	nccl   bool
	unsafe bool
}

// knob builds a knob of choices, a range, or powers of two, and says where each
// of its values stands.
func (r *resolver) knob(id string, typed typing, file fileKnob, at Position) (search.Knob, map[search.Value]Position) {
	knob := search.Knob{ID: id}
	if !file.Where.read() {
		return knob, nil // no mapping, which has been told
	}
	shapes := slices.DeleteFunc([]string{"choices", "int", "log2"}, func(key string) bool { return !file.Where.has(key) })
	if len(shapes) != 1 {
		r.fault(at, "%s: want exactly one of choices, int and log2", typed.name)
		return knob, nil
	}
	if file.Step != nil && shapes[0] != "int" {
		r.fault(file.Step.Position, "%s: step belongs to int; remove it", typed.name)
	}
	var places map[search.Value]Position
	switch shapes[0] {
	case "choices":
		knob.Kind, knob.Levels, places = r.choices(typed, file)
	case "int":
		knob.Kind, knob.Levels, places = search.Integer, r.integers(typed, file), nil
	default:
		knob.Kind, knob.Levels, places = search.Log2, r.powers(typed, file), nil
	}
	r.setDefault(&knob, typed, file.Default)
	r.when(id, file.When)
	return knob, places
}

// setDefault applies the declared default; without one, absence is a value of
// the knob and its default.
func (r *resolver) setDefault(knob *search.Knob, typed typing, declared *scalar) {
	if len(knob.Levels) == 0 {
		return
	}
	if declared == nil || declared.isUnset() {
		if !slices.Contains(knob.Levels, search.Unset) {
			knob.Levels = search.WithUnset(knob.Levels)
		}
		return
	}
	knob.Default = knob.Levels[0]
	value, ok := r.value(typed, *declared)
	if !ok {
		return
	}
	level, found := matching(knob.Levels, value)
	if !found {
		r.fault(declared.Position, "%s: default %s is none of its values: %s", typed.name, declared.Text, strings.Join(levelTexts(knob.Levels), ", "))
		return
	}
	knob.Default = level
}

// matching finds a level that is the value, or means it: a quoted number is the
// number where the levels are numbers, and a number is the text where they are
// texts.
func matching(levels []search.Value, value search.Value) (search.Value, bool) {
	if slices.Contains(levels, value) {
		return value, true
	}
	number, isNumber := numberOf(value.String())
	i := slices.IndexFunc(levels, func(level search.Value) bool {
		same := level.String() == value.String() || isNumber && level == number
		return same && !level.IsUnset() && !value.IsUnset()
	})
	if i < 0 {
		return search.Unset, false
	}
	return levels[i], true
}

// mostChoices bounds the list of a knob. A campaign of a few dozen trials tells
// far fewer apart.
const mostChoices = 1000

// choice is a value with the text that it was read from.
type choice struct {
	value search.Value
	scalar
}

func (r *resolver) choices(typed typing, file fileKnob) (search.KnobKind, []search.Value, map[search.Value]Position) {
	if file.Choices != nil && len(file.Choices) == 0 {
		r.fault(file.Where.of("choices"), "%s: choices is empty; want values, such as [unset, 4, 8]", typed.name)
	}
	if len(file.Choices) > mostChoices {
		r.fault(file.Where.of("choices"), "%s: %d choices, at most %d are taken", typed.name, len(file.Choices), mostChoices)
		return search.Categorical, nil, nil
	}
	var read []choice
	for _, written := range file.Choices {
		value, ok := r.value(typed, written)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(read, func(c choice) bool { return c.value == value }); i >= 0 {
			first := read[i]
			r.fault(written.Position, "%s: %s is the same value as %s at %d:%d (%s); remove one of them", typed.name, written.Text, first.Text, first.Line, first.Column, value)
			continue
		}
		read = append(read, choice{value, written})
	}
	r.sameType(typed, read)
	places := map[search.Value]Position{}
	levels := make([]search.Value, 0, len(read))
	for _, c := range read {
		places[c.value] = c.Position
		levels = append(levels, c.value)
	}
	if len(file.Choices) == 1 && len(levels) == 1 && levels[0].IsUnset() {
		r.fault(file.Where.of("choices"), "%s: unset is the only choice, so there is nothing to search; add a value", typed.name)
	}
	kind := kindOfLevels(typed, levels)
	if kind == search.Ordinal {
		slices.SortFunc(levels, byNumber)
	}
	return kind, unsetFirst(levels), places
}

// sameType refuses a list that mixes numbers and texts: one of them is a slip.
func (r *resolver) sameType(typed typing, read []choice) {
	isNumber := func(c choice) bool { _, number := c.value.Number(); return number }
	number := slices.IndexFunc(read, isNumber)
	text := slices.IndexFunc(read, func(c choice) bool { return !isNumber(c) && !c.value.IsUnset() })
	if number >= 0 && text >= 0 && !typed.nccl {
		r.fault(read[text].Position, "%s: the choices mix texts (%s) and numbers (%s); quote the numbers to mean texts", typed.name, read[text].Text, read[number].Text)
	}
}

// kindOfLevels: numbers are ordered, unless NCCL uses them as names.
func kindOfLevels(typed typing, levels []search.Value) search.KnobKind {
	numbers := 0
	for _, level := range levels {
		if _, number := level.Number(); number {
			numbers++
		} else if !level.IsUnset() {
			return search.Categorical
		}
	}
	if variable, known := nccl.Lookup(typed.name); known && (variable.Kind == nccl.Choice || variable.Kind == nccl.Switch) {
		return search.Categorical
	}
	if numbers > 1 {
		return search.Ordinal
	}
	return search.Categorical
}

// byNumber orders numbers, with unset before them.
func byNumber(a, b search.Value) int {
	x, isX := a.Number()
	y, isY := b.Number()
	switch {
	case !isX || !isY:
		return strings.Compare(strconv.FormatBool(isX), strconv.FormatBool(isY))
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func unsetFirst(levels []search.Value) []search.Value {
	i := slices.Index(levels, search.Unset)
	if i <= 0 {
		return levels
	}
	return append([]search.Value{search.Unset}, slices.Delete(levels, i, i+1)...)
}

func (r *resolver) bounds(typed typing, key string, pair []scalar, at Position) (lo, hi int64, ok bool) {
	if len(pair) != 2 {
		r.fault(at, "%s: %s wants two numbers, %s: [low, high]", typed.name, key, key)
		return 0, 0, false
	}
	var ends [2]int64
	for i, written := range pair {
		end, err := wholeNumber(written, typed)
		if err != nil {
			r.fault(written.Position, "%s: %v", typed.name, err)
			return 0, 0, false
		}
		ends[i] = end
	}
	return ends[0], ends[1], true
}

func (r *resolver) integers(typed typing, file fileKnob) []search.Value {
	lo, hi, ok := r.bounds(typed, "int", file.Int, file.Where.of("int"))
	if !ok {
		return nil
	}
	step := int64(1)
	if file.Step != nil {
		var err error
		if step, err = wholeNumber(*file.Step, typed); err != nil {
			r.fault(file.Step.Position, "%s: step: %v", typed.name, err)
			return nil
		}
	}
	levels, err := search.Range(lo, hi, step)
	return r.safeLevels(typed, levels, err, file.Where.of("int"))
}

func (r *resolver) powers(typed typing, file fileKnob) []search.Value {
	lo, hi, ok := r.bounds(typed, "log2", file.Log2, file.Where.of("log2"))
	if !ok {
		return nil
	}
	levels, err := search.PowersOfTwo(lo, hi)
	return r.safeLevels(typed, levels, err, file.Where.of("log2"))
}

// safeLevels checks a range, and every number of it as a value of NCCL's
// variable.
func (r *resolver) safeLevels(typed typing, levels []search.Value, err error, at Position) []search.Value {
	if err != nil {
		r.fault(at, "%s: %v", typed.name, err)
		return nil
	}
	if !typed.nccl {
		return levels
	}
	for _, level := range levels {
		if _, err := nccl.Canonicalize(typed.name, level.String(), nccl.Reading{Unsafe: typed.unsafe}); err != nil {
			r.fault(at, "the range holds a value that is refused: %s", r.refusal(err, "; or add unsafe: true to the knob"))
			return nil
		}
	}
	return levels
}

// wholeNumber reads an integer; for NCCL's byte counts with their suffixes.
func wholeNumber(written scalar, typed typing) (int64, error) {
	if written.leadingZero() {
		return 0, errors.New(written.octal())
	}
	if variable, known := nccl.Lookup(typed.name); known && variable.Kind == nccl.Bytes {
		text, err := nccl.Canonicalize(typed.name, written.Text, nccl.Reading{Unsafe: true})
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(text, 10, 64)
	}
	number, err := strconv.ParseInt(written.Text, 0, 64)
	if err != nil || written.quoted() {
		return 0, fmt.Errorf("%q: want a whole number", written.Text)
	}
	return number, nil
}

func levelTexts(levels []search.Value) []string {
	texts := make([]string, len(levels))
	for i, level := range levels {
		texts[i] = level.String()
	}
	return texts
}
