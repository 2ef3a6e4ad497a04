// Package servers describes inference servers as data: how to see that one is
// ready, how to read its log, what its failures look like, how speculation is
// written on its command line, and which rules its arguments obey.
//
// A Kind is one server. Each lives in a file of its own (sglang.go, vllm.go,
// trtllm.go, llamacpp.go, custom.go) and holds tables that hosts interpret: no
// other code knows one server from another. A new kind is one file, its entry in
// kinds, and its test data: sample lines (testdata/failures.txt, progress.txt,
// prefixes.txt), logs of whole launches (testdata/logs) and pages.
//
// The table describes the newest version. [Difference] names what is otherwise in
// older ones, and [Kind.At] is the kind as it is at the version that was detected:
// before a launch by [Kind.VersionCommand], afterwards by page or log.
//
// Servers rewrite what they are asked for with a warning at most. [Argument] says
// where the value in force is told, so that [Kind.Compare] can set it beside the
// command; [Rewrite] explains the differences that are known to happen; [Limit]
// lists what the server chooses by itself and must be equal in both arms of a
// comparison.
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
