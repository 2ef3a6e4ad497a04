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

// presets merges the named presets below the file's own entries.
func (r *resolver) presets() {
	space := &r.file.Space
	for _, name := range space.Preset {
		if !slices.Contains(Presets(), name) {
			r.fault(space.At["preset"], "space.preset: %q is not known: %s", name, suggestion(name, Presets()))
			continue
		}
		text, err := presetFiles.ReadFile("presets/" + name + ".yaml")
		if err != nil {
			r.fault(space.At["preset"], "space.preset: %q: %v", name, err)
			continue
		}
		inner := collector{file: "preset " + name}
		var preset fileSpace
		decodeFile(&inner, text, &preset)
		if faults, _ := inner.result(); len(faults) > 0 {
			panic("spec: embedded preset is at fault: " + faults.Error())
		}
		at := space.At["preset"]
		merge(&space.Env, preset.Env, at)
		merge(&space.Flags, preset.Flags, at)
		merge(&space.Groups, preset.Groups, at)
		for _, constraint := range preset.Constraints {
			constraint.Position = at
			space.Constraints = append(space.Constraints, constraint)
		}
	}
}

// merge adds the preset's entries that the file does not have. Their faults are
// told at the place that names the preset.
func merge[T any](file *Section[T], preset Section[T], at Position) {
	for _, entry := range preset.Entries {
		if !slices.ContainsFunc(file.Entries, func(own Entry[T]) bool { return own.Key == entry.Key }) {
			entry.At = at
			file.Entries = append(file.Entries, entry)
		}
	}
}
