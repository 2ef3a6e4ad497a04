package runnertest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// Recorder is an observer that keeps everything.
type Recorder struct {
	mu       sync.Mutex
	Stages   []runners.Stage
	At       map[runners.Stage]time.Time // when each was entered
	Phases   []runners.Phase
	Rounds   []runners.Round
	Launches []runners.Launch

	// Refuse is what Launched answers, Decide what Round answers, and OnStage is
	// called with each stage.
	Refuse  error
	Decide  func(runners.Round) runners.RoundDecision
	OnStage func(runners.Stage)
}

// Launched implements [runners.Observer].
func (r *Recorder) Launched(launch runners.Launch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Launches = append(r.Launches, launch)
	return r.Refuse
}

// Stage implements [runners.Observer].
func (r *Recorder) Stage(stage runners.Stage) {
	r.mu.Lock()
	r.Stages = append(r.Stages, stage)
	if r.At == nil {
		r.At = map[runners.Stage]time.Time{}
	}
	r.At[stage] = time.Now()
	r.mu.Unlock()
	if r.OnStage != nil {
		r.OnStage(stage)
	}
}

// Phase implements [runners.Observer].
func (r *Recorder) Phase(phase runners.Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Phases = append(r.Phases, phase)
}

// Round implements [runners.Observer].
func (r *Recorder) Round(round runners.Round) runners.RoundDecision {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Rounds = append(r.Rounds, round)
	if r.Decide != nil {
		return r.Decide(round)
	}
	return runners.Continue
}

// ServerJob launches the fake server with the given flags, and asks little of it.
func ServerJob(t testing.TB, flags ...string) runners.Job {
	t.Helper()
	return runners.Job{
		CampaignID: "01J", Campaign: "test", TrialID: "01K", Trial: 1, Attempt: 1,
		Kind: "sglang", Args: slices.Concat([]string{"${nocturne}", "fake", "--port=${port}"}, flags),
		Model: "tiny",
		Timeouts: runners.Timeouts{
			Launching: time.Minute, Loading: time.Minute, Stalled: time.Minute, Verifying: time.Minute,
			Warming: time.Minute, Round: time.Minute, Stopping: 10 * time.Second,
		},
		Workload: runners.Workload{
			Name: "w", Dataset: "random", InputTokens: 20, OutputTokens: 16, Requests: 4, Warmup: 1,
			Endpoint: "completions", IgnoreEOS: true, Seed: 7,
			Points: []runners.LoadPoint{{Concurrency: 2}}, Rounds: runners.Rounds{Fixed: 2},
		},
		LogDirectory: t.TempDir(),
	}
}

// CommandJob runs the fake command.
func CommandJob(t testing.TB, args ...string) runners.Job {
	t.Helper()
	return runners.Job{
		Trial: 1, Attempt: 1, Kind: "command", Args: slices.Concat([]string{"${nocturne}", "fake-command"}, args),
		Timeouts:     runners.Timeouts{Launching: time.Minute, Round: time.Minute, Stopping: 10 * time.Second},
		Workload:     runners.Workload{Rounds: runners.Rounds{Fixed: 1}},
		LogDirectory: t.TempDir(),
	}
}

// WantFailure checks class, reason and outcome, and that the policy that travels
// with the failure is that of its reason's table.
func WantFailure(t testing.TB, result runners.Result, outcome runners.Outcome, class runners.Class, reason string) {
	t.Helper()
	if result.Failure == nil {
		t.Fatalf("outcome %s without a failure, expected %s %s (%s)", result.Outcome, outcome, reason, class)
	}
	f := result.Failure
	if result.Outcome != outcome || f.Class != class || f.Reason != reason {
		t.Errorf("got %s %s %s at stage %s, expected %s %s %s\n%s", result.Outcome, f.Class, f.Reason, f.Stage, outcome, class, reason, f.Message)
	}
	if _, known := servers.LookUpReason(f.Reason); !known {
		t.Errorf("reason %q is not in the list of reasons", f.Reason)
	}
}

// WantComplete checks that the trial was measured.
func WantComplete(t testing.TB, result runners.Result) {
	t.Helper()
	if result.Outcome != runners.Complete {
		t.Fatalf("outcome %s, expected complete: %+v", result.Outcome, result.Failure)
	}
}

// WantNothingLeft checks that no process of any launch is alive.
func WantNothingLeft(t testing.TB, r *Recorder) {
	t.Helper()
	for _, launch := range r.Launches {
		if left := marked(t, launch.Marker); len(left) > 0 {
			t.Errorf("processes of the launch are left: %v", left)
		}
	}
}

// marked lists the living processes that carry the marker of a launch.
func marked(t testing.TB, marker string) []int {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, process := range all {
		if supervise.ReadEnvironment(process.PID).Variables[supervise.MarkerVariable] == marker {
			pids = append(pids, process.PID)
		}
	}
	return pids
}
