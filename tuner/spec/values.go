package spec

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"nocturne/nccl"
	"nocturne/search"
)

// value reads a scalar as a value of a knob. What it means is decided by the
// knob: NCCL's variables by NCCL's catalogue, others by how it is written.
func (r *resolver) value(typed typing, written scalar) (search.Value, bool) {
	switch {
	case written.isUnset():
		return search.Unset, true
	case written.style == null:
		r.fault(written.Position, "%s: null is no value; write unset for absence, or quote it to mean the text", typed.name)
		return search.Unset, false
	case typed.nccl:
		return r.ncclValue(typed, written)
	case written.Text == "unset":
		r.fault(written.Position, "%s: \"unset\" is the word for absence; write it without quotes", typed.name)
		return search.Unset, false
	}
	if reason := written.unclear(); reason != "" {
		advice := ", or 0 and 1 for a switch"
		if strings.HasPrefix(typed.name, "-") {
			advice = ", or switch: true for a flag without a value"
		}
		r.fault(written.Position, "%s: %s%s", typed.name, reason, written.switchAdvice(advice))
		return search.Unset, false
	}
	if masked, found := urlWithPassword(written.Text); found {
		r.fault(written.Position, "%s: %s holds a password, and the values of knobs are stored; give it as a variable in server.env", typed.name, masked)
		return search.Unset, false
	}
	text := r.launchText(written)
	if written.quoted() {
		return search.Text(text), true
	}
	return r.number(typed, written, text)
}

// number reads an unquoted text as a number where it is one.
func (r *resolver) number(typed typing, written scalar, text string) (search.Value, bool) {
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case ".inf", "inf", "infinity", ".nan", "nan":
		r.fault(written.Position, "%s: %s is not finite; quote it to mean the text", typed.name, text)
		return search.Unset, false
	}
	if number, ok := numberOf(text); ok {
		return number, true
	}
	if large, err := strconv.ParseFloat(text, 64); err == nil && isDecimal(text) && math.Abs(large) >= 1<<53 {
		r.fault(written.Position, "%s: %s has more digits than a number keeps; quote it to mean the text", typed.name, text)
		return search.Unset, false
	}
	return search.Text(text), true
}

// numberOf is the number that a text is, in decimal, 0x, 0o or 0b. A whole
// number that a float does not hold exactly is none.
func numberOf(text string) (search.Value, bool) {
	if whole, err := strconv.ParseInt(text, 0, 64); err == nil {
		return search.Int(whole), true
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !isDecimal(text) || math.Abs(number) >= 1<<53 {
		return search.Unset, false
	}
	return search.Float(number), true
}

// isDecimal leaves out what only Go reads as a number.
func isDecimal(text string) bool { return !strings.ContainsAny(text, "xXpP_iInN") }

// ncclValue reads a value of one of NCCL's variables.
func (r *resolver) ncclValue(typed typing, written scalar) (search.Value, bool) {
	text, err := nccl.Canonicalize(typed.name, r.launchText(written), nccl.Reading{Quoted: written.quoted(), Unsafe: typed.unsafe})
	if err != nil {
		r.fault(written.Position, "%s", r.refusal(err, "; or add unsafe: true to the knob"))
		return search.Unset, false
	}
	return ncclLevel(text), true
}

// ncclLevel is a canonical text of NCCL's as a value.
func ncclLevel(text string) search.Value {
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(number, 10) == text {
		return search.Int(number)
	}
	return search.Text(text)
}

// refusal is the message of an error about a value, with the advice how to opt
// in where that would admit it.
func (r *resolver) refusal(err error, unsafeAdvice string) string {
	var refused *nccl.ValueError
	if !errors.As(err, &refused) || !refused.NeedsUnsafe {
		return err.Error()
	}
	without := *refused
	without.NeedsUnsafe = false
	return without.Error() + unsafeAdvice
}

// knobValue reads a value that must be one of the knob's levels, in any
// spelling. what says where it stands, and advice what to do about one that is
// not.
func (r *resolver) knobValue(what, advice string, knob search.Knob, written scalar) (search.Value, bool) {
	var value search.Value
	switch bound := r.bindings[knob.ID]; {
	case bound.kind == bindSwitch:
		if !slices.Contains([]string{"true", "false", "unset"}, written.Text) {
			r.fault(written.Position, "%s: %s: %q: a switch is true or false", what, knob.ID, written.Text)
			return value, false
		}
		if written.Text == "true" {
			value = search.Bool(true)
		}
	case bound.kind == bindGroup:
		if !written.isUnset() {
			value = search.Text(written.Text)
		}
	default:
		var ok bool
		typed := typing{name: bound.name, nccl: bound.isNCCL(), unsafe: bound.unsafe}
		if value, ok = r.value(typed, written); !ok {
			return value, false
		}
	}
	if level, found := matching(knob.Levels, value); found {
		return level, true
	}
	r.fault(written.Position, "%s: %s is none of the values of %s (%s)%s", what, written.Text, knob.ID, strings.Join(levelTexts(knob.Levels), ", "), advice)
	return value, false
}
