package local_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"nocturne/runners"
	"nocturne/runners/runnertest"
)

func TestTrialFromLaunchToStop(t *testing.T) {
	job := runnertest.ServerJob(t, "--workers=2", "--say=[2026-08-20 01:02:03] Load weight begin. avail mem=138.10 GB",
		"--say=Loading safetensors checkpoint shards:  42% Completed | 69/163 [05:11<07:02,  4.50s/it]",
		"--say=The server is fired up and ready to roll!",
		"--say=node:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0")
	job.Env = map[string]string{"NCCL_PROTO": "LL", "FOO": "${trial_dir}/x"}
	job.Prove = []string{"NCCL_PROTO", "NCCL_ALGO"}
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	runnertest.WantComplete(t, result)
	runnertest.WantNothingLeft(t, observer)

	want := []runners.Stage{runners.Preparing, runners.Launching, runners.Loading, runners.Verifying, runners.Warming, runners.Measuring, runners.Stopping}
	if !slices.Equal(observer.Stages, want) {
		t.Errorf("stages %v, expected %v", observer.Stages, want)
	}
	if !slices.Contains(observer.Phases, runners.Phase{Name: "weights", Percent: 42}) {
		t.Errorf("phases %v lack 42 %% of the weights", observer.Phases)
	}
	if len(observer.Rounds) != 2 || observer.Rounds[1].Number != 2 {
		t.Errorf("rounds %+v, expected two", observer.Rounds)
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
	if launch := observer.Launches[0]; launch.Host != "local" || launch.LogPath != result.LogPath || !strings.HasPrefix(launch.Address, "127.0.0.1:") {
		t.Errorf("launch on record: %+v", launch)
	}
}

func TestSecretsAreNotInTheMessage(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hf_abcdefgh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := runnertest.ServerJob(t, "--port-after=1m", "--die-after=10ms", "--say=RepositoryNotFoundError with token hf_abcdefgh")
	job.Secrets = []runners.Secret{{Name: "HF_TOKEN", FromFile: token}}
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassEnvironment, "model_not_found")
	if strings.Contains(result.Failure.Message, "hf_abcdefgh") || !strings.Contains(result.Failure.Message, "token ***") {
		t.Errorf("message %q", result.Failure.Message)
	}
}

func TestAutomaticRoundsStopWhenPrecise(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t)
	job.Workload.Rounds = runners.Rounds{Min: 3, Max: 9, Precision: 1e9, Metric: "output_throughput"}
	observer := &runnertest.Recorder{}
	runnertest.WantComplete(t, newHost(t).Run(t.Context(), job, observer))
	if len(observer.Rounds) != 3 {
		t.Errorf("%d rounds, expected the least, 3: any spread is precise enough", len(observer.Rounds))
	}
	job = runnertest.ServerJob(t)
	job.Workload.Rounds = runners.Rounds{Min: 1, Max: 4, Precision: 0, Metric: "output_throughput"}
	observer = &runnertest.Recorder{}
	runnertest.WantComplete(t, newHost(t).Run(t.Context(), job, observer))
	if len(observer.Rounds) != 4 {
		t.Errorf("%d rounds, expected the most, 4: nothing is precise enough", len(observer.Rounds))
	}
}

// A server of which nothing is known may have no health page; then the list of
// its models has to do, and the completion after it.
func TestCustomServerWithoutHealthPage(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--no-health", "--models-after=300ms")
	job.Kind = "custom"
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if result.Loading < 200*time.Millisecond {
		t.Errorf("loading took %s, expected to wait for the models", result.Loading)
	}
	if got := result.Effective["cache_flush"]; got != "not available" {
		t.Errorf("cache flush %q", got)
	}
}

// What a server prints must not spoil the record: no zero bytes, no broken
// UTF-8, no lines without end.
func TestMessageIsFitForTheRecord(t *testing.T) {
	long := strings.Repeat("x", 5000)
	job := runnertest.ServerJob(t, "--port-after=1m", "--die-after=10ms", "--say-raw=KeyError: '\\xff\\x00"+long+"'")
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassInfeasible, "model_mismatch")
	m := result.Failure.Message
	if !utf8.ValidString(m) || strings.Contains(m, "\x00") || len(m) > 3000 {
		t.Errorf("message of %d bytes: %q", len(m), m[:min(len(m), 200)])
	}
}
