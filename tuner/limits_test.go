package tuner_test

import (
	"slices"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

const speculatingFile = `
campaign: speculating
server: {kind: llamacpp, command: [serve, --port, "${port}"]}
workload: {requests: 1, rounds: 1}
objective: {maximize: output_throughput}
space: {speculative: {method: draft, draft_model: /d, steps: 2}}
confirm: {top: 1, relaunches: 2}
seed: 7
budget: {trials: 1}
`

// speculatingHost measures twice as much with speculation as without.
func speculatingHost(flag string, effective func(on bool) map[string]string) *fakeHost {
	return &fakeHost{measure: func(_ int, job runners.Job) runners.Result {
		on := slices.Contains(job.Args, flag)
		value := 10.0
		if on {
			value = 20
		}
		metrics := runners.Metrics{"output_throughput": value}
		return runners.Result{Outcome: runners.Complete, Effective: effective(on),
			Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
	}}
}

// Two arms under different limits are told of, once, and count.
func TestLimitsThatDifferFromTheBaselines(t *testing.T) {
	for name, test := range map[string]struct {
		slots map[bool]string
		want  int
	}{
		"apart": {map[bool]string{false: "8", true: "4"}, 1},
		"equal": {map[bool]string{false: "4", true: "4"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			host := speculatingHost("--spec-type", func(on bool) map[string]string { return map[string]string{"total_slots": test.slots[on]} })
			events := &recorder{}
			outcome := run(t, newTuner(t, openStore(t), host, events), campaignOf(t, speculatingFile), tuner.Options{})
			if outcome.ExitStatus == tuner.ExitFailed || outcome.ExitStatus == tuner.ExitPaused {
				t.Fatalf("outcome %+v", outcome)
			}
			told := 0
			for _, warning := range payloads[output.Warning](t, events, output.EventWarning) {
				if strings.Contains(warning.Message, "--parallel is 8 in one and 4 in the other") {
					told++
				}
			}
			if told != test.want {
				t.Errorf("told %d times, want %d", told, test.want)
			}
		})
	}
}

// The version that is installed decides how speculation is written from the first
// launch on.
func TestInstalledVersionDecidesHowFlagsAreWritten(t *testing.T) {
	host := speculatingHost("--draft-max", func(bool) map[string]string { return nil })
	host.version = "version: 8000 (7e4c0a9)"
	run(t, newTuner(t, openStore(t), host, &recorder{}), campaignOf(t, speculatingFile), tuner.Options{})
	if !slices.ContainsFunc(host.launches, func(job runners.Job) bool { return slices.Contains(job.Args, "--draft-max") }) {
		t.Errorf("no launch has --draft-max: %+v", host.launches)
	}
	for _, job := range host.launches {
		if job.ServerVersion != host.version {
			t.Errorf("a job for version %q", job.ServerVersion)
		}
	}
}
