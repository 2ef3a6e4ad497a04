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

// verifyEnvironment reads the environment of every process of the launch back
// and compares it with the plan.
func (t *trial) verifyEnvironment() error {
	members, err := t.process.Processes()
	if err != nil {
		return fail(servers.ReasonTunerError, "%v", err)
	}
	t.result.Proof = t.prove(members)
	return mismatchFailure(t.result.Proof)
}

// prove compares the tuned variables of the processes with the plan.
func (t *trial) prove(members []supervise.Member) []runners.Proof {
	want, absent := map[string]string{}, []string(nil)
	names := slices.Clone(t.job.Prove)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if value, set := t.job.Env[name]; set {
			want[name] = value
		} else {
			absent = append(absent, name)
		}
	}
	verification := supervise.VerifyEnvironment(members, want, absent)
	proofs := make([]runners.Proof, 0, len(names))
	for _, name := range names {
		proof := runners.Proof{Knob: name}
		if value, set := want[name]; set {
			proof.Requested = &value
		}
		t.judge(&proof, verification)
		proofs = append(proofs, proof)
	}
	t.askNCCL(proofs, want)
	return proofs
}

// askNCCL adds what NCCL's own log says it read. It sees what no environment
// shows: values from configuration files, and those that a process set for
// itself.
func (t *trial) askNCCL(proofs []runners.Proof, want map[string]string) {
	if t.log == nil {
		return
	}
	for _, read := range t.log.confirmed(want) {
		i := slices.IndexFunc(proofs, func(proof runners.Proof) bool { return proof.Knob == read.Name })
		if i < 0 || proofs[i].Status == runners.ProofMismatch {
			continue
		}
		proof := &proofs[i]
		by, writes := t.kind.WrittenBy(read.Name)
		switch {
		case read.Status == nccl.Confirmed:
			proof.Status, proof.Observed, proof.Detail = runners.ProofApplied, &read.Observed, "NCCL's log confirms it"
		case read.Status == nccl.Extra && writes && by.Writes(read.Observed):
		case read.Status == nccl.Different || read.Status == nccl.Extra:
			proof.Status, proof.Observed = runners.ProofMismatch, &read.Observed
			proof.Detail = fmt.Sprintf("%s: NCCL's log says that it read %q", read.Name, read.Observed)
		}
	}
}

// judge decides what the processes prove about one variable.
func (t *trial) judge(proof *runners.Proof, verification supervise.Verification) {
	written := 0
	for _, mismatch := range verification.Mismatches {
		if mismatch.Variable != proof.Knob {
			continue
		}
		by, writes := t.kind.WrittenBy(proof.Knob)
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
	switch {
	case len(verification.Checked) == 0:
		proof.Status = runners.ProofUnknown
		proof.Detail = unreadable(verification)
	case written > 0:
		proof.Status = runners.ProofApplied
		proof.Detail = fmt.Sprintf("left to %s, which writes %s into %d of %d processes", t.kind.Title, *proof.Observed, written, len(verification.Checked))
	default:
		proof.Status = runners.ProofApplied
		proof.Observed = proof.Requested
		if len(verification.Unreadable) > 0 {
			proof.Detail = unreadable(verification)
		}
	}
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

// mismatchFailure names every variable that some process has otherwise.
func mismatchFailure(proofs []runners.Proof) error {
	var details []string
	for _, proof := range proofs {
		if proof.Status == runners.ProofMismatch {
			details = append(details, proof.Detail)
		}
	}
	if len(details) == 0 {
		return nil
	}
	return fail(servers.ReasonEnvNotApplied, "%s", strings.Join(details, "; "))
}
