package local

import (
	"errors"
	"fmt"

	"nocturne/runners"
	"nocturne/runners/servers"
)

// failure is why a trial has no number that counts, on its way up to the
// result.
type failure struct {
	reason  string
	cause   servers.Cause
	message string
	// log tells that the lines of the log may know better: the failure is what
	// was seen from outside.
	log bool
}

func (f *failure) Error() string { return f.reason + ": " + f.message }

// fail describes a failure with the usual cause of its reason.
func fail(reason, format string, args ...any) *failure {
	return &failure{reason: reason, cause: usualCause(reason), message: fmt.Sprintf(format, args...)}
}

// symptom is a failure seen from outside, which the log may explain.
func symptom(reason, format string, args ...any) *failure {
	f := fail(reason, format, args...)
	f.log = true
	return f
}

// because replaces the usual cause.
func (f *failure) because(cause servers.Cause) *failure {
	f.cause = cause
	return f
}

func usualCause(reason string) servers.Cause {
	if known, ok := servers.LookUpReason(reason); ok {
		return known.Cause
	}
	return servers.CauseCrash
}

// record is the failure as it is reported, and the outcome that it means.
func (f *failure) record(stage runners.Stage) (*runners.Failure, runners.Outcome) {
	policy := f.cause.Policy()
	outcome := runners.Failed
	if policy.Invalid {
		outcome = runners.Invalid
	}
	return &runners.Failure{
		Class: policy.Class, Reason: f.reason, Message: f.message, Stage: stage,
		Retries: policy.Retries, Then: policy.Then,
	}, outcome
}

// What ends a trial besides failures.
var (
	errDied      = errors.New("the server ended")
	errFatalLine = errors.New("the server's log says that it cannot go on")
	errPruned    = errors.New("the trial cannot win")
)
