// Package knowledge turns what is on record into what a sampler may be told:
// the trials of the campaign itself, what earlier campaigns of the same machine
// measured, and configurations that are worth an early trial.
//
// Everything here is a function of the store and the campaign file, with the
// beginning of the campaign as the horizon: what others measure later changes no
// proposal, so a campaign that goes on after a restart proposes the same.
package knowledge
