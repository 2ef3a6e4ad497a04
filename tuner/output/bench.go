package output

import (
	"maps"

	"nocturne/runners"
	"nocturne/runners/load"
)

// Bench is the answer of `bench`.
type Bench struct {
	Schema  int             `json:"schema"`
	Model   string          `json:"model"`
	Outcome runners.Outcome `json:"outcome"` // complete, or invalid: see Faults
	// Faults say why the numbers must not count.
	Faults  []runners.Failure `json:"faults"`
	Metrics runners.Metrics   `json:"metrics"`
	// Failures are requests that did not complete, by kind.
	Failures map[load.FailureKind]load.FailureCount `json:"failures"`
}

// BenchOf answers `bench`.
func BenchOf(outcome load.RoundOutcome, model string) Bench {
	answer := Bench{Schema: Schema, Model: model, Outcome: outcome.Verdict.Outcome, Faults: outcome.Verdict.Failures,
		Metrics: outcome.Metrics, Failures: maps.Clone(outcome.Failures)}
	if answer.Faults == nil {
		answer.Faults = []runners.Failure{}
	}
	if answer.Metrics == nil {
		answer.Metrics = runners.Metrics{}
	}
	if answer.Failures == nil {
		answer.Failures = map[load.FailureKind]load.FailureCount{}
	}
	return answer
}
