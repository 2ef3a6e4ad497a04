// Package servers describes inference servers as data: how to see that one is
// ready, how to read its log, what its failures look like, how speculation is
// written on its command line, and which rules its arguments obey.
//
// A Kind is one server. Each lives in a file of its own (sglang.go, vllm.go,
// trtllm.go, llamacpp.go, custom.go) and holds no code: hosts interpret the
// tables. A new kind is one file and its test data.
//
// Log patterns are RE2 and meant for one line, split at line feeds and carriage
// returns (progress bars rewrite their line with the latter). [Kind.Strip]
// removes the server's own prefix first, so that patterns may be anchored.
//
// A failure pattern names a [Cause], and a cause says what a tuner does next:
// which class the failure has, how often it is worth another attempt, and what
// it counts as after that. [Reasons] lists every reason code that a runner
// gives.
package servers
