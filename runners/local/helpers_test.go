package local_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/servers"
)

// recorder is an observer that keeps everything.
type recorder struct {
	mu       sync.Mutex
	stages   []runners.Stage
	at       map[runners.Stage]time.Time
	phases   []runners.Phase
	rounds   []runners.Round
	launches []runners.Launch

	refuse  error
	decide  func(runners.Round) runners.RoundDecision
	onStage func(runners.Stage)
}

func (r *recorder) Launched(launch runners.Launch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.launches = append(r.launches, launch)
	return r.refuse
}

func (r *recorder) Stage(stage runners.Stage) {
	r.mu.Lock()
	r.stages = append(r.stages, stage)
	if r.at == nil {
		r.at = map[runners.Stage]time.Time{}
	}
	r.at[stage] = time.Now()
	r.mu.Unlock()
	if r.onStage != nil {
		r.onStage(stage)
	}
}

func (r *recorder) Phase(phase runners.Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, phase)
}

func (r *recorder) Round(round runners.Round) runners.RoundDecision {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds = append(r.rounds, round)
	if r.decide != nil {
		return r.decide(round)
	}
	return runners.Continue
}

// newHost is this machine without GPUs, without configuration files of NCCL,
// and with an environment of the test's own.
func newHost(t testing.TB, change ...func(*local.Options)) *local.Host {
	t.Helper()
	options := local.Options{
		Environ:       []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
		LockDirectory: t.TempDir(),
		GPUMemory:     func(context.Context) ([]int64, error) { return nil, nil },
		ConfFiles:     func(map[string]string) []string { return nil },
	}
	for _, f := range change {
		f(&options)
	}
	host, err := local.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// fakeJob launches the fake server with the given flags, and asks little of it.
func fakeJob(t testing.TB, flags ...string) runners.Job {
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

// commandJob runs the fake command.
func commandJob(t testing.TB, args ...string) runners.Job {
	t.Helper()
	return runners.Job{
		Trial: 1, Attempt: 1, Kind: "command", Args: slices.Concat([]string{"${nocturne}", "fake-command"}, args),
		Timeouts:     runners.Timeouts{Launching: time.Minute, Round: time.Minute, Stopping: 10 * time.Second},
		Workload:     runners.Workload{Rounds: runners.Rounds{Fixed: 1}},
		LogDirectory: t.TempDir(),
	}
}

// wantFailure checks class, reason and outcome, and that the policy that travels
// with the failure is that of its reason's table.
func wantFailure(t testing.TB, result runners.Result, outcome runners.Outcome, class runners.Class, reason string) {
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

func wantComplete(t testing.TB, result runners.Result) {
	t.Helper()
	if result.Outcome != runners.Complete {
		t.Fatalf("outcome %s, expected complete: %+v", result.Outcome, result.Failure)
	}
}

// wantNothingLeft checks that no process of any launch is alive.
func wantNothingLeft(t testing.TB, r *recorder) {
	t.Helper()
	for _, launch := range r.launches {
		if left := marked(t, launch.Marker); len(left) > 0 {
			t.Errorf("processes of the launch are left: %v", left)
		}
	}
}

func with(env map[string]string, more map[string]string) map[string]string {
	all := maps.Clone(env)
	maps.Copy(all, more)
	return all
}

var errStore = errors.New("the store is full")
