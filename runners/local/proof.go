package local

import (
	"fmt"
	"slices"
	"strings"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// A setting climbs a ladder: it was asked for; it is in the environment of every
// process that computes; the server tells it back; NCCL's log says that it was
// read. Each proof holds the highest rung that was seen. A rung that contradicts
// what was asked makes a mismatch, whatever the others say. Where no rung can be
// seen the setting is unknown, which is not the same as applied.

// prove compares what was asked with what the launch shows.
func (t *trial) prove(members []supervise.Member) []runners.Proof {
	proofs := append(t.proveVariables(members), t.proveArguments()...)
	if t.drafts != nil {
		proofs = append(proofs, *t.drafts)
	}
	return proofs
}

// proveVariables looks for the tuned variables in the processes and in NCCL's
// log.
func (t *trial) proveVariables(members []supervise.Member) []runners.Proof {
	want, absent := map[string]string{}, []string(nil)
	names := t.provedNames(func(name string) bool { return !isFlag(name) })
	for _, name := range names {
		if value, set := t.job.Env[name]; set {
			want[name] = value
		} else {
			absent = append(absent, name)
		}
	}
	computing := slices.DeleteFunc(slices.Clone(members), func(member supervise.Member) bool {
		return t.kind != nil && t.kind.IsHelper(member.Args)
	})
	verification := supervise.VerifyEnvironment(computing, want, absent)
	proofs := make([]runners.Proof, 0, len(names))
	for _, name := range names {
		proof := runners.Proof{Knob: name, Evidence: runners.EvidenceRequested}
		if value, set := want[name]; set {
			proof.Requested = &value
		}
		t.judge(&proof, verification)
		proofs = append(proofs, proof)
	}
	t.askNCCL(proofs, want)
	return proofs
}

// provedNames are those of the job's list that fit, sorted, each once.
func (t *trial) provedNames(fits func(string) bool) []string {
	var names []string
	for _, name := range t.job.Prove {
		if fits(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isFlag(name string) bool { return strings.HasPrefix(name, "-") }

// askNCCL adds what NCCL's own log says it read. It sees what no environment
// shows: values from configuration files, and those that a process set for
// itself.
func (t *trial) askNCCL(proofs []runners.Proof, want map[string]string) {
	if t.log == nil {
		return
	}
	confirmed := t.log.confirmed(want)
	logged := slices.ContainsFunc(confirmed, func(read nccl.Proof) bool { return read.Observed != "" })
	for _, read := range confirmed {
		i := slices.IndexFunc(proofs, func(proof runners.Proof) bool { return proof.Knob == read.Name })
		if i < 0 || proofs[i].Status == runners.ProofMismatch {
			continue
		}
		proof := &proofs[i]
		by, writes := t.written(read.Name)
		switch {
		case read.Status == nccl.Confirmed:
			proof.Status, proof.Observed, proof.Detail = runners.ProofApplied, &read.Observed, "NCCL's log confirms it"
			proof.Evidence = runners.EvidenceNCCL
		case read.Status == nccl.Extra && writes && by.Writes(read.Observed):
		case read.Status == nccl.Different || read.Status == nccl.Extra:
			proof.Status, proof.Observed, proof.Evidence = runners.ProofMismatch, &read.Observed, runners.EvidenceNCCL
			proof.Detail = fmt.Sprintf("%s: NCCL's log says that it read %q", read.Name, read.Observed)
		case read.Status == nccl.Missing && logged && proof.Status == runners.ProofApplied:
			proof.Status = runners.ProofUnknown
			proof.Detail = join(proof.Detail, "NCCL's log names the variables that it read, and this is not among them")
		}
	}
}

// written is what the server writes into a variable under this command.
func (t *trial) written(variable string) (servers.WrittenVariable, bool) {
	if t.kind == nil {
		return servers.WrittenVariable{}, false
	}
	return t.kind.WrittenUnder(servers.Command{Args: t.spec.Args, Env: t.spec.Env}, variable)
}

// judge decides what the processes prove about one variable.
func (t *trial) judge(proof *runners.Proof, verification supervise.Verification) {
	written := 0
	if len(verification.Checked) > 0 {
		proof.Evidence = runners.EvidenceEnvironment
	}
	by, writes := t.written(proof.Knob)
	for _, mismatch := range verification.Mismatches {
		if mismatch.Variable != proof.Knob {
			continue
		}
		if writes && proof.Requested == nil && mismatch.Found != nil && by.Writes(*mismatch.Found) {
			written++
			proof.Observed = mismatch.Found
			continue
		}
		proof.Status, proof.Observed, proof.Detail = runners.ProofMismatch, mismatch.Found, mismatch.String()
		if writes && by.Always {
			proof.Detail += fmt.Sprintf("; %s always writes %s", t.kind.Title, by.Value)
		}
		return
	}
	checked, hidden := len(verification.Checked), unreadable(verification)
	switch {
	case checked == 0:
		proof.Status, proof.Detail = runners.ProofUnknown, hidden
		return
	case written > 0:
		proof.Detail = fmt.Sprintf("left to %s, which writes %s into %d of %d processes", t.kind.Title, *proof.Observed, written, checked)
	default:
		proof.Observed = proof.Requested
		proof.Detail = fmt.Sprintf("in the environment of %d processes", checked)
	}
	proof.Status = runners.ProofApplied
	if len(verification.Unreadable) > 0 {
		// The front is easily read and the workers, which have titles, are not.
		proof.Status, proof.Detail = runners.ProofUnknown, join(proof.Detail, hidden)
	}
}

func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// unreadable names the processes that could not be read.
func unreadable(verification supervise.Verification) string {
	if len(verification.Unreadable) == 0 {
		return "no process was there to be read"
	}
	var names []string
	for _, process := range verification.Unreadable {
		names = append(names, fmt.Sprintf("%s: %s", process.Process, process.Reason))
	}
	return "could not be read: " + strings.Join(names, "; ")
}

// proveArguments compares the arguments with what the server tells of itself.
// Those of knobs and of speculation count; another that is not in force is a
// remark, because it is the same in every trial.
func (t *trial) proveArguments() []runners.Proof {
	if t.kind == nil || t.log == nil {
		return nil // nothing has run that could tell
	}
	facts := t.log.known()
	for name, value := range t.told {
		facts[name] = value // what a page says counts more than what the log says
	}
	command := servers.Command{Args: t.spec.Args, Env: t.spec.Env}
	flags := t.provedNames(isFlag)
	var proofs []runners.Proof
	for _, comparison := range t.kind.Compare(command, facts) {
		knob := slices.ContainsFunc(comparison.Argument.Flags, func(flag string) bool { return slices.Contains(flags, flag) })
		flags = slices.DeleteFunc(flags, func(flag string) bool { return slices.Contains(comparison.Argument.Flags, flag) })
		differs := comparison.Match == servers.Differs
		switch {
		case knob, comparison.Argument.Speculation && (comparison.Requested != nil || differs):
			proofs = append(proofs, argumentProof(comparison))
		case differs:
			t.result.Warnings = append(t.result.Warnings, "the server runs otherwise than its command says: "+argumentProof(comparison).Detail)
		}
	}
	for _, flag := range flags {
		proofs = append(proofs, t.unreadArgument(command, flag))
	}
	return proofs
}

func argumentProof(comparison servers.Comparison) runners.Proof {
	proof := runners.Proof{Knob: comparison.Argument.Name(), Requested: comparison.Requested, Observed: comparison.Effective, Evidence: runners.EvidenceServer}
	switch comparison.Match {
	case servers.Same:
		proof.Status, proof.Detail = runners.ProofApplied, "the server tells it back"
	case servers.ServersChoice:
		proof.Status, proof.Detail = runners.ProofApplied, "left to the server, which chose "+*comparison.Effective
	case servers.Differs:
		requested := "absent"
		if proof.Requested != nil {
			requested = *proof.Requested
		}
		proof.Status = runners.ProofMismatch
		proof.Detail = join(fmt.Sprintf("%s is %s instead of %s", proof.Knob, *comparison.Effective, requested), comparison.Rewrite)
	default:
		proof.Status, proof.Evidence, proof.Detail = runners.ProofUnknown, runners.EvidenceRequested, "the server does not tell it"
	}
	return proof
}

// unreadArgument is the proof of a knob that the kind cannot read back.
func (t *trial) unreadArgument(command servers.Command, flag string) runners.Proof {
	proof := runners.Proof{Knob: flag, Status: runners.ProofUnknown, Evidence: runners.EvidenceRequested, Detail: t.kind.Title + " does not tell it"}
	if value, given := command.Flag(flag); given {
		proof.Requested = &value
	}
	return proof
}

// mismatchFailure names every setting that is not in force. A variable that did
// not arrive comes before an argument that was changed.
func mismatchFailure(proofs []runners.Proof) error {
	reason := servers.ReasonNotAsRequested
	var details []string
	for _, proof := range proofs {
		if proof.Status != runners.ProofMismatch {
			continue
		}
		details = append(details, proof.Detail)
		if !isFlag(proof.Knob) {
			reason = servers.ReasonEnvNotApplied
		}
	}
	if len(details) == 0 {
		return nil
	}
	return fail(reason, "%s", strings.Join(details, "; "))
}
