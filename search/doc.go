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
// hints first and the starts after them, never propose a configuration that was tried or is pending, keep
// to the constraints, and return ErrExhausted when nothing is left. The same
// request gives the same proposal. None of them depends on the order in which
// knobs are listed, except that descent takes ties in that order.
//
// Crashes are part of the history. auto models which configurations crash; the
// others lower the rank of levels that occur in crashes only, and of everything
// beyond them for ordered knobs.
//
// # goptuna
//
// The frame is goptuna v0.9.0, whose storage in memory is filled from the history
// at each ask and thrown away: auto is a relative sampler of such a study (InFrame),
// tpe, cmaes and sobol are goptuna's own. Those who use goptuna themselves put auto
// into their study with NewRelativeSampler, Distributions and Suggest; NewStudy and
// ReadStudy turn requests into studies and back. A Pruner stops trials early through
// goptuna's seam.
//
// goptuna's samplers are guarded from outside; what each guard is for stands with
// its constructor, and the tests named TestGoptuna... fail when a later version has
// mended what they show. What cannot be guarded is not used: the density ratio of
// its numeric estimator, which is NaN for nearly all histories of 25 trials and
// more, and everything that it draws from the global random source of math/rand
// (categories at random, the mixtures of the estimator, start-up trials), which no
// seed repeats. Its random sampler is therefore not offered; random is this
// package's.
//
// Importances says what the trials show about each knob.
package search
