package local_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/runnertest"
)

// F10: a setting that NCCL does not have for every collective is the
// configuration's fault, not worth another attempt, and stays with its own
// trial: the next one starts from a clean environment.
func TestF10_UnsupportedSettingIsInfeasible(t *testing.T) {
	t.Parallel()
	const line = "--say=Error : no algorithm/protocol available for function AllGather with datatype ncclInt8. NCCL_ALGO was set to NVLS."
	host := newHost(t)
	job := runnertest.ServerJob(t, "--port-after=1m", "--die-after=10ms", line)
	job.Env, job.Prove = map[string]string{"NCCL_ALGO": "NVLS"}, []string{"NCCL_ALGO"}
	result := host.Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassInfeasible, "unsupported_setting")
	if result.Failure.Retries != 0 {
		t.Errorf("%d retries, expected none", result.Failure.Retries)
	}

	next := runnertest.ServerJob(t)
	next.Prove = []string{"NCCL_ALGO"}
	result = host.Run(t.Context(), next, &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if proof := result.Proof[0]; proof.Status != runners.ProofApplied || proof.Observed != nil {
		t.Errorf("NCCL_ALGO of the next trial: %+v, expected absent", proof)
	}

	// The same words where the trial sets nothing blame the host.
	result = host.Run(t.Context(), runnertest.ServerJob(t, "--port-after=1m", "--die-after=10ms", line), &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassEnvironment, "unsupported_setting")
}

// F13: the class decides what follows. Memory, a bad argument and an
// unsupported setting are learned; a port clash is tried again and taught to
// nobody; an unknown crash counts the second time.
func TestF13_ClassDecidesWhetherATrialIsTriedAgain(t *testing.T) {
	tests := []struct {
		line    string
		class   runners.Class
		retries int
		then    runners.Class
	}{
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", runners.ClassInfeasible, 0, runners.ClassInfeasible},
		{"launch_server.py: error: unrecognized arguments: --spec-steps 3", runners.ClassInfeasible, 0, runners.ClassInfeasible},
		{"[Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use", runners.ClassTransient, 2, runners.ClassTransient},
		{"OSError: [Errno 28] No space left on device", runners.ClassEnvironment, 0, runners.ClassEnvironment},
		{"RuntimeError: CUDA driver version is insufficient for CUDA runtime version", runners.ClassEnvironment, 0, runners.ClassEnvironment},
		{"CUDA error: an illegal memory access was encountered", runners.ClassTransient, 1, runners.ClassInfeasible},
		{"nothing that anyone knows", runners.ClassTransient, 1, runners.ClassInfeasible},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			t.Parallel()
			result := newHost(t).Run(t.Context(), runnertest.ServerJob(t, "--port-after=1m", "--die-after=10ms", "--say="+test.line), &runnertest.Recorder{})
			if f := result.Failure; f == nil || f.Class != test.class || f.Retries != test.retries || f.Then != test.then {
				t.Errorf("%+v, expected %s, %d retries, then %s", f, test.class, test.retries, test.then)
			}
		})
	}
}

// F15: workers without the variable that the trial sets. Nothing is measured as
// if the setting had been in force, and the message names process and variable.
func TestF15_WorkersWithoutTheVariableMakeTheTrialInvalid(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--workers=2", "--scrub")
	job.Env, job.Prove = map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_PROTO"}
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	runnertest.WantFailure(t, result, runners.Invalid, runners.ClassInfeasible, "env_not_applied")
	if m := result.Failure.Message; !strings.Contains(m, "NCCL_PROTO is absent") || !strings.Contains(m, "fake-worker") || !strings.Contains(m, "pid ") {
		t.Errorf("message %q names neither process nor variable", m)
	}
	if len(result.Points) != 0 || len(observer.Rounds) != 0 {
		t.Errorf("a round was measured: %+v", result.Points)
	}
	if proof := result.Proof[0]; proof.Status != runners.ProofMismatch || proof.Observed != nil || *proof.Requested != "LL" {
		t.Errorf("proof %+v", proof)
	}
	runnertest.WantNothingLeft(t, observer)
}

// F16: the model list answers early, health later, the first completion is slow.
// Ready is health, model and one completion; all three are waited for.
func TestF16_ReadyMeansHealthModelAndCompletion(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--port-after=100ms", "--models-after=150ms", "--health-after=600ms", "--first-completion=1s")
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if result.Loading < 500*time.Millisecond {
		t.Errorf("loading took %s, expected about 0.6 s: until health", result.Loading)
	}
	if result.Verifying < time.Second {
		t.Errorf("verifying took %s, expected the second of the first completion", result.Verifying)
	}
	if e2el := result.Points[0].Metrics["p99_e2el_ms"]; e2el > 900 {
		t.Errorf("the slow first completion is in the numbers: p99 %v ms", e2el)
	}
}

// F18: children in sessions of their own that ignore the terminate signal are
// gone when Run returns.
func TestF18_NoOrphanSurvivesTheStop(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--workers=2", "--setsid", "--ignore-term")
	job.Timeouts.Stopping = 200 * time.Millisecond
	observer := &runnertest.Recorder{}
	runnertest.WantComplete(t, newHost(t).Run(t.Context(), job, observer))
	runnertest.WantNothingLeft(t, observer)
}

// F18: GPU memory is waited for, and a host that does not give it back is dirty.
func TestF18_GPUMemoryIsWaitedFor(t *testing.T) {
	t.Parallel()
	readings := func(after ...int64) func(*local.Options) {
		var calls atomic.Int64
		return func(o *local.Options) {
			o.GPURelease = 1500 * time.Millisecond
			o.GPUMemory = func(context.Context) ([]int64, error) {
				call := int(calls.Add(1)) - 1
				return []int64{300, after[min(call, len(after)-1)]}, nil
			}
		}
	}
	t.Run("released after a while", func(t *testing.T) {
		t.Parallel()
		result := newHost(t, readings(500, 70000, 700)).Run(t.Context(), runnertest.ServerJob(t), &runnertest.Recorder{})
		runnertest.WantComplete(t, result)
		if got := result.Effective["gpu_memory_before_mib"]; got != "300 500" {
			t.Errorf("memory before the launch on record: %q", got)
		}
	})
	t.Run("never released", func(t *testing.T) {
		t.Parallel()
		result := newHost(t, readings(500, 70000)).Run(t.Context(), runnertest.ServerJob(t), &runnertest.Recorder{})
		runnertest.WantFailure(t, result, runners.Failed, runners.ClassEnvironment, "host_dirty")
		if !strings.Contains(result.Failure.Message, "GPU 1 uses 70000 MiB") {
			t.Errorf("message %q", result.Failure.Message)
		}
	})
	t.Run("another GPU than the job's", func(t *testing.T) {
		t.Parallel()
		job := runnertest.ServerJob(t)
		job.GPUs = runners.GPUSelection{Indices: []int{0}}
		runnertest.WantComplete(t, newHost(t, readings(500, 70000)).Run(t.Context(), job, &runnertest.Recorder{}))
	})
	t.Run("out of memory on a GPU that was not clean", func(t *testing.T) {
		t.Parallel()
		job := runnertest.ServerJob(t, "--port-after=1m", "--die-after=10ms", "--say=CUDA out of memory")
		result := newHost(t, readings(8192)).Run(t.Context(), job, &runnertest.Recorder{})
		runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "out_of_memory")
	})
}

// F19, first case: the limit is smaller than the load. The message says how far
// it was, and the configuration is not blamed.
func TestF19_LimitSmallerThanTheLoad(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--port-after=1m", "--every=20ms",
		"--say-later=Loading safetensors checkpoint shards:  71% Completed | 116/163 [05:11<07:02,  4.50s/it]",
		"--say-later=Loading safetensors checkpoint shards:  83% Completed | 135/163 [05:11<07:02,  4.50s/it]")
	job.Timeouts.Loading, job.Timeouts.Stalled = 2*time.Second, 1900*time.Millisecond
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "loading_timeout")
	if result.Failure.Then != runners.ClassTransient || !strings.Contains(result.Failure.Message, "weights 83 %") {
		t.Errorf("%+v", result.Failure)
	}
}

// F19, second case: silence after the set-up of a communicator.
func TestF19_StalledInCollectiveInit(t *testing.T) {
	t.Parallel()
	const lastLine = "--say=node:4242:4300 [0] NCCL INFO ncclCommInitRankConfig comm 0x7f10 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9ab - Init START"
	tests := []struct {
		name   string
		env    map[string]string
		flags  []string
		class  runners.Class
		reason string
	}{
		{"behind a transport knob", map[string]string{"NCCL_P2P_LEVEL": "SYS"}, []string{lastLine}, runners.ClassInfeasible, "stalled_collective_init"},
		{"spinning behind a transport knob", map[string]string{"NCCL_P2P_LEVEL": "SYS"}, []string{lastLine, "--spin"}, runners.ClassInfeasible, "stalled_collective_init"},
		{"behind another knob", map[string]string{"NCCL_BUFFSIZE": "4194304"}, []string{lastLine}, runners.ClassTransient, "stalled_collective_init"},
		{"elsewhere", nil, []string{"--say=Load weight begin. avail mem=138.10 GB"}, runners.ClassTransient, "stalled"},
		{"without a word", nil, nil, runners.ClassTransient, "stalled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := runnertest.ServerJob(t, append(test.flags, "--port-after=1m")...)
			job.Timeouts.Stalled = 1500 * time.Millisecond
			job.Env = test.env
			for name := range test.env {
				job.Prove = append(job.Prove, name)
			}
			result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
			runnertest.WantFailure(t, result, runners.Failed, test.class, test.reason)
			if result.Loading < job.Timeouts.Stalled {
				t.Errorf("given up after %s, expected to wait for %s", result.Loading, job.Timeouts.Stalled)
			}
		})
	}
}

// F19: a server that computes in silence, as a kernel compiler does, is given
// more time than one that does nothing.
func TestF19_ComputingStretchesTheStallLimit(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--spin", "--port-after=2500ms")
	job.Timeouts.Stalled = 1500 * time.Millisecond
	runnertest.WantComplete(t, newHost(t).Run(t.Context(), job, &runnertest.Recorder{}))
}

// F19, third case: a server that ends is seen to end at once.
func TestF19_DeathIsSeenAtOnce(t *testing.T) {
	job := runnertest.ServerJob(t, "--port-after=1m", "--die-after=100ms", "--exit=1")
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "exited_early")
	if result.Loading > job.Timeouts.Loading/4 {
		t.Errorf("seen after %s, expected about 0.1 s", result.Loading)
	}
}

// F19: the limit inside vLLM is raised above ours.
func TestF19_LimitOfTheServerIsAboveOurs(t *testing.T) {
	job := runnertest.ServerJob(t, "--say-env=VLLM_ENGINE_READY_TIMEOUT_S", "--say-env=SPT_NOENV")
	job.Kind = "vllm"
	job.Timeouts.Loading = 45 * time.Minute
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	log, err := os.ReadFile(result.LogPath)
	if err != nil || !strings.Contains(string(log), "VLLM_ENGINE_READY_TIMEOUT_S=3300\nSPT_NOENV=1\n") {
		t.Errorf("environment of the server: %q, %v; expected 45 min and a margin", log, err)
	}
}

// F21: the server is told a literal address and is reached at just that one;
// one that listens on the other loopback address only is reached there. Which
// one it was is on record.
func TestF21_LiteralAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		flags   []string
		planned string
		warns   bool
	}{
		{"as told", nil, "127.0.0.1:", false},
		{"IPv6 by its own wish", []string{"--host=::1"}, "[::1]:", false},
		{"IPv6 although told otherwise", []string{"--listen=::1"}, "127.0.0.1:", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			observer := &runnertest.Recorder{}
			result := newHost(t).Run(t.Context(), runnertest.ServerJob(t, test.flags...), observer)
			runnertest.WantComplete(t, result)
			if address := observer.Launches[0].Address; !strings.HasPrefix(address, test.planned) {
				t.Errorf("address on record %q, expected %s", address, test.planned)
			}
			if warned := strings.Contains(strings.Join(result.Warnings, " "), "listens on [::1]:"); warned != test.warns {
				t.Errorf("warnings %q", result.Warnings)
			}
			if connect := result.Points[0].Metrics["p99_connect_ms"]; connect > 1000 {
				t.Errorf("a connection took %v ms: another address was tried first", connect)
			}
		})
	}
}

// F27: requests that fail are counted, and too many of them fail the trial.
// Short answers make it invalid. What was measured stays as a diagnostic.
func TestF27_FailedRequestsAndShortAnswers(t *testing.T) {
	t.Parallel()
	t.Run("short answers", func(t *testing.T) {
		t.Parallel()
		result := newHost(t).Run(t.Context(), runnertest.ServerJob(t, "--short"), &runnertest.Recorder{})
		runnertest.WantFailure(t, result, runners.Invalid, runners.ClassTransient, "length")
		if len(result.Points) != 1 || result.Points[0].Metrics["output_length_ratio"] != 0.75 {
			t.Errorf("points %+v, expected the length ratio 0.75 as a diagnostic", result.Points)
		}
	})
	t.Run("failed requests", func(t *testing.T) {
		t.Parallel()
		result := newHost(t).Run(t.Context(), runnertest.ServerJob(t, "--fail-from=3"), &runnertest.Recorder{})
		runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "requests_failed")
		if len(result.Points) != 1 || result.Points[0].Metrics["failed"] != 4 {
			t.Errorf("points %+v, expected 4 failed requests as a diagnostic", result.Points)
		}
		if !strings.Contains(result.Failure.Message, "4 of 4 requests failed") {
			t.Errorf("message %q", result.Failure.Message)
		}
	})
}
