package output

import (
	"maps"
	"math"

	"nocturne/runners"
	"nocturne/runners/load"
)

// Bench is the answer of `bench`.
type Bench struct {
	Schema  int             `json:"schema"`
	Model   string          `json:"model"`
	Outcome runners.Outcome `json:"outcome"` // complete, or invalid or failed: see Faults
	// Faults say why the numbers must not count; those of all load points.
	Faults []runners.Failure `json:"faults"`
	// Metrics and Failures are those of the first load point.
	Metrics runners.Metrics `json:"metrics"`
	// Failures are requests that did not complete, by kind.
	Failures map[load.FailureKind]load.FailureCount `json:"failures"`
	// Points are all load points, in the order in which they were measured.
	Points []BenchPoint `json:"points"`
}

// BenchPoint is what `bench` measured at one load point.
type BenchPoint struct {
	// Concurrency is the number of requests kept in flight, or the bound on them
	// when there is a rate; null: no bound.
	Concurrency *int `json:"concurrency"`
	// RequestRate, in requests a second, and Burstiness are those of an open loop;
	// null: a closed loop. An even beat has a burstiness of null.
	RequestRate *float64                               `json:"request_rate"`
	Burstiness  *float64                               `json:"burstiness"`
	Outcome     runners.Outcome                        `json:"outcome"`
	Faults      []runners.Failure                      `json:"faults"`
	Metrics     runners.Metrics                        `json:"metrics"`
	Failures    map[load.FailureKind]load.FailureCount `json:"failures"`
	// AcceptanceByPosition is the share of drafts whose token at each position was
	// accepted; empty when the server does not tell.
	AcceptanceByPosition []float64 `json:"acceptance_by_position"`
	// GPUs is a line for each GPU of this machine, when they were watched.
	GPUs []string `json:"gpus"`
	// Notes say what is missing or estimated, and why.
	Notes []string `json:"notes"`
}

// BenchOf answers `bench`.
func BenchOf(model string, points []BenchPoint) Bench {
	answer := Bench{
		Schema: Schema, Model: model, Outcome: runners.Complete, Faults: []runners.Failure{},
		Metrics: runners.Metrics{}, Failures: map[load.FailureKind]load.FailureCount{}, Points: points,
	}
	for i, point := range points {
		if i == 0 {
			answer.Metrics, answer.Failures = point.Metrics, point.Failures
		}
		if answer.Outcome == runners.Complete {
			answer.Outcome = point.Outcome
		}
		answer.Faults = append(answer.Faults, point.Faults...)
	}
	return answer
}

// BenchPointOf tells of one load point; a concurrency of 0 is none.
func BenchPointOf(outcome load.RoundOutcome, concurrency int, arrival load.Arrival) BenchPoint {
	point := BenchPoint{
		Outcome: outcome.Verdict.Outcome, Faults: append([]runners.Failure{}, outcome.Verdict.Failures...),
		Metrics: maps.Clone(outcome.Metrics), Failures: maps.Clone(outcome.Failures),
		AcceptanceByPosition: []float64{}, GPUs: []string{}, Notes: append([]string{}, outcome.Notes...),
	}
	if concurrency > 0 {
		point.Concurrency = &concurrency
	}
	if arrival.Open() {
		point.RequestRate = &arrival.Rate
		if !math.IsInf(arrival.Burstiness, 1) {
			point.Burstiness = &arrival.Burstiness
		}
	}
	if outcome.Counters != nil {
		point.AcceptanceByPosition = append(point.AcceptanceByPosition, outcome.Counters.PositionRates()...)
	}
	for _, gpu := range outcome.GPUs {
		point.GPUs = append(point.GPUs, gpu.String())
	}
	if point.Metrics == nil {
		point.Metrics = runners.Metrics{}
	}
	if point.Failures == nil {
		point.Failures = map[load.FailureKind]load.FailureCount{}
	}
	return point
}
