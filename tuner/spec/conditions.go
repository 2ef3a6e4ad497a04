package spec

import (
	"slices"
	"strings"

	"nocturne/search"
)

// pendingCondition is a condition as it is written; what it speaks of may stand
// below it in the file.
type pendingCondition struct {
	knob string
	file section[oneOrMore]
}

// when keeps the condition of a knob until all knobs are known.
func (r *resolver) when(knob string, file section[oneOrMore]) {
	if file.Begin.Line > 0 {
		r.conditions = append(r.conditions, pendingCondition{knob, file})
	}
}

// readConditions ties the conditions to their knobs, and orders the knobs so
// that each stands behind the one that it depends on.
func (r *resolver) readConditions() {
	for _, pending := range r.conditions {
		i := slices.IndexFunc(r.knobs, func(k search.Knob) bool { return k.ID == pending.knob })
		entries := present(&r.collector, pending.file)
		if i < 0 || len(entries) == 0 {
			if len(pending.file.Entries) == 0 {
				r.fault(pending.file.Begin, "%s: when is empty; write when: {knob: [values]}", pending.knob)
			}
			continue
		}
		if len(entries) > 1 {
			r.fault(entries[1].At, "%s: when names one knob; write further conditions as constraints", pending.knob)
		}
		r.knobs[i].When = r.condition(pending.knob, entries[0])
	}
	r.orderKnobs()
}

func (r *resolver) condition(knob string, file entry[oneOrMore]) search.Condition {
	id := file.Key
	if strings.HasPrefix(id, "-") {
		id = FlagID(id)
	}
	i := slices.IndexFunc(r.knobs, func(k search.Knob) bool { return k.ID == id })
	if i < 0 || id == knob {
		others := slices.DeleteFunc(r.knobIDs(), func(other string) bool { return other == knob })
		r.fault(file.At, "%s: when: %q is not another knob of this space: %s", knob, file.Key, suggestion(file.Key, others))
		return search.Condition{}
	}
	if len(file.Value) == 0 {
		r.fault(file.At, "%s: when: want the values of %s under which it matters", knob, id)
		return search.Condition{}
	}
	condition := search.Condition{Knob: id}
	for _, written := range file.Value {
		if r.faulty[id] {
			continue // its values are not known
		}
		if value, ok := r.knobValue(knob+": when", "", r.knobs[i], written); ok {
			condition.In = append(condition.In, value)
		}
	}
	if len(condition.In) == 0 {
		return search.Condition{}
	}
	return condition
}

// orderKnobs puts each knob behind the one that it depends on. Knobs that
// depend on each other in a circle are refused.
func (r *resolver) orderKnobs() {
	ordered, rest := make([]search.Knob, 0, len(r.knobs)), slices.Clone(r.knobs)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(k search.Knob) bool {
			return !slices.ContainsFunc(rest, func(other search.Knob) bool { return other.ID == k.When.Knob })
		})
		if i < 0 {
			i = 0
			r.fault(r.bindings[rest[i].ID].at, "%s matters only under %s, which depends on it in turn; remove one of the conditions", rest[i].ID, rest[i].When.Knob)
			rest[i].When = search.Condition{}
		}
		ordered = append(ordered, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	r.knobs = ordered
}
