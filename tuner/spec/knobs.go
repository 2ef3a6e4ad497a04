package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
}

// bundle is what one choice of a group adds.
type bundle struct {
	args []string
	env  map[string]string
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	flagName     = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9_.-]*$`)
	groupName    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// FlagID is the name of a flag in constraints and configurations:
// --num-steps is flag.num_steps.
func FlagID(flag string) string {
	return "flag." + strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
}

// addKnob registers a knob with its binding, once for each id.
func (r *resolver) addKnob(knob search.Knob, bound binding) {
	if other, twice := r.bindings[knob.ID]; twice {
		r.fault(bound.at, "knob %s stands here a second time; the first is at %d:%d", knob.ID, other.at.Line, other.at.Column)
		return
	}
	if len(knob.Levels) == 0 {
		return // its faults have been told
	}
	r.bindings[knob.ID] = bound
	r.knobs = append(r.knobs, knob)
}

func (r *resolver) envKnobs(section Section[fileKnob]) {
	for _, entry := range section.Entries {
		if entry.Remove {
			continue
		}
		if !variableName.MatchString(entry.Key) {
			r.fault(entry.At, "%q is not a variable's name; want letters, digits and underscores", entry.Key)
			continue
		}
		if !r.variable(entry.Key, entry.At, entry.Value.Unsafe) {
			continue
		}
		if at, both := r.baseEnv[entry.Key]; both {
			r.fault(entry.At, "%s is a knob here and is set in server.env at %d:%d; keep one of them", entry.Key, at.Line, at.Column)
			continue
		}
		if slices.Contains(r.file.Server.Inherit, entry.Key) {
			r.fault(entry.At, "%s is a knob here and is inherited by server.inherit; keep one of them", entry.Key)
			continue
		}
		typed := typing{name: entry.Key, nccl: strings.HasPrefix(entry.Key, "NCCL_"), unsafe: entry.Value.Unsafe}
		knob := r.knob(entry.Key, typed, entry.Value, entry.At)
		r.addKnob(knob, binding{kind: bindEnv, name: entry.Key, unsafe: entry.Value.Unsafe, at: entry.At})
	}
}

// variable checks the name of an environment variable against NCCL's
// catalogue: a misspelt one has no effect, and nothing would say so.
func (r *resolver) variable(name string, at Position, unsafe bool) bool {
	switch recognition, known := nccl.Recognize(name); recognition {
	case nccl.NearName:
		r.fault(at, "%s is not a variable of NCCL, and NCCL would ignore it in silence: did you mean %s?", name, known)
		return false
	case nccl.UnknownName:
		r.warn(at, "%s is not a variable that Nocturne knows NCCL to read; if it is misspelt it has no effect", name)
	case nccl.KnownName:
		variable, _ := nccl.Lookup(name)
		if variable.Successor != "" {
			r.warn(at, "%s was renamed to %s", name, variable.Successor)
		}
		if variable.Unsafe != "" && !unsafe {
			r.fault(at, "%s: %s; declare the knob unsafe to search it all the same", name, variable.Unsafe)
			return false
		}
	}
	return true
}

func (r *resolver) flagKnobs(section Section[fileKnob]) {
	for _, entry := range section.Entries {
		if entry.Remove {
			continue
		}
		if !flagName.MatchString(entry.Key) {
			r.fault(entry.At, "%q is not a flag; write it with its dashes, such as --max-num-seqs", entry.Key)
			continue
		}
		if at, both := r.commandFlag(entry.Key); both {
			r.fault(entry.At, "%s is a knob here and stands in server.command at %d:%d; keep one of them", entry.Key, at.Line, at.Column)
			continue
		}
		id := FlagID(entry.Key)
		if entry.Value.Switch != nil {
			r.switchKnob(id, entry)
			continue
		}
		knob := r.knob(id, typing{name: entry.Key}, entry.Value, entry.At)
		r.addKnob(knob, binding{kind: bindFlag, name: entry.Key, at: entry.At})
	}
}

func (r *resolver) switchKnob(id string, entry Entry[fileKnob]) {
	if !*entry.Value.Switch {
		r.fault(entry.At, "%s: switch: false says nothing; remove the knob, or write switch: true", entry.Key)
		return
	}
	knob := search.SwitchKnob(id)
	if entry.Value.Default != nil {
		switch entry.Value.Default.Text {
		case "true":
			knob.Default = search.Bool(true)
		case "false", "unset":
		default:
			r.fault(entry.Value.Default.Position, "%s: default %q: a switch is true or false", entry.Key, entry.Value.Default.Text)
		}
	}
	if len(entry.Value.Choices)+len(entry.Value.Int)+len(entry.Value.Log2) > 0 {
		r.fault(entry.At, "%s: a switch takes no choices, int or log2", entry.Key)
	}
	knob.When = r.when(entry.Value.When)
	r.addKnob(knob, binding{kind: bindSwitch, name: entry.Key, at: entry.At})
}

// commandFlag finds a flag in the base command, in either spelling.
func (r *resolver) commandFlag(flag string) (Position, bool) {
	for _, argument := range r.file.Server.Command {
		name, _, _ := strings.Cut(argument.Text, "=")
		if name == flag || (strings.HasPrefix(name, "--") && strings.ReplaceAll(name, "_", "-") == strings.ReplaceAll(flag, "_", "-")) {
			return argument.Position, true
		}
	}
	return Position{}, false
}

func (r *resolver) groupKnobs(section Section[fileGroup]) {
	for _, entry := range section.Entries {
		if entry.Remove {
			continue
		}
		if !groupName.MatchString(entry.Key) {
			r.fault(entry.At, "%q: a group is named by small letters, digits and underscores", entry.Key)
			continue
		}
		bound := binding{kind: bindGroup, name: entry.Key, bundles: map[string]bundle{}, at: entry.At}
		knob := search.Knob{ID: entry.Key, Kind: search.Group}
		if entry.Value.Default == nil {
			knob.Levels = []search.Value{search.Unset}
		} else {
			knob.Default = search.Text(entry.Value.Default.Text)
		}
		for _, choice := range entry.Value.Choices.Entries {
			if truthWords[strings.ToLower(choice.Key)] || choice.Key == "unset" {
				r.fault(choice.At, "group %s: %q is no good name for a choice: it reads as a truth value or as absence", entry.Key, choice.Key)
			}
			bound.bundles[choice.Key] = r.bundle(choice.Value)
			knob.Levels = append(knob.Levels, search.Text(choice.Key))
		}
		if len(bound.bundles) == 0 {
			r.fault(entry.At, "group %s has no choices", entry.Key)
			continue
		}
		if d := entry.Value.Default; d != nil && !slices.Contains(knob.Levels, knob.Default) {
			r.fault(d.Position, "group %s: default %q is none of its choices: %s", entry.Key, d.Text, suggestion(d.Text, levelTexts(knob.Levels)))
			continue
		}
		r.addKnob(knob, bound)
	}
}

func (r *resolver) bundle(file fileBundle) bundle {
	made := bundle{env: map[string]string{}}
	for _, argument := range file.Args {
		if !argument.Quoted && truthWords[strings.ToLower(argument.Text)] {
			argument.ambiguous(r)
			continue
		}
		made.args = append(made.args, r.expand(argument))
		if flag, _, _ := strings.Cut(argument.Text, "="); strings.HasPrefix(flag, "-") {
			if at, both := r.commandFlag(flag); both && flagName.MatchString(flag) {
				r.fault(argument.Position, "%s belongs to a group here and stands in server.command at %d:%d; keep one of them", flag, at.Line, at.Column)
			}
		}
	}
	for _, entry := range file.Env.Entries {
		if !r.variable(entry.Key, entry.At, false) {
			continue
		}
		if text, ok := r.environmentValue(entry.Key, entry.Value); ok {
			made.env[entry.Key] = text
		}
	}
	return made
}

// typing says how the values of a knob are read.
type typing struct {
	name   string
	nccl   bool
	unsafe bool
}

// knob builds a knob of choices, a range, or powers of two.
func (r *resolver) knob(id string, typed typing, file fileKnob, at Position) search.Knob {
	knob := search.Knob{ID: id, When: r.when(file.When)}
	shapes := 0
	for _, shape := range []bool{file.Choices != nil, file.Int != nil, file.Log2 != nil} {
		if shape {
			shapes++
		}
	}
	if shapes != 1 || file.Switch != nil {
		r.fault(at, "%s: want exactly one of choices, int and log2", id)
		return knob
	}
	if file.Step != nil && file.Int == nil {
		r.fault(file.Step.Position, "%s: step belongs to int", id)
	}
	switch {
	case file.Choices != nil:
		knob.Kind, knob.Levels = r.choices(id, typed, file, at)
	case file.Int != nil:
		knob.Kind, knob.Levels = search.Integer, r.integers(id, typed, file, at)
	default:
		knob.Kind, knob.Levels = search.Log2, r.powers(id, typed, file, at)
	}
	if len(knob.Levels) == 0 {
		return knob
	}
	r.setDefault(&knob, typed, file.Default)
	return knob
}

// setDefault applies the declared default; without one, absence is a value of
// the knob and its default.
func (r *resolver) setDefault(knob *search.Knob, typed typing, declared *Scalar) {
	if declared == nil {
		if !slices.Contains(knob.Levels, search.Unset) {
			knob.Levels = search.WithUnset(knob.Levels)
		}
		return
	}
	value, ok := r.value(knob.ID, typed, *declared)
	if !ok {
		return
	}
	if !slices.Contains(knob.Levels, value) {
		r.fault(declared.Position, "%s: default %s is none of its values: %s", knob.ID, declared.Text, strings.Join(levelTexts(knob.Levels), ", "))
		return
	}
	knob.Default = value
}

func (r *resolver) choices(id string, typed typing, file fileKnob, at Position) (search.KnobKind, []search.Value) {
	if len(file.Choices) == 0 {
		r.fault(at, "%s: choices is empty", id)
		return search.Categorical, nil
	}
	var levels []search.Value
	firsts := map[search.Value]Scalar{}
	for _, scalar := range file.Choices {
		value, ok := r.value(id, typed, scalar)
		if !ok {
			continue
		}
		if first, twice := firsts[value]; twice {
			r.fault(scalar.Position, "%s: %s is the same value as %s at %d:%d (%s)", id, scalar.Text, first.Text, first.Line, first.Column, value)
			continue
		}
		firsts[value] = scalar
		levels = append(levels, value)
	}
	r.sameType(id, firsts)
	return kindOfLevels(levels), unsetFirst(levels)
}

// sameType refuses a list that mixes numbers and texts: one of them is a slip.
func (r *resolver) sameType(id string, firsts map[search.Value]Scalar) {
	var number, text *Scalar
	for value, scalar := range firsts {
		if _, ok := value.Number(); ok {
			number = &scalar
		} else if !value.IsUnset() {
			text = &scalar
		}
	}
	if number != nil && text != nil {
		r.fault(text.Position, "%s: the choices mix texts (%s) and numbers (%s); quote the numbers to mean texts", id, text.Text, number.Text)
	}
}

// kindOfLevels: numbers written from small to large are ordered.
func kindOfLevels(levels []search.Value) search.KnobKind {
	last, ordered, count := 0.0, true, 0
	for _, level := range levels {
		if level.IsUnset() {
			continue
		}
		number, ok := level.Number()
		if !ok || (count > 0 && number <= last) {
			ordered = false
		}
		last, count = number, count+1
	}
	if ordered && count > 1 {
		return search.Ordinal
	}
	return search.Categorical
}

func unsetFirst(levels []search.Value) []search.Value {
	i := slices.Index(levels, search.Unset)
	if i <= 0 {
		return levels
	}
	return append([]search.Value{search.Unset}, slices.Delete(levels, i, i+1)...)
}

func (r *resolver) bounds(id, key string, typed typing, pair []Scalar, at Position) (lo, hi int64, ok bool) {
	if len(pair) != 2 {
		r.fault(at, "%s: %s wants two numbers: %s: [low, high]", id, key, key)
		return 0, 0, false
	}
	var ends [2]int64
	for i, scalar := range pair {
		end, err := wholeNumber(scalar, typed.nccl)
		if err != nil {
			r.fault(scalar.Position, "%s: %v", id, err)
			return 0, 0, false
		}
		ends[i] = end
	}
	return ends[0], ends[1], true
}

func (r *resolver) integers(id string, typed typing, file fileKnob, at Position) []search.Value {
	lo, hi, ok := r.bounds(id, "int", typed, file.Int, at)
	if !ok {
		return nil
	}
	step := int64(1)
	if file.Step != nil {
		var err error
		if step, err = wholeNumber(*file.Step, typed.nccl); err != nil {
			r.fault(file.Step.Position, "%s: step: %v", id, err)
			return nil
		}
	}
	levels, err := search.Range(lo, hi, step)
	if err != nil {
		r.fault(file.Int[0].Position, "%s: %v", id, err)
		return nil
	}
	return r.safeLevels(id, typed, levels, file.Int[0].Position)
}

func (r *resolver) powers(id string, typed typing, file fileKnob, at Position) []search.Value {
	lo, hi, ok := r.bounds(id, "log2", typed, file.Log2, at)
	if !ok {
		return nil
	}
	levels, err := search.PowersOfTwo(lo, hi)
	if err != nil {
		r.fault(file.Log2[0].Position, "%s: %v", id, err)
		return nil
	}
	return r.safeLevels(id, typed, levels, file.Log2[0].Position)
}

// safeLevels checks every number of a range as a value of NCCL's variable.
func (r *resolver) safeLevels(id string, typed typing, levels []search.Value, at Position) []search.Value {
	if !typed.nccl {
		return levels
	}
	for _, level := range levels {
		if _, err := nccl.Canonicalize(typed.name, level.String(), nccl.Reading{Unsafe: typed.unsafe}); err != nil {
			r.fault(at, "the range holds a value that is refused: %v", err)
			return nil
		}
	}
	return levels
}

// wholeNumber reads an integer; for NCCL's byte counts with their suffixes.
func wholeNumber(scalar Scalar, bytes bool) (int64, error) {
	if scalar.leadingZero() {
		return 0, fmt.Errorf("%s has a leading zero, which some readers take for octal; write it without", scalar.Text)
	}
	if number, err := strconv.ParseInt(scalar.Text, 0, 64); err == nil && !scalar.Quoted {
		return number, nil
	}
	if bytes {
		if text, err := nccl.Canonicalize("NCCL_BUFFSIZE", scalar.Text, nccl.Reading{Unsafe: true}); err == nil {
			return strconv.ParseInt(text, 10, 64)
		}
	}
	return 0, fmt.Errorf("%q: want a whole number", scalar.Text)
}

func levelTexts(levels []search.Value) []string {
	texts := make([]string, len(levels))
	for i, level := range levels {
		texts[i] = level.String()
	}
	return texts
}
