package search

import (
	"context"
	"errors"
)

// Sampler proposes the next configuration of a study. It is a pure function of
// the request: it holds no state that a restart would lose, and there is no
// tell, because the stored history is what it is told.
type Sampler interface {
	// Name is the word that selects this sampler in a campaign file.
	Name() string
	// Ask proposes one configuration that is legal in the space and equal to
	// none of the history or pending ones (equality by Space.Key). It returns
	// ErrExhausted when no such configuration is left.
	Ask(ctx context.Context, request Request) (Proposal, error)
}

// ErrExhausted says that every legal configuration has been measured, is
// pending, or is known to be infeasible.
var ErrExhausted = errors.New("search space exhausted")

// Request is everything a sampler may know.
type Request struct {
	Space    *Space
	Minimize bool
	// History holds the trials that have ended, in the order of their numbers.
	// Trials that say nothing about the configuration (lost, void, failed for a
	// transient or environment cause) are not in it.
	History []Observation
	// Pending holds the configurations that are being measured or are queued.
	Pending []Values
	// Hints are configurations that people asked to have measured first.
	Hints []Values
	// Remaining is the number of search trials left, this one included; 0 when
	// it is not known. A sampler exploits near the end.
	Remaining int
	// Seed makes a proposal repeatable: the same seed, history, pending and
	// space give the same proposal.
	Seed uint64
}

// Outcome is what became of an observed configuration.
type Outcome uint8

// Outcomes of an observation.
const (
	Measured   Outcome = iota // Value holds the objective
	Pruned                    // stopped early because it could not win; Value is a bound on the good side
	Infeasible                // the configuration's fault: crashed, refused, wrong answers
)

// Observation is one ended trial as a sampler sees it.
type Observation struct {
	Trial   int
	Values  Values
	Outcome Outcome
	// Value is the objective in its own unit; meaningful for Measured and Pruned.
	Value float64
	// StandardError is that of Value over the rounds of the launch, in the
	// objective's unit; 0 when not known.
	StandardError float64
}

// Proposal is a configuration with the reason for it in words.
type Proposal struct {
	Values Values
	Reason string
}
