package output

import (
	"encoding/json"
	"slices"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
)

// TrialOf makes the trial object of a stored trial.
func TrialOf(trial store.Trial) Trial {
	object := Trial{
		Trial: trial.Number, ID: trial.ID, Attempt: trial.Attempt, State: trial.State, Role: trial.Role,
		Configuration: ConfigurationOf(trial.Configuration), Host: trial.Host, HardwareKey: trial.HardwareKey, StackKey: trial.StackKey,
		Value: trial.Value, StandardError: trial.StandardError, Failure: trial.Failure, Proof: trial.Proof,
		Effective: trial.Effective, Reason: trial.Reason, Expected: trial.Expected, LogPath: trial.LogPath, Started: trial.Started, Ended: trial.Ended,
		LoadingS: trial.LoadingS, MeasuringS: trial.MeasuringS, OverheadS: trial.OverheadS,
	}
	if trial.RepeatOf != 0 {
		object.RepeatOf = &trial.RepeatOf
	}
	// A load point at which no round came to its end has nothing to tell.
	object.Points = slices.DeleteFunc(slices.Clone(trial.Points), func(p runners.PointResult) bool { return len(p.Rounds) == 0 })
	if object.Points == nil {
		object.Points = []runners.PointResult{}
	}
	if object.Proof == nil {
		object.Proof = []runners.Proof{}
	}
	if object.Effective == nil {
		object.Effective = map[string]string{}
	}
	return object
}

// ConfigurationOf fills the lists and maps that a configuration leaves empty,
// so that readers meet no null where an empty one is meant.
func ConfigurationOf(configuration store.Configuration) store.Configuration {
	if configuration.Values == nil {
		configuration.Values = search.Values{}
	}
	if configuration.Env == nil {
		configuration.Env = map[string]string{}
	}
	if configuration.Unset == nil {
		configuration.Unset = []string{}
	}
	if configuration.Args == nil {
		configuration.Args = []string{}
	}
	return configuration
}

// ObjectiveOf makes the objective object.
func ObjectiveOf(objective store.Objective) Objective {
	object := Objective{Metric: objective.Metric, Direction: objective.Direction, At: objective.At}
	if objective.Aggregate != "" {
		object.Aggregate = &objective.Aggregate
	}
	return object
}

// decode reads stored JSON into a zero value of T; absent or unreadable text
// gives the zero value.
func decode[T any](text json.RawMessage) T {
	var value T
	if len(text) > 0 {
		_ = json.Unmarshal(text, &value)
	}
	return value
}
