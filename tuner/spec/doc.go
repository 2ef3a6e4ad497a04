// Package spec reads campaign files.
//
// Parse turns the YAML text into a Campaign, or into the list of all its faults,
// each with its line and column, the offending text and what is allowed. A
// Campaign knows its search space and turns a configuration (a value for every
// active knob) into its identity and into the job that a host can run.
//
// Reading goes in two steps. The decoder fills typed structs (file.go) from the
// syntax tree and keeps every scalar as it is written, with its place and its
// quotes. The resolver then gives the scalars their meaning, which is decided by
// the knob that they belong to: NCCL's catalogue for NCCL's variables, the way of
// writing for others. Both go on after a fault, so that all of them come at once.
//
// A launch has three forms. What was asked (effect) makes the identity: base and
// knobs, whatever the version of NCCL. What acts (acting) is the canonical form
// for the NCCL at hand, and makes two configurations one for the search. What is
// launched (rendered) is that form in the spelling that the version takes.
package spec
