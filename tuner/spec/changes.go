package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nocturne/runners"
	"nocturne/search"
)

// Change is one difference between two resolved campaigns.
type Change struct {
	Path     string
	Old, New string
}

// Resolved is the stored form of the campaign: Fixed is what a run must keep
// (server, workload, objective, model, GPUs and the knobs' present values), Free
// what may change while it goes on (budget, confirmation, host, a wider space).
func (c *Campaign) Resolved() (Resolved, error) {
	secrets := make([]runners.Secret, len(c.launch.secrets))
	copy(secrets, c.launch.secrets)
	workload := c.Workload
	workload.File = "" // its digest counts
	fixed, err := json.Marshal(map[string]any{
		"model": c.Model, "gpus": c.GPUs, "workload": workload, "objective": c.Objective, "simulation": c.ServingScale,
		"server": map[string]any{"kind": c.Kind, "command": c.launch.args, "env": c.launch.env, "secrets": secrets,
			"inherit": c.launch.inherit, "directory": c.launch.directory, "model_id": c.launch.model, "speculation": c.launch.speculation},
		"command": c.Command, "baseline": c.launchHash(c.Baseline), "current": c.launchHash(c.Current),
	})
	if err != nil {
		return Resolved{}, fmt.Errorf("campaign %s: %w", c.Name, err)
	}
	knobs := map[string][]string{}
	for _, knob := range c.Space.Knobs() {
		knobs[knob.ID] = levelTexts(knob.Levels)
	}
	constraints := []string{}
	for _, constraint := range c.Space.Constraints() {
		constraints = append(constraints, constraint.Source)
	}
	free, err := json.Marshal(map[string]any{
		"budget": c.Budget, "confirm": c.Confirm, "host": c.Host, "timeouts": c.Timeouts, "knobs": knobs, "constraints": constraints,
		"sampler": c.Sampler, "hints": c.Hints, "minimal_effect": c.MinimalEffect, "expect": c.Expect,
		"directory": c.Directory,
	})
	if err != nil {
		return Resolved{}, fmt.Errorf("campaign %s: %w", c.Name, err)
	}
	return Resolved{Fixed: fixed, Free: free}, nil
}

// launchHash identifies a reference by its launch, so that a knob that the
// space gains does not change it; empty for no reference.
func (c *Campaign) launchHash(values search.Values) string {
	if values == nil {
		return ""
	}
	asked, err := c.launch.effect(values)
	if err != nil {
		return ""
	}
	return c.launch.hash(asked)
}

// StoredDirectory is the folder that the relative paths of a stored campaign
// start from.
func StoredDirectory(resolved Resolved) string {
	var free struct {
		Directory string `json:"directory"`
	}
	// Unreadable text gives no folder, and so the current one.
	_ = json.Unmarshal(resolved.Free, &free)
	return free.Directory
}

// Changes lists what differs between two resolved forms, by path. A narrower
// space is a fixed change: what was measured in it could no longer be proposed.
func Changes(before, after Resolved) (fixed, free []Change) {
	fixed = differences("", decodeAny(before.Fixed), decodeAny(after.Fixed))
	for _, change := range differences("", decodeAny(before.Free), decodeAny(after.Free)) {
		if strings.HasPrefix(change.Path, "knobs.") && narrower(before, after, strings.TrimPrefix(change.Path, "knobs.")) {
			change.Path = "space." + strings.TrimPrefix(change.Path, "knobs.")
			fixed = append(fixed, change)
		} else {
			free = append(free, change)
		}
	}
	return fixed, free
}

// narrower reports whether a knob lost a level or went away.
func narrower(before, after Resolved, knob string) bool {
	levels := func(resolved Resolved) []string {
		var free struct {
			Knobs map[string][]string `json:"knobs"`
		}
		_ = json.Unmarshal(resolved.Free, &free)
		return free.Knobs[knob]
	}
	now := levels(after)
	for _, level := range levels(before) {
		if !slices.Contains(now, level) {
			return true
		}
	}
	return false
}

func decodeAny(text json.RawMessage) any {
	var value any
	_ = json.Unmarshal(text, &value)
	return value
}

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
		// Ids of knobs hold dots of their own; a path is for people to read.
		inner := key
		if path != "" {
			inner = path + "." + key
		}
		changes = append(changes, differences(inner, old[key], now[key])...)
	}
	return changes
}

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
