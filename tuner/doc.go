// Package tuner runs campaigns: it decides what to launch next, has a host do
// it, stores every outcome before the next step, and draws the conclusion.
//
// The stored trials are the only state. What happens next is a function of
// them (see decide), so a tuner that was killed at any instant goes on by
// reading the store: it cleans up what its predecessor left, queues the lost
// trial again, and decides.
//
//	baseline -> current -> hints and search -> confirm -> conclude
//
// Below it lie spec (the campaign file), plan (what fits into the time),
// verdict (what may be claimed) and output (what programs read).
package tuner
