package local_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/runnertest"
)

// simJob launches the simulated server on four GPUs, loading 15 minutes in
// 0.15 s and serving 200 times faster than it plays.
func simJob(t testing.TB, flags ...string) runners.Job {
	t.Helper()
	job := runnertest.ServerJob(t)
	job.Model = "/models/Kimi"
	job.Args = slices.Concat([]string{
		"${nocturne}", "sim", "--model-path=/models/Kimi", "--tp=4", "--port=${port}", "--host=${host}", "--enable-metrics",
		"--max-running-requests=16", "--sim-load-time=15m", "--sim-load-scale=6000", "--sim-serving-scale=200",
	}, flags)
	job.ServingScale = 200
	job.Workload.OutputTokens = 64
	return job
}

func TestSimulatedServer(t *testing.T) {
	t.Parallel()
	job := simJob(t, "--speculative-algorithm=EAGLE3", "--speculative-draft-model-path=/models/head",
		"--speculative-num-steps=2", "--speculative-eagle-topk=1", "--speculative-num-draft-tokens=3")
	job.Env = map[string]string{"NCCL_PROTO": "LL", "NCCL_DEBUG": "INFO"}
	job.Prove = []string{"NCCL_PROTO", "NCCL_CUMEM_ENABLE"}
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	runnertest.WantComplete(t, result)
	runnertest.WantNothingLeft(t, observer)
	if result.Simulated == nil || result.Simulated.Count != 4 || result.Stack.NCCL != result.Simulated.NCCL {
		t.Errorf("simulated %+v, stack %+v", result.Simulated, result.Stack)
	}
	if length := result.Points[0].Metrics["spec_decode_acceptance_length"]; length < 1.2 || length > 3 {
		t.Errorf("acceptance length %v, expected between 1.2 and 3 at 2 steps", length)
	}
	if result.Effective["speculative_num_draft_tokens"] != "3" {
		t.Errorf("effective %v", result.Effective)
	}
	var names []string
	for _, phase := range observer.Phases {
		if len(names) == 0 || names[len(names)-1] != phase.Name {
			names = append(names, phase.Name)
		}
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "distributed weights kv_cache graph_capture weights") {
		t.Errorf("phases %s: expected the draft's weights after the graphs", got)
	}
	for _, proof := range result.Proof {
		if proof.Status != runners.ProofApplied {
			t.Errorf("proof %+v", proof)
		}
	}
	if proof := result.Proof[0]; proof.Knob != "NCCL_CUMEM_ENABLE" || proof.Requested != nil || proof.Observed == nil || *proof.Observed != "0" {
		t.Errorf("NCCL_CUMEM_ENABLE, which SGLang writes itself: %+v", proof)
	}
}

// An open loop sends at its rate, and tells what was good of it.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	job := simJob(t)
	job.Workload.Dataset, job.Workload.PrefixTokens, job.Workload.Prefixes = "shared-prefix", 40, 2
	job.Workload.Requests, job.Workload.Burstiness = 12, 2
	job.Workload.Goodput = runners.Goodput{E2EL: time.Hour}
	job.Workload.Points = []runners.LoadPoint{{RequestRate: 2}, {RequestRate: 4, Concurrency: 8}}
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	for i, point := range job.Workload.Points {
		got := result.Points[i]
		m := got.Metrics
		if got.RequestRate != point.RequestRate || got.Concurrency != point.Concurrency || m["request_rate"] != point.RequestRate || m["completed"] != 24 {
			t.Errorf("point %+v: %+v", point, got)
		}
		if m["request_goodput"] <= 0 || m["request_goodput"] != m["request_throughput"] {
			t.Errorf("goodput %v of %v requests/s, all of which are good", m["request_goodput"], m["request_throughput"])
		}
		if _, told := m["mean_client_queue_time_ms"]; told != (point.Concurrency > 0) {
			t.Errorf("point %+v: a time in the client's queue: %v", point, told)
		}
	}
}

// Each fault of the simulated server ends in its class, with nothing left.
func TestFaultsOfTheSimulatedServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		faults  string
		env     map[string]string
		outcome runners.Outcome
		class   runners.Class
		reason  string
		stage   runners.Stage
	}{
		{"crash-at-start", nil, runners.Failed, runners.ClassInfeasible, "out_of_memory", runners.Loading},
		{"crash-at-start=KeyError: 'model.fc.weight'", nil, runners.Failed, runners.ClassInfeasible, "model_mismatch", runners.Loading},
		{"exit-after=40s", nil, runners.Failed, runners.ClassTransient, "exited_early", runners.Loading},
		{"lost-launch", nil, runners.Failed, runners.ClassTransient, "peer_died", runners.Measuring},
		{"hang-at-init", nil, runners.Failed, runners.ClassTransient, "stalled_collective_init", runners.Loading},
		{"hang-at-init", map[string]string{"NCCL_P2P_LEVEL": "SYS"}, runners.Failed, runners.ClassInfeasible, "stalled_collective_init", runners.Loading},
		{"", map[string]string{"NCCL_ALGO": "Tree"}, runners.Failed, runners.ClassInfeasible, "unsupported_setting", runners.Loading},
		{"", map[string]string{"NCCL_ALGO": "treee"}, runners.Failed, runners.ClassInfeasible, "invalid_setting", runners.Loading},
		{"scrub-env", map[string]string{"NCCL_PROTO": "LL"}, runners.Invalid, runners.ClassInfeasible, "env_not_applied", runners.Verifying},
		{"escape", nil, runners.Complete, "", "", ""},
		{"endless-stop", nil, runners.Complete, "", "", ""},
		{"wrong-model", nil, runners.Failed, runners.ClassEnvironment, "wrong_model", runners.Verifying},
		{"no-usage", nil, runners.Failed, runners.ClassTransient, "no_completion", runners.Verifying},
		{"short-output", nil, runners.Invalid, runners.ClassTransient, "length", runners.Measuring},
		{"http-500=0.5", nil, runners.Failed, runners.ClassTransient, "requests_failed", runners.Measuring},
		{"error-in-stream=0.5", nil, runners.Failed, runners.ClassTransient, "requests_failed", runners.Measuring},
		{"prefix-cache", nil, runners.Invalid, runners.ClassTransient, "prefix_cache", runners.Measuring},
		{"crash-under-load=8", nil, runners.Failed, runners.ClassTransient, "crashed", runners.Measuring},
		{"dead-worker=8", nil, runners.Failed, runners.ClassTransient, "crashed", runners.Measuring},
		{"hang-under-load=8", nil, runners.Failed, runners.ClassTransient, "watchdog", runners.Measuring},
		{"bind-ipv6", nil, runners.Complete, "", "", ""},
		{"ready-early", nil, runners.Complete, "", "", ""},
		{"log-flood=5000", nil, runners.Complete, "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.faults+" "+test.env["NCCL_ALGO"]+test.env["NCCL_P2P_LEVEL"], func(t *testing.T) {
			t.Parallel()
			job := simJob(t, "--sim-faults="+test.faults, "--sim-state="+t.TempDir()+"/state")
			job.Env = map[string]string{"NCCL_DEBUG": "WARN"}
			for name, value := range test.env {
				job.Env[name] = value
				job.Prove = append(job.Prove, name)
			}
			job.Workload.Requests, job.Workload.Warmup = 8, 0
			if strings.HasPrefix(test.faults, "hang-at-init") {
				job.Timeouts.Stalled = 1500 * time.Millisecond
			}
			job.Timeouts.Stopping = 500 * time.Millisecond
			observer := &runnertest.Recorder{}
			result := newHost(t).Run(t.Context(), job, observer)
			runnertest.WantNothingLeft(t, observer)
			if test.outcome == runners.Complete {
				runnertest.WantComplete(t, result)
				return
			}
			runnertest.WantFailure(t, result, test.outcome, test.class, test.reason)
			if result.Failure.Stage != test.stage {
				t.Errorf("stage %s, expected %s", result.Failure.Stage, test.stage)
			}
		})
	}
}

func TestServerThatAsksForAKey(t *testing.T) {
	t.Parallel()
	result := newHost(t).Run(t.Context(), simJob(t, "--api-key=very-secret"), &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
}
