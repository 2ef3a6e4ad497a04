package search

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is the setting of one knob: absent, a text, an integer, a float or a
// boolean. It is comparable, so equality and map keys work as expected; an
// integer is never held as a float (16777216 must stay 16777216).
//
// The zero Value is Unset: the variable or flag is absent from the launch.
type Value struct {
	kind  valueKind
	text  string
	whole int64
	real  float64
}

type valueKind uint8

const (
	kindUnset valueKind = iota
	kindText
	kindInt
	kindFloat
	kindBool
)

// Unset is the value of a knob that is absent from the launch.
var Unset = Value{}

// Text returns a text value.
func Text(s string) Value { return Value{kind: kindText, text: s} }

// Int returns an integer value.
func Int(i int64) Value { return Value{kind: kindInt, whole: i} }

// Float returns a float value. A float without a fraction that fits an int64
// becomes an integer, so that 2 and 2.0 are one value. NaN and infinities
// panic: they are refused where values are read.
func Float(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		panic("search: a knob value must be finite")
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return Int(int64(f))
	}
	return Value{kind: kindFloat, real: f}
}

// Bool returns a boolean value, the value of a switch.
func Bool(b bool) Value {
	v := Value{kind: kindBool}
	if b {
		v.whole = 1
	}
	return v
}

// IsUnset reports whether the knob is absent.
func (v Value) IsUnset() bool { return v.kind == kindUnset }

// Number returns the value as a float64 when it is a number.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case kindInt:
		return float64(v.whole), true
	case kindFloat:
		return v.real, true
	}
	return 0, false
}

// Integer returns the value as an int64 when it is an integer.
func (v Value) Integer() (int64, bool) { return v.whole, v.kind == kindInt }

// Boolean returns the value when it is a boolean.
func (v Value) Boolean() (value, ok bool) { return v.whole == 1, v.kind == kindBool }

// Any returns nil, string, int64, float64 or bool, for expression evaluation.
func (v Value) Any() any {
	switch v.kind {
	case kindText:
		return v.text
	case kindInt:
		return v.whole
	case kindFloat:
		return v.real
	case kindBool:
		return v.whole == 1
	}
	return nil
}

// String is the text that reaches an environment variable or an argument;
// "unset" for an absent value.
func (v Value) String() string {
	switch v.kind {
	case kindText:
		return v.text
	case kindInt:
		return strconv.FormatInt(v.whole, 10)
	case kindFloat:
		return strconv.FormatFloat(v.real, 'g', -1, 64)
	case kindBool:
		return strconv.FormatBool(v.whole == 1)
	}
	return "unset"
}

// MarshalJSON writes null, a string, a number or a boolean.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.Any()) }

// UnmarshalJSON reads what MarshalJSON writes. Integers keep all their digits.
func (v *Value) UnmarshalJSON(data []byte) error {
	text := strings.TrimSpace(string(data))
	switch {
	case text == "null":
		*v = Unset
	case text == "true" || text == "false":
		*v = Bool(text == "true")
	case strings.HasPrefix(text, `"`):
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*v = Text(s)
	default:
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			*v = Int(i)
			return nil
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || isWhole(text) {
			return fmt.Errorf("knob value %s: want null, a string, a boolean, a finite number or an integer of 64 bits", text)
		}
		*v = Float(f)
	}
	return nil
}

// isWhole reports whether a number is written as an integer: one that does not
// fit 64 bits would lose digits as a float, so it is refused instead.
func isWhole(text string) bool { return !strings.ContainsAny(text, ".eE") }

// literal is the value as one writes it in a constraint: text is quoted, so
// that the text "4" and the number 4 differ.
func (v Value) literal() string {
	if v.kind == kindText {
		return strconv.Quote(v.text)
	}
	return v.String()
}

// less orders numbers by size; ok is false when either value is no number.
func (v Value) less(other Value) (less, ok bool) {
	if v.kind == kindInt && other.kind == kindInt {
		return v.whole < other.whole, true
	}
	a, aIsNumber := v.Number()
	b, bIsNumber := other.Number()
	return a < b, aIsNumber && bIsNumber
}

// Values maps the id of a knob to its value. A knob that is inactive under the
// others is absent from the map; a knob that is active but unset is present
// with Unset.
type Values map[string]Value
