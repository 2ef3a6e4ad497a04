package spec

import (
	"slices"
	"strings"

	"nocturne/nccl"
	"nocturne/search"
)

// bindingKind says what a knob does to a launch.
type bindingKind uint8

const (
	bindEnv         bindingKind = iota // sets a variable
	bindFlag                           // adds a flag with its value
	bindSwitch                         // adds a flag without a value
	bindGroup                          // adds a bundle
	bindSpeculative                    // is one of the numbers of speculation
)

// binding ties a knob to what it does.
type binding struct {
	kind    bindingKind
	name    string // variable or flag
	bundles map[string]bundle
	unsafe  bool
	at      Position
	// levels says where each value stands, to tell a fault there.
	levels map[search.Value]Position
}

// bundle is what one choice of a group adds.
type bundle struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"`
}

// isNCCL reports whether the knob sets a variable of NCCL.
func (b binding) isNCCL() bool { return b.kind == bindEnv && isNCCL(b.name) }

// FlagID is the name of a flag in constraints and configurations:
// --num-steps is flag.num_steps.
func FlagID(flag string) string {
	return "flag." + strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
}

// addKnob registers a knob with its binding, once for each id. A knob whose
// values are all at fault is registered all the same, so that what names it is
// not told to be unknown.
func (r *resolver) addKnob(knob search.Knob, bound binding) {
	if other, twice := r.bindings[knob.ID]; twice {
		if other.name != bound.name {
			r.fault(bound.at, "%s and %s at %d:%d have one name in constraints, %s; keep one of them", bound.name, other.name, other.at.Line, other.at.Column, knob.ID)
		} else {
			r.fault(bound.at, "knob %s stands here a second time; the first is at %d:%d", knob.ID, other.at.Line, other.at.Column)
		}
		return
	}
	if len(knob.Levels) == 0 {
		r.faulty[knob.ID] = true
		knob.Kind, knob.Levels = search.Categorical, []search.Value{search.Unset}
	}
	r.bindings[knob.ID] = bound
	r.knobs = append(r.knobs, knob)
}

func (r *resolver) envKnobs(file section[fileKnob]) {
	for _, entry := range r.kept("space.env", file) {
		if !r.envKnob(entry) {
			r.addKnob(search.Knob{ID: entry.Key}, binding{kind: bindEnv, name: entry.Key, at: entry.At})
		}
	}
}

// kept lists the entries of a section of the space that are not removed.
func (r *resolver) kept(owner string, file section[fileKnob]) []entry[fileKnob] {
	return keptOf(r, owner, file)
}

func keptOf[T any](r *resolver, owner string, file section[T]) []entry[T] {
	kept := make([]entry[T], 0, len(file.Entries))
	for _, entry := range file.Entries {
		switch {
		case !entry.Remove:
			kept = append(kept, entry)
		case entry.preset == "":
			r.fault(entry.At, "%s.%s: null removes what a preset brings, and none brings %s; remove the line, or declare the knob", owner, entry.Key, entry.Key)
		}
	}
	return kept
}

// envKnob adds a knob that is a variable; false when a fault leaves nothing to
// be added.
func (r *resolver) envKnob(entry entry[fileKnob]) bool {
	if !r.variable(entry.Key, entry.At, ownerOf("space.env", entry.preset), entry.preset) {
		return false
	}
	if secretName(entry.Key) {
		r.fault(entry.At, "%s holds a secret by its name, and the values of knobs are stored; it can stand in server.env only", entry.Key)
		return false
	}
	if isLogVariable(entry.Key) {
		r.fault(entry.At, "%s says what is logged, which is no part of a configuration; set it in server.env", entry.Key)
		return false
	}
	if r.always(entry.Key) {
		r.fault(entry.At, "%s overwrites %s itself, whatever it is given; remove the knob", r.serverKind().Title, entry.Key)
		return false
	}
	if variable, known := nccl.Lookup(entry.Key); known && !r.searchable(variable, entry) {
		return false
	}
	if kind := r.serverKind(); kind != nil {
		if written, writes := kind.WrittenBy(entry.Key); writes {
			r.warn(entry.At, "%s writes %s=%s itself where the variable is absent, so unset means that here, and not the program's own default", kind.Title, entry.Key, written.Value)
		}
	}
	if entry.Value.Switch != nil {
		r.fault(entry.Value.Where.of("switch"), "%s: switch is for flags; for a variable write choices: [0, 1]", entry.Key)
		return false
	}
	typed := typing{name: entry.Key, nccl: isNCCL(entry.Key), unsafe: entry.Value.Unsafe}
	knob, levels := r.knob(entry.Key, typed, entry.Value, entry.At)
	r.addKnob(knob, binding{kind: bindEnv, name: entry.Key, unsafe: entry.Value.Unsafe, at: entry.At, levels: levels})
	return true
}

// searchable refuses variables of NCCL that do not belong in this space.
func (r *resolver) searchable(variable nccl.Variable, entry entry[fileKnob]) bool {
	if variable.Unsafe != "" && !entry.Value.Unsafe {
		r.fault(entry.At, "%s: %s; add unsafe: true to search it all the same", variable.Name, variable.Unsafe)
		return false
	}
	for _, other := range []string{variable.SameAs, variable.Successor} {
		if taken, both := r.claims.variables[other]; both && other != "" {
			r.fault(entry.At, "%s limits the same as %s, which %s sets at %d:%d; keep one of them%s", variable.Name, other, taken.owner, taken.at.Line, taken.at.Column, removal(variable.Name, other, entry.preset, taken.preset))
			return false
		}
	}
	for name, taken := range r.claims.variables {
		if other, known := nccl.Lookup(name); known && other.Successor == variable.Name {
			r.fault(entry.At, "%s is the new name of %s, which %s sets at %d:%d; keep one of them", variable.Name, name, taken.owner, taken.at.Line, taken.at.Column)
			return false
		}
	}
	return true
}

// removal advises how to drop what a preset brings.
func removal(name, other, preset, otherPreset string) string {
	switch {
	case preset != "":
		return ", with " + name + ": null to remove what " + preset + " brings"
	case otherPreset != "":
		return ", with " + other + ": null to remove what " + otherPreset + " brings"
	}
	return ""
}

func ownerOf(part, preset string) string {
	if preset == "" {
		return part
	}
	return "preset " + preset
}

func (r *resolver) flagKnobs(file section[fileKnob]) {
	for _, entry := range r.kept("space.flags", file) {
		if !flagName.MatchString(entry.Key) {
			r.fault(entry.At, "%q is not a flag; write it with its dashes, such as --max-num-seqs", entry.Key)
			continue
		}
		id := FlagID(entry.Key)
		bound := binding{kind: bindFlag, name: entry.Key, at: entry.At}
		if !r.flagAllowed(entry) {
			r.addKnob(search.Knob{ID: id}, bound)
			continue
		}
		if entry.Value.Switch != nil {
			r.switchKnob(id, entry)
			continue
		}
		knob, levels := r.knob(id, typing{name: entry.Key}, entry.Value, entry.At)
		bound.levels = levels
		r.addKnob(knob, bound)
	}
}

// flagAllowed refuses flags that cannot be knobs.
func (r *resolver) flagAllowed(entry entry[fileKnob]) bool {
	if secretName(entry.Key) {
		r.fault(entry.At, "%s holds a secret by its name, and the values of knobs are stored; give it as a variable in server.env", entry.Key)
		return false
	}
	if _, ignored := unidentified[normalFlag(entry.Key)]; ignored {
		r.fault(entry.At, "%s says where the server listens or what it logs, which is no part of a configuration; set it in server.command", entry.Key)
		return false
	}
	if other, twice := r.bindings[FlagID(entry.Key)]; twice && other.name != entry.Key {
		return true // told by the name that both have
	}
	return r.claimFlag(entry.Key, claim{owner: ownerOf("space.flags", entry.preset), preset: entry.preset, at: entry.At})
}

func (r *resolver) switchKnob(id string, entry entry[fileKnob]) {
	file := entry.Value
	if !*file.Switch {
		r.fault(file.Where.of("switch"), "%s: switch: false says nothing; remove the knob, or write switch: true", entry.Key)
	}
	for _, key := range []string{"choices", "int", "step", "log2"} {
		if file.Where.has(key) {
			r.fault(file.Where.of(key), "%s: a switch is absent or present; it takes no %s", entry.Key, key)
		}
	}
	knob := search.SwitchKnob(id)
	if file.Default != nil {
		switch file.Default.Text {
		case "true":
			knob.Default = search.Bool(true)
		case "false", "unset":
		default:
			r.fault(file.Default.Position, "%s: default %q: a switch is true or false", entry.Key, file.Default.Text)
		}
	}
	r.addKnob(knob, binding{kind: bindSwitch, name: entry.Key, at: entry.At})
	r.when(id, file.When)
}

// groupName leaves the names that mean something else in constraints.
var reservedNames = []string{"flag", "speculative", "unset", "true", "false", "nil", "in", "not", "and", "or", "let", "if", "else"}

func (r *resolver) groupKnobs(file section[fileGroup]) {
	for _, entry := range keptOf(r, "space.groups", file) {
		if !groupName.MatchString(entry.Key) || slices.Contains(reservedNames, entry.Key) {
			r.fault(entry.At, "%q cannot name a group: want small letters, digits and underscores, and no word of the constraint language", entry.Key)
			continue
		}
		r.groupKnob(entry)
	}
}
