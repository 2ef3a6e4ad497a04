package spec

import (
	"strconv"
	"strings"

	"nocturne/nccl"
	"nocturne/search"
)

// value reads a scalar as a value of a knob. What it means is decided by the
// knob: NCCL's variables by NCCL's catalogue, others by how it is written.
func (r *resolver) value(id string, typed typing, scalar Scalar) (search.Value, bool) {
	if scalar.Text == "unset" && !scalar.Quoted {
		return search.Unset, true
	}
	if typed.nccl {
		return r.ncclValue(typed, scalar)
	}
	if scalar.ambiguous(r) {
		return search.Unset, false
	}
	if scalar.Quoted {
		return search.Text(scalar.Text), true
	}
	switch strings.ToLower(scalar.Text) {
	case "true", "false":
		r.fault(scalar.Position, "%s: %s is a truth value; write \"%s\" to mean the text, or switch: true for a flag without a value", id, scalar.Text, scalar.Text)
		return search.Unset, false
	}
	if number, err := strconv.ParseInt(strings.ReplaceAll(scalar.Text, "_", ""), 0, 64); err == nil {
		return search.Int(number), true
	}
	if number, err := scalar.float(); err == nil {
		return search.Float(number), true
	}
	if strings.HasPrefix(scalar.Text, ".nan") || strings.HasPrefix(strings.TrimLeft(scalar.Text, "+-"), ".inf") {
		r.fault(scalar.Position, "%s: %s is not finite", id, scalar.Text)
		return search.Unset, false
	}
	return search.Text(r.expand(scalar)), true
}

// ncclValue reads a value of one of NCCL's variables.
func (r *resolver) ncclValue(typed typing, scalar Scalar) (search.Value, bool) {
	if scalar.Null {
		scalar.ambiguous(r)
		return search.Unset, false
	}
	text, err := nccl.Canonicalize(typed.name, scalar.Text, nccl.Reading{Quoted: scalar.Quoted, Unsafe: typed.unsafe})
	if err != nil {
		r.fault(scalar.Position, "%v", err)
		return search.Unset, false
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return search.Int(number), true
	}
	return search.Text(text), true
}

// environmentValue reads the value of a variable that is set for all trials.
func (r *resolver) environmentValue(name string, scalar Scalar) (string, bool) {
	if strings.HasPrefix(name, "NCCL_") {
		text, err := nccl.Canonicalize(name, scalar.Text, nccl.Reading{Quoted: scalar.Quoted})
		if err != nil {
			r.fault(scalar.Position, "%v", err)
			return "", false
		}
		return text, true
	}
	if scalar.ambiguous(r) {
		return "", false
	}
	return r.expand(scalar), true
}

// when reads the condition of a knob.
func (r *resolver) when(section Section[[]Scalar]) search.Condition {
	if len(section.Entries) == 0 {
		return search.Condition{}
	}
	entry := section.Entries[0]
	if len(section.Entries) > 1 {
		r.fault(section.Entries[1].At, "when names one knob; put further conditions into constraints")
	}
	condition := search.Condition{Knob: entry.Key}
	for _, scalar := range entry.Value {
		typed := typing{name: entry.Key, nccl: strings.HasPrefix(entry.Key, "NCCL_"), unsafe: true}
		if value, ok := r.value(entry.Key, typed, scalar); ok {
			condition.In = append(condition.In, value)
		}
	}
	return condition
}

// configuration reads a mapping of knobs to values, such as `current` or one
// of `try`, and fills in the defaults.
func (r *resolver) configuration(what string, section Section[Scalar]) search.Values {
	if len(section.Entries) == 0 || r.space == nil {
		return nil
	}
	partial, legal := search.Values{}, true
	for _, entry := range section.Entries {
		id := entry.Key
		if strings.HasPrefix(id, "-") {
			id = FlagID(id)
		}
		knob, known := r.space.Knob(id)
		if !known {
			r.fault(entry.At, "%s: %q is not a knob of this space: %s", what, entry.Key, suggestion(entry.Key, r.knobIDs()))
			legal = false
			continue
		}
		value, ok := r.knobValue(knob, entry.Value)
		if !ok {
			legal = false
			continue
		}
		partial[id] = value
	}
	if !legal {
		return nil
	}
	values, err := r.space.Complete(partial)
	if err == nil {
		err = r.space.Check(values)
	}
	if err != nil {
		r.fault(section.Entries[0].At, "%s: %v", what, err)
		return nil
	}
	return values
}

// knobValue reads a value that must be one of the knob's levels.
func (r *resolver) knobValue(knob search.Knob, scalar Scalar) (search.Value, bool) {
	var value search.Value
	switch bound := r.bindings[knob.ID]; {
	case bound.kind == bindSwitch:
		if scalar.Text != "true" && scalar.Text != "false" && scalar.Text != "unset" {
			r.fault(scalar.Position, "%s: %q: a switch is true or false", knob.ID, scalar.Text)
			return value, false
		}
		if scalar.Text == "true" {
			value = search.Bool(true)
		}
	case bound.kind == bindGroup && scalar.Text != "unset":
		value = search.Text(scalar.Text)
	default:
		var ok bool
		typed := typing{name: bound.name, nccl: strings.HasPrefix(bound.name, "NCCL_"), unsafe: bound.unsafe}
		if value, ok = r.value(knob.ID, typed, scalar); !ok {
			return value, false
		}
	}
	for _, level := range knob.Levels {
		if level == value {
			return value, true
		}
	}
	r.fault(scalar.Position, "%s: %s is none of the knob's values (%s); add it to the space to have it measured", knob.ID, scalar.Text, strings.Join(levelTexts(knob.Levels), ", "))
	return value, false
}

func (r *resolver) knobIDs() []string {
	ids := make([]string, len(r.knobs))
	for i, knob := range r.knobs {
		ids[i] = knob.ID
	}
	return ids
}
