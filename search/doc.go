// Package search proposes configurations.
//
// A Space holds knobs with finite lists of levels; a configuration is a Values
// map with one entry for each knob that is active under the others. A Sampler
// is a pure function from what is known (the space, the history, what is
// pending, a seed) to one Proposal. Nothing in this package knows how a
// configuration is launched, measured or stored.
//
// # Space
//
// A knob may depend on an earlier one (Condition), and constraints in a small
// expression language (ParseConstraint) reject combinations. Two configurations
// are the same when they come to the same launch: Key applies a canonicalize
// function that the caller supplies, for settings that are inert or clamped.
// Count says how many launches there are.
//
// # Samplers
//
// New makes them by name; see Names for which to take. All of them propose the
// hints first, never propose a configuration that was tried or is pending, keep
// to the constraints, and return ErrExhausted when nothing is left. The same
// request gives the same proposal. None of them depends on the order in which
// knobs are listed, except that descent takes ties in that order.
//
// Crashes are part of the history. auto models which configurations crash; the
// others lower the rank of levels that occur in crashes only, and of everything
// beyond them for ordered knobs.
//
// Importances says what the trials show about each knob.
package search
