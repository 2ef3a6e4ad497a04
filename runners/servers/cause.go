package servers

import "nocturne/runners"

// Cause says what kind of thing went wrong, which decides what follows.
type Cause string

// Causes of failures.
const (
	// CauseConfiguration: this configuration cannot work here.
	CauseConfiguration Cause = "configuration"
	// CauseMemory: it does not fit. On a host that was clean at launch that is
	// the configuration's fault.
	CauseMemory Cause = "memory"
	// CauseCrash: a crash that may be rare. The second one counts.
	CauseCrash Cause = "crash"
	// CauseHang: no progress. The second one counts.
	CauseHang Cause = "hang"
	// CauseTransient: a port, a download, a race at start.
	CauseTransient Cause = "transient"
	// CauseLimit: a limit of ours fired although the server was getting on. Worth
	// one more attempt (caches are warm then), never the configuration's fault.
	CauseLimit Cause = "limit"
	// CauseHost: the host or the installation is broken.
	CauseHost Cause = "host"
	// CauseMeasurement: the server works, but the numbers must not count.
	CauseMeasurement Cause = "measurement"
	// CauseDisturbed: the numbers must not count, and that is the host's doing or our
	// own: never the configuration's.
	CauseDisturbed Cause = "disturbed"
	// CauseTag: the server goes on, but not with what was asked.
	CauseTag Cause = "tag"
	// CauseNote: worth keeping beside the result; changes nothing.
	CauseNote Cause = "note"
	// CauseConsequence: follows from an earlier failure, perhaps of another rank.
	CauseConsequence Cause = "consequence"
)

// Policy is what a tuner does after a failure.
type Policy struct {
	Class runners.Class
	// Retries is how often the trial is worth another attempt, and Then the class
	// of the failure once they are used up.
	Retries int
	Then    runners.Class
	// Invalid tells that the trial ran but must not count, rather than failed.
	Invalid bool
}

var policies = map[Cause]Policy{
	CauseConfiguration: {Class: runners.ClassInfeasible, Then: runners.ClassInfeasible},
	CauseMemory:        {Class: runners.ClassInfeasible, Then: runners.ClassInfeasible},
	CauseCrash:         {Class: runners.ClassTransient, Retries: 1, Then: runners.ClassInfeasible},
	CauseHang:          {Class: runners.ClassTransient, Retries: 1, Then: runners.ClassInfeasible},
	CauseConsequence:   {Class: runners.ClassTransient, Retries: 1, Then: runners.ClassInfeasible},
	CauseTransient:     {Class: runners.ClassTransient, Retries: 2, Then: runners.ClassTransient},
	CauseLimit:         {Class: runners.ClassTransient, Retries: 1, Then: runners.ClassTransient},
	CauseHost:          {Class: runners.ClassEnvironment, Then: runners.ClassEnvironment},
	CauseMeasurement:   {Class: runners.ClassTransient, Retries: 1, Then: runners.ClassInfeasible, Invalid: true},
	CauseDisturbed:     {Class: runners.ClassTransient, Retries: 2, Then: runners.ClassTransient, Invalid: true},
	CauseTag:           {Class: runners.ClassInfeasible, Then: runners.ClassInfeasible, Invalid: true},
}

// Policy returns what follows from the cause. A note has no policy.
func (c Cause) Policy() Policy { return policies[c] }
