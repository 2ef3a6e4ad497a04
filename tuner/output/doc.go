// Package output holds the machine output of Nocturne: the JSON documents and
// events that programs read, and the functions that make them from stored
// records.
//
// Names are snake_case, times RFC 3339 UTC, seconds end in _s and latencies in
// _ms, what is absent is null. Fields may be added, never renamed.
package output

// Schema is the version of every document and event.
const Schema = 1
