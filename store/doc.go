// Package store remembers campaigns, trials and conclusions.
//
// Store is the one interface; store/sqlite (a file, the default) and
// store/postgres implement it, store/open picks one by a URL, and
// store/storetest holds the conformance suite that both pass. Records carry the
// plain result types of packages search and runners; what has to be queried is a
// column, the rest is kept as JSON.
//
// Every method that changes something is one short transaction. A change of
// state is on disk when the call returns. Reports (events, stages) survive the
// end of the process when the call returns, and reach the disk no later than the
// next change of state. Changes to a campaign are made under its lease, so that
// two tuners cannot run the same campaign, and changes to an attempt are fenced
// by the attempt's number, so that a late report changes nothing.
//
// Times are UTC instants kept to the microsecond. Numbers are finite. Texts are
// UTF-8 without NUL characters; what a log quotes otherwise becomes U+FFFD.
// Opaque JSON documents keep their meaning, not their text; an Export has them
// in one canonical text, so that exports of all databases are equal.
package store
