package nccl_test

import (
	"strings"
	"testing"

	"nocturne/nccl"
)

func TestDiagnose(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		text, reason string
		class        nccl.Class
	}{
		{"h:1:2 [0] enqueue.cc:2046 NCCL WARN Error : no algorithm/protocol available for function Broadcast with datatype ncclInt8. NCCL_ALGO was set to Tree.", "unsupported_setting", nccl.ClassInfeasible},
		{"No algorithm/protocol nor symKernelId available for function AllGather", "unsupported_setting", nccl.ClassInfeasible},
		{`[2026-01-31 02:03:04] h:1:2 [0] graph/tuning.cc:101 NCCL WARN Unrecognized element token "bogus" when parsing "bogus"`, "invalid_setting", nccl.ClassInfeasible},
		{`NCCL WARN Unrecognized prefix token "x" when parsing "x:ring"`, "invalid_setting", nccl.ClassInfeasible},
		{`NCCL WARN All entries except the first must have a prefix: "ring;tree"`, "invalid_setting", nccl.ClassInfeasible},
		{"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60", "duplicate_gpu", nccl.ClassEnvironment},
		{"Multiple Ranks are using the same GPU/Partition", "duplicate_gpu", nccl.ClassEnvironment},
		{"Mismatched NCCL version detected : rank 0 version 22703", "mixed_nccl", nccl.ClassEnvironment},
		{"No transport found for rank 0[1000] -> rank 1[2000]", "no_transport", nccl.ClassInfeasible},
		{"P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case", "nvlink_p2p_off", nccl.ClassEnvironment},
		{"failed to peer with device 1(=2000): 217 peer access is not supported", "ipc_refused", nccl.ClassEnvironment},
		{"cudaIpcOpenMemHandle failed : invalid device context", "ipc_refused", nccl.ClassEnvironment},
		{"Cuda failure 'out of memory'", "gpu_memory", nccl.ClassInfeasible},
		{"Cuda failure 2 'out of memory'", "gpu_memory", nccl.ClassInfeasible},
		{"Cuda failure 800 'operation not permitted'", "fabric_permission", nccl.ClassEnvironment},
		{"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'.", "nvls_bind", nccl.ClassEnvironment},
		{"Error: failed to extend /dev/shm/nccl-AbC123 to 33030528 bytes", "shm_too_small", nccl.ClassEnvironment},
		{"Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)", "shm_refused", nccl.ClassEnvironment},
		{"Could not map /dev/shm/nccl-x size 1, error: Bus error", "shm_refused", nccl.ClassEnvironment},
		{"cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation", "cumem_host_fallback", nccl.ClassNotice},
		{"NVLS: error 2. Proceeding without NVLS support.", "nvls_fallback", nccl.ClassNotice},
		{"NET/IB : Got completion from peer 10.0.0.2<1> with error 12, opcode 0, len 0, vendor err 129", "ib_completion", nccl.ClassTransient},
		{"NET/IB: Got completion from peer 10.0.0.2<1> with status=5 opcode=0", "ib_completion", nccl.ClassTransient},
		{"socketStartConnect: connect to 10.0.0.2<1> returned Connection refused, exceeded error retry count after 35 attempts", "peer_not_up", nccl.ClassTransient},
		{"NET/Socket : no interface found", "no_interface", nccl.ClassEnvironment},
		{"Bootstrap : no socket interface found", "no_interface", nccl.ClassEnvironment},
		{"[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600019 milliseconds", "collective_timeout", nccl.ClassTransient},
		{"No available shared memory broadcast block found in 60 second.", "worker_wait", nccl.ClassNotice},
		{"socketProgress: Connection closed by remote peer node-a<1>", "peer_died", nccl.ClassTransient},
		{"remote process exited or there was a network error", "peer_died", nccl.ClassTransient},
		{"unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "cuda_error", nccl.ClassUnclear},
		{"unhandled system error (run with NCCL_DEBUG=INFO for details)", "system_error", nccl.ClassUnclear},
		{"internal error - please report this issue to the NCCL developers", "internal_error", nccl.ClassInfeasible},
		{"NCCL error in: x.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9", "invalid_usage", nccl.ClassInfeasible},
		{"invalid argument (run with NCCL_DEBUG=WARN for details)", "invalid_usage", nccl.ClassInfeasible},
	} {
		failure, ok := nccl.Diagnose(c.text)
		if !ok || failure.Reason != c.reason || failure.Class != c.class || failure.Cause == "" || failure.Message == "" {
			t.Errorf("%q: %+v, %v; want %s, %s", c.text, failure, ok, c.reason, c.class)
		}
		seen[c.reason] = true
	}
	for _, p := range nccl.FailurePatterns() {
		if !seen[p.Reason] {
			t.Errorf("pattern %s is not shown by any line", p.Reason)
		}
	}
	for _, text := range []string{"", "INFO Application startup complete.", "h:1:2 [0] NCCL INFO Connected all rings", "out of memory", "remote peer"} {
		if failure, ok := nccl.Diagnose(text); ok {
			t.Errorf("%q is taken for %s", text, failure.Reason)
		}
	}
}

func TestF10_UnsupportedSettingIsInfeasible(t *testing.T) {
	facts := factsOf([]string{
		"h:1:2 [0] NCCL INFO NCCL_ALGO set by environment to NVLS",
		"[2026-01-31 02:03:04] h:1:2 [0] enqueue.cc:1 NCCL WARN Error : no algorithm/protocol available for function Broadcast with datatype ncclInt8",
		"torch.distributed.DistBackendError: NCCL error in: x.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9",
	})
	failure, ok := facts.Failure()
	if !ok || failure.Reason != "unsupported_setting" || failure.ClassFor(settings{"NCCL_ALGO": "NVLS"}) != nccl.ClassInfeasible {
		t.Errorf("%+v", failure)
	}
	if !strings.HasPrefix(failure.Message, "Error : no algorithm/protocol available") {
		t.Errorf("message %q is not NCCL's own text", failure.Message)
	}
}

func TestFailureOfItsCause(t *testing.T) {
	// The first message names the peer, a later one the cause.
	facts := factsOf([]string{
		"h:1:2 [0] NCCL WARN socketProgress: Connection closed by remote peer node-a<1>",
		"h:1:2 [0] NCCL WARN Cuda failure 2 'out of memory'",
	})
	if failure, _ := facts.Failure(); failure.Reason != "gpu_memory" {
		t.Errorf("the cause is %s", failure.Reason)
	}
	alone := factsOf([]string{"Connection closed by remote peer node-a<1>"})
	if failure, ok := alone.Failure(); !ok || failure.Reason != "peer_died" {
		t.Errorf("with no other, the consequence stands: %+v", failure)
	}
	if _, ok := (&nccl.Facts{}).Failure(); ok {
		t.Error("nothing failed yet")
	}
}

func TestClassFollowsTheKnob(t *testing.T) {
	nvls, _ := nccl.Diagnose("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 1")
	if nvls.ClassFor(settings{"NCCL_NVLS_ENABLE": "1"}) != nccl.ClassInfeasible || nvls.ClassFor(nil) != nccl.ClassEnvironment {
		t.Error("a failed NVLS allocation is the knob's fault only when there is one")
	}
	hang, _ := nccl.Diagnose("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=1) ran for 2 milliseconds")
	if hang.ClassFor(settings{"NCCL_P2P_LEVEL": "SYS"}) != nccl.ClassInfeasible || hang.ClassFor(settings{"NCCL_PROTO": "LL"}) != nccl.ClassTransient {
		t.Error("a hang is the configuration's fault when it follows a transport knob")
	}
}

func TestFactsStayBounded(t *testing.T) {
	facts := &nccl.Facts{}
	long := strings.Repeat("x", 100_000)
	for i := range 3_000 {
		host := "h" + strings.Repeat("a", i%97) + string(rune('a'+i%26)) + ":" + strings.Repeat("1", 1+i%9) + ":2 [0] NCCL "
		facts.Add(host + "WARN " + long[:i%50] + " warning")
		facts.Add(host + "INFO Channel 00/0 : 0[0] -> 1[1] via NET/" + long[:i%5000])
		facts.Add(host + "INFO NCCL_X" + strings.Repeat("Y", i%5000) + " set by environment to " + long[:i%300])
	}
	if len(facts.Warnings) > 200 || len(facts.Transports) > 4096 || len(facts.Communicators) > 4096 {
		t.Errorf("%d warnings, %d transports, %d communicators", len(facts.Warnings), len(facts.Transports), len(facts.Communicators))
	}
	if failure, ok := nccl.Diagnose("Duplicate GPU detected " + long); !ok || len(failure.Message) > 600 {
		t.Errorf("a long message is kept whole: %d bytes", len(failure.Message))
	}
}
