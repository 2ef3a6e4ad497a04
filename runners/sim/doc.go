// Package sim is a simulated SGLang server: a process that loads, forks workers,
// speaks HTTP and misbehaves like the real thing on an eight-GPU machine, in
// seconds instead of a quarter of an hour.
//
// It learns about a launch only what a real server would: its arguments and its
// environment. Its performance follows a model of one decode pass (computing and
// all-reduces) under NCCL's own rules about which variable acts when; the rules
// are implemented here a second time, from NCCL's behaviour, so that a mistake
// in the tuner's own knowledge of NCCL shows as a wrong result rather than being
// confirmed. For the same reason the package imports nothing else of the module.
//
// The layers, from below: profile (the machine), ncclenv and ncclalgo (how NCCL
// reads its variables), communicator and collective (what an all-reduce then
// costs), model and memory (what the server makes of it), engine (tokens on an
// absolute schedule), server (HTTP), and Main (the life of the process).
// docs/simulator.md documents the formulas, their calibration and every fault.
package sim
