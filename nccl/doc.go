// Package nccl holds what Nocturne knows about NVIDIA's collective
// communication library: which environment variables exist, what their values
// mean, which settings make no difference under which others, how a wish is
// written for the version at hand, and what NCCL's own log says happened.
//
// NCCL reads variables with a C string-to-integer call and reports neither an
// unknown name nor an odd value. "NCCL_BUFFSIZE=16M" is 16 bytes, a lower-case
// NCCL_P2P_LEVEL is ignored, and a misspelt name has no effect at all. Every
// check therefore has to happen before a launch, and every effect has to be
// proved from the log after it.
//
// # Model
//
// A setting passes through four forms:
//
//   - raw text, as a person typed it: "16MiB", "tree", "0x10";
//   - a canonical value (Canonicalize): "16777216", "Tree", "16". It depends on
//     no version, so that equal wishes are equal text for ever;
//   - a canonical setting (Canonical): the values that act, for one NCCL on one
//     machine. Inert variables are gone, clamped ones stand at their clamp, and
//     what equals the default is absent. Two configurations with equal
//     canonical settings measure the same thing;
//   - an environment (Render): the text that this NCCL reads as the wish.
//
// NCCL_ALGO and NCCL_PROTO are intents in the second and third form: "Tree"
// means "the all-reduce by tree, all other collectives untouched", which no
// NCCL from 2.24 on understands when written that way.
//
// What is known about the machine is a Context. Facts that are not known stay
// unknown, and then only rules apply that hold for every version and platform.
//
// The rule table (Rules) is data: each rule has an id, a version range, the
// condition in words, the effect, the reason, and the NCCL source file or issue
// that it was read from.
//
// Facts accumulates NCCL's log lines, and Confirm compares them with what was
// asked. Silent corruption leaves no line: only a data check finds that.
//
// Facts about NCCL were read in NVIDIA/nccl from 2.12 to 2.31; sources are
// named beside each table. The package imports nothing else of Nocturne.
package nccl
