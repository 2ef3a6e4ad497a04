// Package spec reads campaign files.
//
// Parse turns the YAML text into a Campaign or into the list of all its
// faults, each with its line and column, the offending text and what is
// allowed. A Campaign knows its search space and turns a configuration (a
// value for every active knob) into its identity and into the job that a host
// can run.
package spec
