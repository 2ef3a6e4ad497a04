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
	// Starts are configurations worth an early trial, the most promising first:
	// recipes for such hardware, the best of earlier campaigns. They come after
	// the hints.
	Starts []Start
	// Related holds measurements of something else that may say where good
	// configurations lie. Only auto uses them.
	Related []Related
	// Factors are measured quantities that the objective is a product of, besides
	// a rest that depends on all knobs. Only auto uses them.
	Factors []Factor
	// Remaining is the number of search trials left, this one included; 0 when
	// it is not known. A sampler exploits near the end.
	Remaining int
	// Seed makes a proposal repeatable: the same seed, history, pending and
	// space give the same proposal.
	Seed uint64
}

// Start is a configuration worth an early trial and why.
type Start struct {
	Values Values
	Reason string
}

// Related is a set of measurements made under other circumstances: an earlier
// campaign (another driver, server or model on the same hardware), or a screening
// by a cheap benchmark. Its values are compared with each other only, so they may
// have any unit; how far they agree with the study, and on what scale, is learned
// from the study's own trials. Related measurements that disagree fade.
type Related struct {
	Name     string
	Minimize bool
	// History holds the measurements. A configuration may lack knobs that were
	// not varied: they count as at their defaults.
	History []Observation
}

// Factor is a quantity that is measured beside the objective and depends on some
// of the knobs alone. The acceptance length of speculative decoding is one: it
// depends on the speculative knobs, and the step time on all. The objective is
// then learned as the product of the factors, each to its power, and a rest.
type Factor struct {
	Name string
	// Knobs are the ids of all knobs that the factor depends on.
	Knobs []string
	// Power is the exponent with which the factor enters the objective: 1 for a
	// throughput and the acceptance length, -1 for the time per token.
	Power float64
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
	// Failure names the cause of an infeasible trial, such as a reason code; crashes
	// with one cause are learned together.
	Failure string
	// Factors holds the values of the request's factors by name, above 0; a factor
	// that could not be read is absent.
	Factors map[string]float64
	// Margins holds by limit how far the limit was kept: the logarithm of the ratio
	// of the largest allowed value to the measured one (turned round for a least
	// allowed value), below 0 when it was broken. A configuration that breaks a
	// limit is measured but cannot win.
	Margins map[string]float64
}

// Proposal is a configuration with the reason for it in words.
type Proposal struct {
	Values Values
	Reason string
	// Expected is what the sampler's model expects of the configuration; nil for
	// samplers without a model and for trials that the model did not choose.
	Expected *Expected
}

// Expected is the prediction for a proposal.
type Expected struct {
	// Ratio of the objective to that of the best configuration so far, above 1
	// better; Interval holds 95 % of its probability.
	Ratio    float64
	Interval [2]float64
	// Improvement is the expected improvement over the best configuration so far,
	// as a share of it, with failures counting as none.
	Improvement float64
	// Crash is the probability that the configuration fails.
	Crash float64
	// Settled is set when no configuration is left whose expected improvement
	// could be told from the noise of one launch.
	Settled bool
}
