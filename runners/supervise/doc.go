// Package supervise runs one server launch on Linux and leaves nothing of it
// behind, also when the tuner is killed.
//
// # Model
//
// For each launch the tuner starts a supervisor: its own executable again, with
// the hidden argument [Command], in a session of its own. The two are tied by
// pipes. The supervisor is a child subreaper, so every orphan below it becomes
// its child and none can escape by forking twice or by a new session; it is the
// only process that waits for the server, drains its output and stops it. When
// the control pipe closes, because the tuner ended in whatever way, the
// supervisor terminates, then kills the whole tree, and exits.
//
//	tuner ──control──▶ supervisor ──fork──▶ server ──▶ workers ...
//	      ◀─report───             ◀─stdout, stderr─
//	      ◀─lines────             ──▶ log file
//
// A launch has two phases. [Prepare] starts the supervisor alone; the caller
// stores [Process.Launch] and then calls [Process.Start]. So a server never runs
// that is not on record, and a tuner that dies in between leaves nothing.
//
// What is to be run travels through the control pipe, not by command line or
// environment: both are readable in /proc, and the environment of a server holds
// secrets.
//
// # Which processes belong to a launch
//
// In order of trust: the members of the launch's cgroup v2, where one could be
// made; the descendants of the supervisor; and, once the supervisor itself is
// gone, the processes whose environment holds the marker, those of its session
// and all their descendants. Processes are never found by name, and each is
// checked by its start time before it is signalled, through a pidfd where the
// kernel has them.
//
// # Output
//
// The supervisor writes the output to a log of bounded size that keeps the first
// and the newest part, and hands lines to the tuner. Neither a slow tuner nor a
// full disk makes the server wait: lines are then counted as skipped.
package supervise
