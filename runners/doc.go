// Package runners carries out one trial on one host: launch, wait, verify,
// measure, stop.
//
// This package holds the plain types of that seam: a Job says what to do, a
// Host does it, an Observer is told what happens, and a Result is what came
// out. Hosts, server kinds, the load generator, the fingerprint and the
// simulated server live in packages below it. Nothing here knows campaigns,
// search or storage.
package runners
