// Package search proposes configurations.
//
// A Space holds knobs with finite lists of levels; a configuration is a Values
// map with one entry for each knob that is active under the others. A Sampler
// is a pure function from what is known (the space, the history, what is
// pending, a seed) to one Proposal. Nothing in this package knows how a
// configuration is launched, measured or stored.
package search
