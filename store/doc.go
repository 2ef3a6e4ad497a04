// Package store remembers campaigns, trials and conclusions.
//
// Store is the one interface; store/sqlite (a file, the default) and
// store/postgres implement it, and store/storetest holds the conformance suite
// that both pass. Records carry the plain result types of packages search and
// runners; what has to be queried is a column, the rest is kept as JSON.
//
// Every method that changes something is one short transaction and durable
// when it returns. Changes to a campaign are made under its lease, so that two
// tuners cannot run the same campaign, and changes to an attempt are fenced by
// the attempt's number, so that a late report changes nothing.
package store
