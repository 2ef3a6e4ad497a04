package servers

import "nocturne/nccl"

// ncclFailures are the failures that package nccl recognises, as signatures.
// Their texts are not repeated here: [nccl.Diagnose] finds them.
func ncclFailures() []Signature {
	var signatures []Signature
	for _, pattern := range nccl.FailurePatterns() {
		signature := Signature{ID: "N-" + pattern.Reason, Reason: pattern.Reason}
		signature.Start = ncclCause(pattern)
		signature.Load = signature.Start
		if signature.Start == CauseMemory {
			signature.Reason = ReasonOutOfMemory
		}
		for _, name := range pattern.InfeasibleWith {
			signature = signature.under(Sets(name), CauseConfiguration)
		}
		if pattern.Reason == workerWait {
			// Once a minute: a compilation at first, a hang when it goes on under load.
			signature.Reason, signature.Repeat, signature.Repeated = ReasonWatchdog, 3, CauseHang
		}
		if pattern.Class == nccl.ClassInfeasible {
			// Without a setting of NCCL's there is no configuration to blame.
			signature = signature.under(NCCLUntouched, CauseHost)
		}
		if pattern.Consequence {
			signature = signature.alone(signature.Start)
			signature.Start, signature.Load = CauseConsequence, CauseConsequence
		}
		signatures = append(signatures, signature)
	}
	return signatures
}

// workerWait is vLLM's line about workers that do not take their next step.
const workerWait = "worker_wait"

// ncclCause is what a failure of NCCL means for a trial. Two of them mean more
// to a runner than to NCCL: memory is looked at together with what else uses it,
// and a hang is worth one more attempt, not several.
func ncclCause(pattern nccl.FailurePattern) Cause {
	switch pattern.Reason {
	case "gpu_memory":
		return CauseMemory
	case "collective_timeout":
		return CauseHang
	}
	return map[nccl.Class]Cause{
		nccl.ClassInfeasible:  CauseConfiguration,
		nccl.ClassTransient:   CauseTransient,
		nccl.ClassEnvironment: CauseHost,
		nccl.ClassUnclear:     CauseCrash,
		nccl.ClassNotice:      CauseNote,
	}[pattern.Class]
}

// ncclReasons are the reason codes of NCCL's failures.
func ncclReasons() []Reason {
	var reasons []Reason
	for _, pattern := range nccl.FailurePatterns() {
		cause := ncclCause(pattern)
		if cause == CauseNote || cause == CauseMemory {
			continue
		}
		reasons = append(reasons, Reason{pattern.Reason, cause, "NCCL: " + pattern.Cause})
	}
	return reasons
}
