package nccl

import (
	"maps"
	"slices"
	"strings"
)

// ProofStatus says how an asked setting shows in the log.
type ProofStatus string

// The states of a proof.
const (
	// Confirmed: NCCL read the value that was meant.
	Confirmed ProofStatus = "confirmed"
	// Different: NCCL read another value, or processes differ.
	Different ProofStatus = "different"
	// Missing: NCCL never read the variable. The name is wrong, the version
	// does not know it, its code path was not needed, or the variable was
	// lost on the way to the worker.
	Missing ProofStatus = "missing"
	// Extra: NCCL read a variable that was not asked for, from a
	// configuration file or from a program that set it.
	Extra ProofStatus = "extra"
	// Unlogged: NCCL prints no line for this variable.
	Unlogged ProofStatus = "unlogged"
)

// Proof compares one variable of a launch with the log.
type Proof struct {
	Name      string
	Requested string // as in the environment; empty for Extra
	Observed  string // several values with blanks between them when processes differ
	Status    ProofStatus
}

// Confirm compares the NCCL variables of an environment with the log's "set by
// environment" lines. A confirmed value was read as meant; whether it had an
// effect is another question, for the transports, channels, matrix and
// operations. Proofs are sorted by name.
func (f *Facts) Confirm(environment map[string]string) []Proof {
	names := map[string]bool{}
	for name := range environment {
		if strings.HasPrefix(name, "NCCL_") {
			names[name] = true
		}
	}
	for name := range f.set {
		names[name] = true
	}
	var proofs []Proof
	for _, name := range slices.Sorted(maps.Keys(names)) {
		requested, asked := environment[name]
		observed := f.Values(name)
		proof := Proof{Name: name, Requested: requested, Observed: strings.Join(observed, " ")}
		if variable := find(name); asked && variable != nil && variable.Secret {
			proof.Requested = secretText
		}
		switch {
		case !asked:
			proof.Status = Extra
		case len(observed) == 0:
			proof.Status = unread(name)
		case len(observed) == 1 && sameReading(name, requested, observed[0]):
			proof.Status = Confirmed
		default:
			proof.Status = Different
		}
		proofs = append(proofs, proof)
	}
	return proofs
}

// unread: log settings and files have no line of their own in most releases.
func unread(name string) ProofStatus {
	if variable := find(name); variable != nil && (variable.Area == Debug || variable.Area == Files || variable.Secret) {
		return Unlogged
	}
	return Missing
}

// sameReading compares what was meant with what NCCL read: 16M is meant as
// 16777216, but read as 16.
func sameReading(name, requested, observed string) bool {
	variable := find(name)
	switch {
	case requested == observed:
		return true
	case variable == nil:
		return false
	case variable.Secret:
		return true
	case variable.numeric() || variable.Kind == Level:
		meant, fault := variable.canonical(requested, Reading{Quoted: true, Unsafe: true})
		return fault == nil && meant == observed
	default:
		return false
	}
}
