// Package local carries out trials on the machine that the tuner runs on.
//
// A trial passes through the stages of [runners.Stage]:
//
//	preparing   rules of the server kind, NCCL configuration files, environment,
//	            port, trial directory
//	launching   supervisor prepared, launch put on record, server started
//	loading     until the server calls itself healthy; three sources are watched
//	            at once: the end of the process, its log, its health page
//	verifying   model id, one real completion of 256 tokens, workers all there,
//	            and the settings: in the environment of every process, told back by
//	            the server, read by NCCL as its log says
//	warming     requests whose numbers are thrown away
//	measuring   rounds at each load point, the prefix cache flushed before each
//	stopping    the whole process tree, whatever happened before
//
// The first of {death, fatal log line, limit, cancellation, success} ends a
// stage. What went wrong is explained after the stop, when the whole log has
// been read: the earliest line that is a cause and not a consequence.
//
// Server kinds are data ([nocturne/runners/servers]); nothing here depends on
// one by name. Jobs of kind "command" have no server: each round runs the
// command to its end (command.go).
package local
