package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nocturne/search"
)

// Change is one difference between two resolved campaigns.
type Change struct {
	Path     string
	Old, New string
}

// resolvedFree is what may change while a run goes on.
type resolvedFree struct {
	Settings    map[string]any          `json:"settings"`
	Knobs       map[string]resolvedKnob `json:"knobs"`
	Constraints []string                `json:"constraints"`
	Hints       []string                `json:"try"` // what departs from the defaults
	Directory   string                  `json:"directory"`
}

// resolvedKnob is a knob by what it does.
type resolvedKnob struct {
	Sets   string   `json:"sets"`
	When   string   `json:"when"`
	Levels []string `json:"levels"`
}

// Resolved is the stored form of the campaign: Fixed is what a run must keep
// (server, workload, objective, model, GPUs, references), Free what may change
// while it goes on (budget, confirmation, host, a wider space).
func (c *Campaign) Resolved() (Resolved, error) {
	workload := c.Workload
	workload.File = "" // its digest counts
	fixed, err := json.Marshal(map[string]any{
		"model": c.Model, "gpus": c.GPUs, "workload": workload, "objective": c.Objective, "simulation": c.ServingScale,
		"server": map[string]any{"kind": c.Kind, "command": c.launch.args, "env": c.launch.env, "secrets": c.launch.secrets,
			"inherit": c.launch.inherit, "directory": c.launch.directory, "model_id": c.launch.model},
		"metrics": c.Command.Patterns, "failure": c.Command.Exit, "baseline": c.launchHash(c.Baseline), "current": c.launchHash(c.Current),
	})
	if err != nil {
		return Resolved{}, fmt.Errorf("campaign %s: %w", c.Name, err)
	}
	free := resolvedFree{
		Settings: c.settings(),
		Knobs:    map[string]resolvedKnob{}, Constraints: []string{}, Hints: []string{}, Directory: c.Directory,
	}
	for _, knob := range c.Space.Knobs() {
		free.Knobs[knob.ID] = c.launch.resolvedKnob(knob)
	}
	for _, hint := range c.Hints {
		free.Hints = append(free.Hints, c.departures(hint).String())
	}
	for _, constraint := range c.Space.Constraints() {
		free.Constraints = append(free.Constraints, constraint.Source)
	}
	encoded, err := json.Marshal(free)
	if err != nil {
		return Resolved{}, fmt.Errorf("campaign %s: %w", c.Name, err)
	}
	return Resolved{Fixed: fixed, Free: encoded}, nil
}

// settings are what may change, durations as people write them.
func (c *Campaign) settings() map[string]any {
	timeouts := map[string]string{
		"launching": c.Timeouts.Launching.String(), "loading": c.Timeouts.Loading.String(), "stalled": c.Timeouts.Stalled.String(),
		"verifying": c.Timeouts.Verifying.String(), "warming": c.Timeouts.Warming.String(), "round": c.Timeouts.Round.String(),
		"stopping": c.Timeouts.Stopping.String(),
	}
	budget := map[string]any{"trials": c.Budget.Trials, "nights": c.Budget.Nights, "window": c.Budget.Window, "until": c.Budget.Until}
	if c.Budget.Time > 0 {
		budget["time"] = c.Budget.Time.String()
	}
	return map[string]any{
		"budget": budget, "confirm": c.Confirm, "host": c.Host, "timeouts": timeouts,
		"search":         map[string]any{"sampler": c.Sampler, "stop": c.stop(), "history": c.History, "recipes": c.Recipes},
		"minimal_effect": c.MinimalEffect, "expect": c.Expect,
	}
}

func (c *Campaign) stop() string {
	if c.StopSettled {
		return stopSettled
	}
	return stopBudget
}

func (t *launchTemplate) resolvedKnob(knob search.Knob) resolvedKnob {
	bound := t.bindings[knob.ID]
	out := resolvedKnob{Sets: bound.name, When: knob.When.String(), Levels: levelTexts(knob.Levels)}
	if bound.kind == bindSpeculative {
		out.Sets = strings.TrimSpace(t.speculation.Method + " " + t.speculation.DraftModel)
	}
	for i, level := range knob.Levels {
		if bound.kind == bindGroup && !level.IsUnset() {
			out.Levels[i] += " " + brief(bound.bundles[level.String()])
		}
	}
	return out
}

// departures are the values that differ from their knobs' defaults.
func (c *Campaign) departures(values search.Values) search.Values {
	out := search.Values{}
	for id, value := range values {
		if knob, known := c.Space.Knob(id); known && knob.Default != value {
			out[id] = value
		}
	}
	return out
}

// launchHash identifies a reference by its launch, so that a knob that the
// space gains does not change it; empty for no reference.
func (c *Campaign) launchHash(values search.Values) string {
	if values == nil {
		return ""
	}
	asked, err := c.launch.asked(values)
	if err != nil {
		return ""
	}
	return c.launch.hash(asked)
}

// StoredDirectory is the folder that the relative paths of a stored campaign
// start from.
func StoredDirectory(resolved Resolved) string { return decodeFree(resolved).Directory }

// decodeFree reads the stored form; what cannot be read is empty, and so
// differs from everything.
func decodeFree(resolved Resolved) resolvedFree {
	var free resolvedFree
	_ = json.Unmarshal(resolved.Free, &free)
	return free
}

// Changes lists what differs between two resolved forms, by path. A narrower
// space is a fixed change: what was measured in it could no longer be proposed.
func Changes(before, after Resolved) (fixed, free []Change) {
	fixed = differences("", decodeAny(before.Fixed), decodeAny(after.Fixed))
	old, now := decodeFree(before), decodeFree(after)
	narrower, wider := spaceChanges(old, now)
	fixed = append(fixed, narrower...)
	free = append(differences("", asAny(old.Settings), asAny(now.Settings)), wider...)
	free = append(free, differences("try", asAny(old.Hints), asAny(now.Hints))...)
	return fixed, append(free, differences("directory", old.Directory, now.Directory)...)
}

// spaceChanges compares two spaces: narrower is what a run cannot go on with.
func spaceChanges(old, now resolvedFree) (narrower, wider []Change) {
	for _, id := range slices.Sorted(maps.Keys(old.Knobs)) {
		was, is := old.Knobs[id], now.Knobs[id]
		path := "space." + id
		_, kept := now.Knobs[id]
		lost := slices.ContainsFunc(was.Levels, func(level string) bool { return !slices.Contains(is.Levels, level) })
		switch {
		case !kept:
			narrower = append(narrower, Change{path, brief(was.Levels), "absent"})
		case was.Sets != is.Sets:
			narrower = append(narrower, Change{path + ".sets", was.Sets, is.Sets})
		case was.When != is.When:
			narrower = append(narrower, Change{path + ".when", orAlways(was.When), orAlways(is.When)})
		case lost:
			narrower = append(narrower, Change{path, brief(was.Levels), brief(is.Levels)})
		default:
			wider = append(wider, differences(path, asAny(was.Levels), asAny(is.Levels))...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(now.Knobs)) {
		if _, there := old.Knobs[id]; !there {
			wider = append(wider, Change{"space." + id, "absent", brief(now.Knobs[id].Levels)})
		}
	}
	change := differences("space.constraints", asAny(old.Constraints), asAny(now.Constraints))
	if slices.ContainsFunc(now.Constraints, func(source string) bool { return !slices.Contains(old.Constraints, source) }) {
		return append(narrower, change...), wider
	}
	return narrower, append(wider, change...)
}

func orAlways(condition string) string {
	if condition == "" {
		return "always"
	}
	return condition
}

func decodeAny(text json.RawMessage) any {
	var value any
	_ = json.Unmarshal(text, &value) // what cannot be read differs from everything
	return value
}

// asAny is a value as its JSON decodes.
func asAny(value any) any { return decodeAny(json.RawMessage(brief(value))) }

// differences walks two decoded JSON values. Lists are compared whole: an item
// that moved says nothing by its index.
func differences(path string, before, after any) []Change {
	old, oldMap := before.(map[string]any)
	now, nowMap := after.(map[string]any)
	if !oldMap || !nowMap {
		a, b := brief(before), brief(after)
		if a == b {
			return nil
		}
		return []Change{{Path: path, Old: a, New: b}}
	}
	keys := maps.Clone(old)
	maps.Copy(keys, now)
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := key
		if path != "" {
			inner = path + "." + key
		}
		changes = append(changes, differences(inner, old[key], now[key])...)
	}
	return changes
}

// brief is the JSON of a value in one line; absent for none.
func brief(value any) string {
	if value == nil {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "unreadable"
	}
	return string(text)
}
