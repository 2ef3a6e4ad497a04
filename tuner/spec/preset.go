package spec

import (
	"embed"
	"slices"
	"strings"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// Presets lists the versioned sets of knobs that a campaign file may name. A
// published version never changes: a stored campaign must stay what it was.
func Presets() []string {
	entries, err := presetFiles.ReadDir("presets")
	if err != nil {
		panic("spec: embedded presets: " + err.Error())
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	return names
}

// presets merges the named presets below the file's own entries. Of two presets
// with one knob the first wins.
func (r *resolver) presets() {
	space := &r.file.Space
	var seen []string
	for _, written := range space.Preset {
		name := r.label(&written)
		switch {
		case slices.Contains(seen, name):
			r.fault(written.Position, "space.preset: %s stands in the list twice", name)
		case !slices.Contains(Presets(), name):
			r.fault(written.Position, "space.preset: %q is not known: %s", name, suggestion(name, Presets()))
		default:
			seen = append(seen, name)
			merge(name, written.Position, space)
		}
	}
}

// merge adds a preset's entries that the file does not have. Their faults are
// told at the place that names the preset.
func merge(name string, at Position, space *fileSpace) {
	content, err := presetFiles.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		panic("spec: embedded preset: " + err.Error())
	}
	inner := collector{name: "preset " + name}
	decoder := decoder{collector: &inner, at: &at}
	var preset fileSpace
	decoder.decode(string(content), &preset)
	if faults, _ := inner.result(); len(faults) > 0 {
		panic("spec: embedded preset: " + faults.Error())
	}
	space.Env.Entries = merged(name, space.Env.Entries, preset.Env.Entries)
	space.Flags.Entries = merged(name, space.Flags.Entries, preset.Flags.Entries)
	space.Groups.Entries = merged(name, space.Groups.Entries, preset.Groups.Entries)
	space.Constraints = append(space.Constraints, preset.Constraints...)
}

func merged[T any](name string, own, preset []entry[T]) []entry[T] {
	for _, added := range preset {
		i := slices.IndexFunc(own, func(e entry[T]) bool { return e.Key == added.Key })
		switch {
		case i < 0:
			added.preset = name
			own = append(own, added)
		case own[i].Remove:
			own[i].preset = name // null has something to remove
		}
	}
	return own
}
