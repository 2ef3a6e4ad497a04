package local_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/runnertest"
)

func proofOf(t testing.TB, result runners.Result, knob string) runners.Proof {
	t.Helper()
	i := slices.IndexFunc(result.Proof, func(proof runners.Proof) bool { return proof.Knob == knob })
	if i < 0 {
		t.Fatalf("no proof of %s among %+v", knob, result.Proof)
	}
	return result.Proof[i]
}

func text(value *string) string {
	if value == nil {
		return "absent"
	}
	return *value
}

// F15: what can be said of a variable, by what the processes and NCCL's log show.
func TestF15_HowFarAVariableIsProved(t *testing.T) {
	t.Parallel()
	const (
		confirms = "--say=node:1:2 [0] NCCL INFO NCCL_PROTO set by environment to LL"
		denies   = "--say=node:1:2 [0] NCCL INFO NCCL_PROTO set by environment to Simple"
		another  = "--say=node:1:2 [0] NCCL INFO NCCL_DEBUG set by environment to INFO"
		extra    = "--say=node:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring"
	)
	tests := []struct {
		name             string
		flags            []string
		knob             string
		status           runners.ProofStatus
		observed, detail string
		evidence         runners.Evidence
	}{
		{"in every process", nil, "NCCL_PROTO", runners.ProofApplied, "LL", "in the environment of 3 processes", runners.EvidenceEnvironment},
		{"absent everywhere", nil, "NCCL_ALGO", runners.ProofApplied, "absent", "3 processes", runners.EvidenceEnvironment},
		{"read by NCCL", []string{confirms}, "NCCL_PROTO", runners.ProofApplied, "LL", "NCCL's log", runners.EvidenceNCCL},
		// The front process shows it; the workers, which count, hide behind titles.
		{"behind titles", []string{"--clobber"}, "NCCL_PROTO", runners.ProofUnknown, "LL", "SPT_NOENV=1", runners.EvidenceEnvironment},
		{"behind titles but read by NCCL", []string{"--clobber", confirms}, "NCCL_PROTO", runners.ProofApplied, "LL", "NCCL's log", runners.EvidenceNCCL},
		{"not among those that NCCL read", []string{another}, "NCCL_PROTO", runners.ProofUnknown, "LL", "not among them", runners.EvidenceEnvironment},
		{"missing from the workers", []string{"--scrub"}, "NCCL_PROTO", runners.ProofMismatch, "absent", "NCCL_PROTO is absent", runners.EvidenceEnvironment},
		{"missing from a compiler", []string{"--scrub", "--worker-name=/usr/local/cuda/bin/ptxas"}, "NCCL_PROTO", runners.ProofApplied, "LL", "of 1 processes", runners.EvidenceEnvironment},
		{"read otherwise", []string{denies}, "NCCL_PROTO", runners.ProofMismatch, "Simple", `read "Simple"`, runners.EvidenceNCCL},
		{"read although absent", []string{extra}, "NCCL_ALGO", runners.ProofMismatch, "Ring", `read "Ring"`, runners.EvidenceNCCL},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := runnertest.ServerJob(t, append(test.flags, "--workers=2")...)
			job.Env, job.Prove = map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_PROTO", "NCCL_ALGO"}
			result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
			proof := proofOf(t, result, test.knob)
			if proof.Status != test.status || text(proof.Observed) != test.observed || proof.Evidence != test.evidence || !strings.Contains(proof.Detail, test.detail) {
				t.Errorf("%s is %s, %s, %q (%s); expected %s, %s, %q (%s)", test.knob, proof.Status, text(proof.Observed), proof.Detail, proof.Evidence,
					test.status, test.observed, test.detail, test.evidence)
			}
			if test.status == runners.ProofMismatch {
				runnertest.WantFailure(t, result, runners.Invalid, runners.ClassInfeasible, "env_not_applied")
				if len(result.Points) != 0 {
					t.Errorf("measured all the same: %+v", result.Points)
				}
				return
			}
			runnertest.WantComplete(t, result)
		})
	}
}

// F22: that small all-reduces go past NCCL stands in the log; it is on record for
// those who look why NCCL's settings change nothing, and told where they are
// tuned.
func TestF22_EvidenceThatNCCLIsBypassed(t *testing.T) {
	for knob, told := range map[string]bool{"NCCL_PROTO": true, "VLLM_LOGGING_LEVEL": false} {
		t.Run(knob, func(t *testing.T) {
			t.Parallel()
			job := runnertest.ServerJob(t,
				"--say=(Worker pid=42) INFO 06-14 04:57:12 [cuda_communicator.py:245] Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0' out of potential backends: ['CUSTOM', 'SYMM_MEM', 'PYNCCL'].",
				"--say=(Worker_TP0 pid=42) INFO 06-14 04:58:12 [custom_all_reduce.py:216] Registering 5535 cuda graph addresses")
			job.Kind = "vllm"
			job.Env, job.Prove = map[string]string{knob: "LL"}, []string{knob}
			result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
			runnertest.WantComplete(t, result)
			if got := result.Effective["all_reduce_backends"] + " " + result.Effective["custom_all_reduce_addresses"]; got != "'CUSTOM', 'PYNCCL' 5535" {
				t.Errorf("on record: %q", got)
			}
			if warned := strings.Contains(strings.Join(result.Warnings, "\n"), "Registering 5535"); warned != told {
				t.Errorf("warnings %q", result.Warnings)
			}
		})
	}
}

// What the server tells of itself decides about arguments: speculation and knobs
// must be as asked, others are remarks.
func TestArgumentsAreReadBack(t *testing.T) {
	t.Parallel()
	const (
		info   = `{"version":"0.5.18","internal_states":[{"speculative_algorithm":"EAGLE3","speculative_num_steps":3,"speculative_eagle_topk":1,"speculative_num_draft_tokens":%d,"speculative_draft_model_path":"/d","chunked_prefill_size":%d}]}`
		bare   = `{"version":"0.5.18","internal_states":[{}]}`
		tokens = "--speculative-num-draft-tokens"
	)
	eagle := []string{"--speculative-algorithm=EAGLE3", "--speculative-draft-model-path=/d", "--speculative-num-steps=3", "--speculative-eagle-topk=1", tokens + "=4", "--max-running-requests=8"}
	tests := []struct {
		name    string
		info    string
		args    []string
		prove   []string
		knob    string
		status  runners.ProofStatus
		detail  string
		warning string
	}{
		{name: "as asked", info: fmt.Sprintf(info, 4, 8192), args: eagle, knob: tokens, status: runners.ProofApplied, detail: "tells it back"},
		{name: "speculation otherwise", info: fmt.Sprintf(info, 8, 8192), args: eagle, knob: tokens, status: runners.ProofMismatch, detail: "is 8 instead of 4; with topk 1"},
		{name: "speculation that nobody asked for", info: fmt.Sprintf(info, 4, 8192), knob: "--speculative-algorithm", status: runners.ProofMismatch, detail: "EAGLE3 instead of absent"},
		{name: "not told", info: bare, args: eagle, knob: tokens, status: runners.ProofUnknown, detail: "does not tell"},
		{name: "a knob otherwise", info: fmt.Sprintf(info, 4, 4096), args: append(eagle, "--chunked-prefill-size=8192"), prove: []string{"--chunked-prefill-size"},
			knob: "--chunked-prefill-size", status: runners.ProofMismatch, detail: "is 4096 instead of 8192"},
		{name: "no knob otherwise", info: fmt.Sprintf(info, 4, 4096), args: append(eagle, "--chunked-prefill-size=8192"),
			knob: tokens, status: runners.ProofApplied, warning: "--chunked-prefill-size is 4096 instead of 8192"},
		{name: "a knob that no page tells", info: bare, args: []string{"--made-up=1"}, prove: []string{"--made-up"}, knob: "--made-up", status: runners.ProofUnknown, detail: "SGLang does not tell it"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := runnertest.ServerJob(t, slices.Concat([]string{"--info=" + test.info, "--"}, test.args)...)
			job.Prove = test.prove
			observer := &runnertest.Recorder{}
			result := newHost(t).Run(t.Context(), job, observer)
			proof := proofOf(t, result, test.knob)
			if proof.Status != test.status || !strings.Contains(proof.Detail, test.detail) {
				t.Errorf("%+v, expected %s, %q", proof, test.status, test.detail)
			}
			if (proof.Evidence == runners.EvidenceServer) != (proof.Status != runners.ProofUnknown) {
				t.Errorf("%s by the evidence %s", proof.Status, proof.Evidence)
			}
			if warnings := strings.Join(result.Warnings, "\n"); !strings.Contains(warnings, test.warning) {
				t.Errorf("warnings %q lack %q", warnings, test.warning)
			}
			if test.status == runners.ProofMismatch {
				runnertest.WantFailure(t, result, runners.Invalid, runners.ClassInfeasible, "not_as_requested")
				if len(observer.Rounds) != 0 {
					t.Error("a round was measured")
				}
				return
			}
			runnertest.WantComplete(t, result)
		})
	}
}

// A server answers although one of its workers is gone.
func TestMissingWorkersFailTheTrial(t *testing.T) {
	t.Parallel()
	const info = `--info={"version":"0.5.9","internal_states":[{}]}`
	for workers, complete := range map[string]bool{"--workers=1": false, "--workers=2": true} {
		t.Run(workers, func(t *testing.T) {
			t.Parallel()
			job := runnertest.ServerJob(t, info, workers, "--worker-name=sglang::scheduler_TP", "--", "--tp-size=2")
			observer := &runnertest.Recorder{}
			result := newHost(t).Run(t.Context(), job, observer)
			if complete {
				runnertest.WantComplete(t, result)
				if got := result.Effective["server_differences"]; got != "S-SPECV1 S-GRAPHFLAGS" {
					t.Errorf("differences of 0.5.9: %q", got)
				}
				return
			}
			runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "workers_missing")
			if !strings.Contains(result.Failure.Message, "1 of 2 worker processes") {
				t.Errorf("message %q", result.Failure.Message)
			}
			runnertest.WantNothingLeft(t, observer)
		})
	}
}

// The first completion is long, unless the model has no room for it.
func TestProbeIsLong(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"--max-output=0": "256", "--max-output=100": "16"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			result := newHost(t).Run(t.Context(), runnertest.ServerJob(t, limit), &runnertest.Recorder{})
			runnertest.WantComplete(t, result)
			if got := result.Effective["probe_tokens"]; got != want {
				t.Errorf("probe of %s tokens, expected %s", got, want)
			}
		})
	}
}

func TestUnevenGPUMemoryIsARemark(t *testing.T) {
	t.Parallel()
	host := newHost(t, gpuMemory(func(int) []int64 { return []int64{20000, 60000} }))
	result := host.Run(t.Context(), runnertest.ServerJob(t), &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if warnings := strings.Join(result.Warnings, "\n"); !strings.Contains(warnings, "from 20000 to 60000 MiB") {
		t.Errorf("warnings %q", warnings)
	}
}

// A hang under load that the log tells of ends the wait long before the round's
// own limit.
func TestHangUnderLoadIsSeenInTheLog(t *testing.T) {
	t.Parallel()
	job := runnertest.ServerJob(t, "--hang-on-request=3", "--every=100ms",
		"--say-later=No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging")
	job.Kind = "vllm"
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "watchdog")
	if spent := result.Warming + result.Measuring; spent > job.Timeouts.Round/4 {
		t.Errorf("seen after %s", spent)
	}
	runnertest.WantNothingLeft(t, observer)
}

func gpuMemory(reading func(call int) []int64) func(*local.Options) {
	return func(o *local.Options) { o.GPUMemory, o.GPURelease = counted(reading), 100*time.Millisecond }
}
