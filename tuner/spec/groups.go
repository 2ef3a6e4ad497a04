package spec

import (
	"maps"
	"regexp"
	"slices"

	"nocturne/search"
)

var groupName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// groupKnob adds a knob whose values are bundles of arguments and variables.
func (r *resolver) groupKnob(file entry[fileGroup]) {
	bound := binding{kind: bindGroup, name: file.Key, bundles: map[string]bundle{}, at: file.At, levels: map[search.Value]Position{}}
	knob := search.Knob{ID: file.Key, Kind: search.Group}
	choices := present(&r.collector, file.Value.Choices)
	for _, choice := range choices {
		if !r.choiceName(file.Key, choice) {
			continue
		}
		made := r.bundle("group "+file.Key, file.preset, choice.Value)
		if twin, same := sameBundle(bound.bundles, made); same {
			r.fault(choice.At, "group %s: %s does the same as %s; remove one of them", file.Key, choice.Key, twin)
			continue
		}
		bound.bundles[choice.Key] = made
		bound.levels[search.Text(choice.Key)] = choice.At
		knob.Levels = append(knob.Levels, search.Text(choice.Key))
	}
	if len(choices) == 0 && file.Value.Where.read() {
		r.fault(file.At, "group %s has no choices; write choices: {name: {args: [...], env: {...}}}", file.Key)
	}
	r.groupDefault(&knob, file.Value.Default)
	r.addKnob(knob, bound)
	r.when(file.Key, file.Value.When)
}

// choiceName checks the name of a bundle.
func (r *resolver) choiceName(group string, choice entry[fileBundle]) bool {
	switch {
	case choice.Key == "unset":
		r.fault(choice.At, "group %s: unset is the word for none of the choices; give the bundle another name", group)
	case !choice.quoted && (isTruthWord(choice.Key) || isBoolean(choice.Key)):
		r.fault(choice.At, "group %s: %s is a truth value to some YAML readers; write \"%s\" to mean the name", group, choice.Key, choice.Key)
	default:
		return true
	}
	return false
}

// groupDefault applies the declared default; without one, none of the bundles is
// a value too, and the default.
func (r *resolver) groupDefault(knob *search.Knob, declared *scalar) {
	if len(knob.Levels) == 0 {
		return
	}
	if declared == nil || declared.isUnset() {
		knob.Levels = search.WithUnset(knob.Levels)
		return
	}
	knob.Default = search.Text(declared.Text)
	if !slices.Contains(knob.Levels, knob.Default) {
		r.fault(declared.Position, "group %s: default %q is none of its choices: %s", knob.ID, declared.Text, suggestion(declared.Text, levelTexts(knob.Levels)))
		knob.Default = knob.Levels[0]
	}
}

// bundle reads what a choice of a group adds.
func (r *resolver) bundle(owner, preset string, file fileBundle) bundle {
	made := bundle{Args: []string{}, Env: map[string]string{}}
	if file.Args != nil {
		for _, argument := range *file.Args {
			made.Args = append(made.Args, r.launchText(argument))
			if flag := flagOf(argument.Text); flag != "" {
				r.claimFlag(flag, claim{owner: owner, preset: preset, at: argument.Position})
			}
		}
		r.secretArguments(*file.Args)
	}
	for _, entry := range present(&r.collector, file.Env) {
		if !r.variable(entry.Key, entry.At, owner, preset) || r.secretVariable(entry.Key, entry.Value, entry.At) {
			continue
		}
		if r.always(entry.Key) {
			r.fault(entry.At, "%s overwrites %s itself, whatever it is given; remove it", r.serverKind().Title, entry.Key)
			continue
		}
		if text, ok := r.environmentValue(entry.Key, entry.Value); ok {
			made.Env[entry.Key] = text
		}
	}
	return made
}

// sameBundle finds a bundle that does the same.
func sameBundle(bundles map[string]bundle, made bundle) (name string, found bool) {
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		if slices.Equal(bundles[name].Args, made.Args) && maps.Equal(bundles[name].Env, made.Env) {
			return name, true
		}
	}
	return "", false
}
