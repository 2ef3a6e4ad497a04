package local_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/runnertest"
)

func counted(reading func(call int) []int64) func(context.Context) ([]int64, error) {
	var calls atomic.Int64
	return func(context.Context) ([]int64, error) { return reading(int(calls.Add(1))), nil }
}

// F19: a server that is silent is getting on while it reads from disk or fills
// GPU memory; one whose memory stays as it is does not.
func TestF19_SignsOfProgressInSilence(t *testing.T) {
	t.Parallel()
	const loads = "--say=Load weight begin. avail mem=138.10 GB"
	full := func(int) []int64 { return []int64{40000, 40000} }
	grows := func(call int) []int64 { return []int64{int64(40000 + 100*call), 40000} }
	falls := func(call int) []int64 { return []int64{int64(max(40000-100*call, 0)), 40000} }
	tests := []struct {
		name   string
		flags  []string
		memory func(int) []int64
		ends   bool
	}{
		{"reading", []string{loads, "--read"}, full, true},
		{"memory grows", []string{loads}, grows, true},
		{"memory stays", []string{loads}, full, false},
		{"memory falls", []string{loads}, falls, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := runnertest.ServerJob(t, append(test.flags, "--port-after=7s")...)
			job.Timeouts.Stalled = 3 * time.Second
			result := newHost(t, gpuMemory(test.memory)).Run(t.Context(), job, &runnertest.Recorder{})
			if test.ends {
				if result.Loading < 6*time.Second {
					t.Fatalf("loading took %s: %+v", result.Loading, result.Failure)
				}
				return // memory that has grown is never given back here
			}
			runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "stalled")
			if m := result.Failure.Message; !strings.Contains(m, "no growth of GPU memory") || !strings.Contains(m, "Load weight begin") {
				t.Errorf("message %q", m)
			}
		})
	}
}

// F19: vLLM's log ends where the ranks should meet.
func TestF19_StalledWhereRanksMeet(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--port-after=1m",
		"--say=(Worker pid=7489) INFO 07-25 13:41:58 [parallel_state.py:1615] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:51789 backend=nccl",
		"--say=(Worker pid=7489) INFO 07-25 13:41:59 [pynccl.py:113] vLLM is using nccl==2.28.9")
	job.Kind = "vllm"
	job.Timeouts.Stalled = time.Second
	job.Env, job.Prove = map[string]string{"NCCL_P2P_DISABLE": "0"}, []string{"NCCL_P2P_DISABLE"}
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassInfeasible, "stalled_collective_init")
}
