package local_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"nocturne/runners"
	"nocturne/runners/supervise"
)

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

func TestTrialFromLaunchToStop(t *testing.T) {
	job := fakeJob(t, "--workers=2", "--say=[2026-08-20 01:02:03] Load weight begin. avail mem=138.10 GB",
		"--say=Loading safetensors checkpoint shards:  42% Completed | 69/163 [05:11<07:02,  4.50s/it]",
		"--say=The server is fired up and ready to roll!",
		"--say=node:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0")
	job.Env = map[string]string{"NCCL_PROTO": "LL", "FOO": "${trial_dir}/x"}
	job.Prove = []string{"NCCL_PROTO", "NCCL_ALGO"}
	observer := &recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	wantComplete(t, result)
	wantNothingLeft(t, observer)

	want := []runners.Stage{runners.Preparing, runners.Launching, runners.Loading, runners.Verifying, runners.Warming, runners.Measuring, runners.Stopping}
	if !slices.Equal(observer.stages, want) {
		t.Errorf("stages %v, expected %v", observer.stages, want)
	}
	if !slices.Contains(observer.phases, runners.Phase{Name: "weights", Percent: 42}) {
		t.Errorf("phases %v lack 42 %% of the weights", observer.phases)
	}
	if len(observer.rounds) != 2 || observer.rounds[1].Number != 2 {
		t.Errorf("rounds %+v, expected two", observer.rounds)
	}
	if len(result.Points) != 1 || len(result.Points[0].Rounds) != 2 {
		t.Fatalf("points %+v, expected one with two rounds", result.Points)
	}
	if got := result.Points[0].Metrics["total_output_tokens"]; got != 2*4*16 {
		t.Errorf("%v output tokens, expected %d", got, 2*4*16)
	}
	for metric, value := range result.Points[0].Metrics {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			t.Errorf("metric %s is %v", metric, value)
		}
	}
	for _, proof := range result.Proof {
		if proof.Status != runners.ProofApplied {
			t.Errorf("proof %+v, expected applied", proof)
		}
	}
	if len(result.Proof) != 2 || *result.Proof[1].Observed != "LL" || result.Proof[0].Requested != nil {
		t.Errorf("proofs %+v", result.Proof)
	}
	stack := result.Stack
	if stack.NCCL != "2.28.9" || stack.CUDA != "13.0" || stack.ServerVersion != "0.5.18" || stack.Server != "sglang" || stack.Model != "tiny" {
		t.Errorf("stack %+v", stack)
	}
	if result.Simulated == nil || result.Simulated.Count != 8 {
		t.Errorf("simulated %+v", result.Simulated)
	}
	if result.Effective["max_running_requests"] != "48" || result.Effective["cache_flush"] != "flushed" {
		t.Errorf("effective %v", result.Effective)
	}
	log, err := os.ReadFile(result.LogPath)
	if err != nil || !strings.Contains(string(log), "fired up") {
		t.Errorf("log %s: %v", result.LogPath, err)
	}
	if launch := observer.launches[0]; launch.Host != "local" || launch.LogPath != result.LogPath || !strings.HasPrefix(launch.Address, "127.0.0.1:") {
		t.Errorf("launch on record: %+v", launch)
	}
}

func TestFailuresByStage(t *testing.T) {
	tests := []struct {
		name    string
		flags   []string
		change  func(*runners.Job)
		outcome runners.Outcome
		class   runners.Class
		reason  string
		stage   runners.Stage
		message string
	}{
		{
			name: "the program does not exist", change: func(j *runners.Job) { j.Args = []string{"/no/such/server", "--port=${port}"} },
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "not_executable", stage: runners.Launching, message: "/no/such/server",
		},
		{
			name: "no port", change: func(j *runners.Job) { j.Args = []string{"${nocturne}", "fake"} },
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "argument_refused", stage: runners.Preparing, message: "--port=${port}",
		},
		{
			name: "a rule of the server", flags: []string{"--speculative-algorithm", "EAGLE3"},
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "argument_refused", stage: runners.Preparing, message: "R9",
		},
		{
			name: "unknown kind", change: func(j *runners.Job) { j.Kind = "ollama" },
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "argument_refused", stage: runners.Preparing, message: "llamacpp",
		},
		{
			name: "a secret that is not there", change: func(j *runners.Job) { j.Secrets = []runners.Secret{{Name: "HF_TOKEN", FromEnv: "HF_TOKEN"}} },
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "secret_missing", stage: runners.Preparing, message: "HF_TOKEN",
		},
		{
			name: "a workload that cannot be sent", change: func(j *runners.Job) { j.Workload.Dataset, j.Workload.File = "prompts", "/no/such/file" },
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "workload_unusable", stage: runners.Preparing, message: "/no/such/file",
		},
		{
			name: "ends early without a word", flags: []string{"--port-after=1m", "--die-after=10ms", "--exit=3"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "exited_early", stage: runners.Loading, message: "exited with status 3",
		},
		{
			name:    "ends early by a signal",
			flags:   []string{"--port-after=1m", "--die-after=10ms", "--exit=-9"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "exited_early", stage: runners.Loading, message: "signal 9",
		},
		{
			name:    "out of memory while loading",
			flags:   []string{"--port-after=1m", "--die-after=10ms", "--say=torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "--last-words=Received sigquit from a child process."},
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "out_of_memory", stage: runners.Loading, message: "Tried to allocate",
		},
		{
			name:    "cannot go on but does not end",
			flags:   []string{"--port-after=1m", "--say=an illegal memory access was encountered", "--say=Scheduler hit an exception: Traceback"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "crashed", stage: runners.Loading, message: "illegal memory",
		},
		{
			name: "another model", flags: []string{"--model=other"},
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "wrong_model", stage: runners.Verifying, message: "serves other, expected tiny",
		},
		{
			name: "healthy but answers nothing", flags: []string{"--refuse"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "no_completion", stage: runners.Verifying, message: "http_500",
		},
		{
			name: "no token counts", flags: []string{"--no-usage"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "no_completion", stage: runners.Verifying, message: "usage",
		},
		{
			name: "hangs in the first completion", flags: []string{"--hang-on-request=1"}, change: func(j *runners.Job) { j.Timeouts.Verifying = time.Second },
			outcome: runners.Failed, class: runners.ClassTransient, reason: "verifying_timeout", stage: runners.Verifying, message: "1s",
		},
		{
			name: "dies in the warm-up", flags: []string{"--die-on-request=2", "--last-words=Decode out of memory. Try to lower your batch size."},
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "out_of_memory", stage: runners.Warming, message: "Decode out of memory",
		},
		{
			name: "dies under load", flags: []string{"--die-on-request=5", "--exit=-9"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "died_under_load", stage: runners.Measuring, message: "signal 9",
		},
		{
			name: "hangs under load", flags: []string{"--hang-on-request=5"}, change: func(j *runners.Job) { j.Timeouts.Round = 2 * time.Second },
			outcome: runners.Failed, class: runners.ClassTransient, reason: "round_timeout", stage: runners.Measuring, message: "round 1 at concurrency 2",
		},
		{
			name: "served from the prefix cache", flags: []string{"--cached=50"},
			outcome: runners.Invalid, class: runners.ClassTransient, reason: "prefix_cache", stage: runners.Measuring, message: "50.0 %",
		},
		{
			name: "runs without what was asked", flags: []string{"--say=speculative_adaptive disabled: some reason. Falling back to static"},
			outcome: runners.Invalid, class: runners.ClassInfeasible, reason: "not_as_requested", stage: runners.Measuring, message: "Falling back",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := fakeJob(t, test.flags...)
			if test.change != nil {
				test.change(&job)
			}
			observer := &recorder{}
			result := newHost(t).Run(t.Context(), job, observer)
			wantFailure(t, result, test.outcome, test.class, test.reason)
			if result.Failure.Stage != test.stage {
				t.Errorf("stage %s, expected %s", result.Failure.Stage, test.stage)
			}
			if !strings.Contains(result.Failure.Message, test.message) {
				t.Errorf("message %q, expected it to hold %q", result.Failure.Message, test.message)
			}
			if last := observer.stages[len(observer.stages)-1]; last != runners.Stopping {
				t.Errorf("last stage %s, expected stopping", last)
			}
			wantNothingLeft(t, observer)
		})
	}
}

func TestPruneEndsTheTrial(t *testing.T) {
	observer := &recorder{decide: func(runners.Round) runners.RoundDecision { return runners.Prune }}
	result := newHost(t).Run(t.Context(), fakeJob(t), observer)
	if result.Outcome != runners.Pruned || result.Failure != nil {
		t.Errorf("outcome %s, failure %+v", result.Outcome, result.Failure)
	}
	if len(result.Points) != 1 || len(result.Points[0].Rounds) != 1 {
		t.Errorf("points %+v, expected the one round that was measured", result.Points)
	}
}

func TestCancelledTrialStopsItsServer(t *testing.T) {
	for _, stage := range []runners.Stage{runners.Preparing, runners.Launching, runners.Loading, runners.Measuring} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			observer := &recorder{onStage: func(entered runners.Stage) {
				if entered == stage {
					cancel()
				}
			}}
			result := newHost(t).Run(ctx, fakeJob(t, "--workers=1", "--setsid"), observer)
			if result.Outcome != runners.Interrupted {
				t.Errorf("outcome %s %+v, expected interrupted", result.Outcome, result.Failure)
			}
			wantNothingLeft(t, observer)
		})
	}
}

func TestNothingStartsThatIsNotOnRecord(t *testing.T) {
	observer := &recorder{refuse: errStore}
	marker := filepath.Join(t.TempDir(), "started")
	job := fakeJob(t)
	job.Args = []string{"touch", marker, "--port=${port}"}
	result := newHost(t).Run(t.Context(), job, observer)
	wantFailure(t, result, runners.Failed, runners.ClassEnvironment, "launch_not_recorded")
	if _, err := os.Stat(marker); err == nil {
		t.Error("the server was started although the launch is not on record")
	}
	wantNothingLeft(t, observer)
}

func TestSecretsAreNotInTheMessage(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hf_abcdefgh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := fakeJob(t, "--port-after=1m", "--die-after=10ms", "--say=RepositoryNotFoundError with token hf_abcdefgh")
	job.Secrets = []runners.Secret{{Name: "HF_TOKEN", FromFile: token}}
	result := newHost(t).Run(t.Context(), job, &recorder{})
	wantFailure(t, result, runners.Failed, runners.ClassEnvironment, "model_not_found")
	if strings.Contains(result.Failure.Message, "hf_abcdefgh") || !strings.Contains(result.Failure.Message, "token ***") {
		t.Errorf("message %q", result.Failure.Message)
	}
}

func TestAutomaticRoundsStopWhenPrecise(t *testing.T) {
	job := fakeJob(t)
	job.Workload.Rounds = runners.Rounds{Min: 3, Max: 9, Precision: 1e9, Metric: "output_throughput"}
	observer := &recorder{}
	wantComplete(t, newHost(t).Run(t.Context(), job, observer))
	if len(observer.rounds) != 3 {
		t.Errorf("%d rounds, expected the least, 3: any spread is precise enough", len(observer.rounds))
	}
	job = fakeJob(t)
	job.Workload.Rounds = runners.Rounds{Min: 1, Max: 4, Precision: 0, Metric: "output_throughput"}
	observer = &recorder{}
	wantComplete(t, newHost(t).Run(t.Context(), job, observer))
	if len(observer.rounds) != 4 {
		t.Errorf("%d rounds, expected the most, 4: nothing is precise enough", len(observer.rounds))
	}
}
