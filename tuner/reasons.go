package tuner

import (
	"nocturne/runners"
	"nocturne/runners/servers"
)

// Reasons that the tuner gives itself, beside those of the runners.
const (
	reasonTunerLost     = "tuner_lost"
	reasonInterrupted   = "interrupted"
	reasonMetricMissing = "metric_missing"
	reasonNotPositive   = "not_positive"
	reasonStackChanged  = "stack_changed"
	reasonHostDisturbed = "host_disturbed"
)

// Reason is a reason code with what follows from it.
type Reason struct {
	Code  string
	Class runners.Class
	// Retries is how often the trial is tried again, Then the class that the failure
	// has afterwards.
	Retries int
	Then    runners.Class
	Meaning string
}

// Reasons lists every reason code of a trial: those of the runners in the order of
// a trial's life, then those that the tuner gives itself.
func Reasons() []Reason {
	var all []Reason
	for _, reason := range servers.Reasons() {
		policy := reason.Cause.Policy()
		all = append(all, Reason{reason.Code, policy.Class, policy.Retries, policy.Then, reason.Meaning})
	}
	return append(all, ownReasons...)
}

var ownReasons = []Reason{
	{reasonMetricMissing, runners.ClassInfeasible, 0, runners.ClassInfeasible, "the launch was measured, but without the metric of the objective"},
	{reasonNotPositive, runners.ClassInfeasible, 0, runners.ClassInfeasible, "the objective was measured as zero or less; gains are ratios, so it must be above 0"},
	{reasonStackChanged, runners.ClassEnvironment, 0, runners.ClassEnvironment, "driver, CUDA, NCCL, server or kernel differ from those of the baseline; the trial is void"},
	{reasonHostDisturbed, runners.ClassTransient, mostMeasuredAgain, runners.ClassTransient, "other work on the host held the load generator up during a fresh launch, far more than is usual in the campaign; the launch is void and measured again, so often in a whole campaign, and then counts as it is"},
	{reasonTunerLost, runners.ClassTransient, maximalLosses - 1, runners.ClassTransient, "the tuner was killed, or its host went down, while the trial ran; one of the search is given up as lost after that, a reference or fresh launch never"},
	{reasonInterrupted, runners.ClassTransient, 0, runners.ClassTransient, "the tuner was asked to stop while the trial ran; the trial stays queued for the next tuner, however often"},
}
