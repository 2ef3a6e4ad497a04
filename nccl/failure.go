package nccl

import (
	"regexp"
	"slices"
	"strings"
)

// Class says what a failure means for the configuration that met it.
type Class string

// The classes. Unclear failures are wrappers whose cause stands elsewhere in
// the log; Notice is worth a note and no failure.
const (
	ClassInfeasible  Class = "infeasible"  // the configuration's fault: never try it again
	ClassTransient   Class = "transient"   // try again
	ClassEnvironment Class = "environment" // nothing would work on this host as it is
	ClassUnclear     Class = "unclear"
	ClassNotice      Class = "notice"
)

// FailurePattern is one known text of a failure.
type FailurePattern struct {
	// Reason is a stable code for reports.
	Reason string
	Class  Class
	Cause  string
	// InfeasibleWith names variables: when the configuration sets one of
	// them, it is at fault instead.
	InfeasibleWith []string
	// Consequence: the text follows from a failure that was logged before it,
	// maybe by another rank.
	Consequence bool

	literals   []string // one of them is in every matching line
	expression *regexp.Regexp
}

// transportKnobs decide whether a hang is the configuration's fault.
var transportKnobs = []string{"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_P2P_USE_CUDA_MEMCPY", "NCCL_CUMEM_ENABLE"}

func pattern(reason string, class Class, cause, expression string, literals ...string) FailurePattern {
	return FailurePattern{Reason: reason, Class: class, Cause: cause, literals: literals, expression: regexp.MustCompile(expression)}
}

func (p FailurePattern) infeasibleWith(names ...string) FailurePattern {
	p.InfeasibleWith = names
	return p
}

func (p FailurePattern) consequence() FailurePattern {
	p.Consequence = true
	return p
}

// failurePatterns in the order in which they are tried. Sources: the WARN
// texts of NVIDIA/nccl src/{init,enqueue,transport}.cc, src/graph/{tuning,paths}.cc,
// src/transport/{p2p,shm,nvls,net_ib,net_socket}.cc, src/misc/{socket,shmutils}.cc;
// PyTorch ProcessGroupNCCL.cpp and NCCLUtils.cpp; vLLM shm_broadcast.py.
var failurePatterns = []FailurePattern{
	pattern("unsupported_setting", ClassInfeasible, "NCCL_ALGO and NCCL_PROTO leave a collective without a choice",
		`[Nn]o algorithm/protocol (?:nor symKernelId )?available`, "algorithm/protocol"),
	pattern("invalid_setting", ClassInfeasible, "NCCL_ALGO or NCCL_PROTO cannot be parsed",
		`Unrecognized (?:element|prefix) token|All entries except the first must have a prefix`, "Unrecognized", "All entries except"),
	pattern("duplicate_gpu", ClassEnvironment, "two ranks on one GPU, or on two MIG slices of one",
		`Duplicate GPU detected|Multiple Ranks are using the same GPU/Partition`, "Duplicate GPU", "Multiple Ranks"),
	pattern("mixed_nccl", ClassEnvironment, "ranks load different NCCL libraries",
		`Mismatched NCCL version detected`, "Mismatched NCCL"),
	pattern("no_transport", ClassInfeasible, "direct traffic, shared memory and network are all refused",
		`No transport found for rank`, "No transport found"),
	pattern("nvlink_p2p_off", ClassEnvironment, "NVLink is broken, or a driver setting forbids direct traffic",
		`P2P is disabled between NVLINK connected GPUs`, "NVLINK connected"),
	pattern("ipc_refused", ClassEnvironment, "a container without shared IPC or PID namespace, or mixed visible devices",
		`failed to peer with device|cudaIpcGetMemHandle failed|cudaIpcOpenMemHandle`, "failed to peer", "cudaIpc"),
	pattern("nvls_bind", ClassEnvironment, "Fabric Manager or the NVSwitches are not in order",
		`Failed to bind NVLink SHARP \(NVLS\) Multicast memory`, "NVLink SHARP").infeasibleWith("NCCL_NVLS_ENABLE"),
	pattern("gpu_memory", ClassInfeasible, "the buffers do not fit: lower the memory fraction, channels or buffer size",
		`Cuda failure (?:\d+ )?'?out of memory'?|Cuda failure 2 `, "Cuda failure"),
	pattern("fabric_permission", ClassEnvironment, "fabric handles without permission (IMEX)",
		`Cuda failure 800 .*operation not permitted`, "Cuda failure 800"),
	pattern("shm_too_small", ClassEnvironment, "/dev/shm is too small; containers begin with 64 MiB",
		`Error: failed to extend /dev/shm/nccl-\S+ to \d+ bytes`, "failed to extend"),
	pattern("shm_refused", ClassEnvironment, "/dev/shm is too small, or IPC namespaces differ",
		`Error while (?:creating|attaching to) shared memory segment|Could not map .* size`, "shared memory segment", "Could not map"),
	pattern("cumem_host_fallback", ClassNotice, "cuMem host allocations do not work; /dev/shm is used",
		`cuMem host allocations do not appear to be working; falling back`, "cuMem host allocations"),
	pattern("nvls_fallback", ClassNotice, "NVLS could not be allocated; NCCL goes on without it",
		`Proceeding without NVLS support`, "Proceeding without NVLS"),
	pattern("ib_completion", ClassTransient, "a link, routing or MTU fault on InfiniBand or RoCE; status 5 follows another fault",
		`NET/IB ?: Got completion from peer .* (?:with error |status=)\D*\d+`, "Got completion"),
	pattern("peer_not_up", ClassTransient, "the peer is not up, or a firewall or wrong interface is in between",
		`connect to .* returned .*, exceeded error retry count`, "exceeded error retry count"),
	pattern("no_interface", ClassEnvironment, "the interface filter excludes everything",
		`NET/Socket : no interface found|Bootstrap : no socket interface found`, "interface found"),
	pattern("collective_timeout", ClassTransient, "a hang in a collective: the direct path is broken, or one rank is stuck elsewhere",
		`Watchdog caught collective operation timeout: WorkNCCL\(`, "Watchdog caught").infeasibleWith(transportKnobs...),
	pattern("worker_wait", ClassNotice, "a worker does not answer: normal during long compiles, a hang when it repeats on idle GPUs",
		`No available shared memory broadcast block found in \d+ second`, "shared memory broadcast block"),
	pattern("peer_died", ClassTransient, "another rank died first; its own message has the cause",
		`Connection closed by remote peer|remote process exited or there was a network error`, "remote p").consequence(),
	pattern("cuda_error", ClassUnclear, "a CUDA call failed; the warning before has the cause",
		`unhandled cuda error \(run with NCCL_DEBUG=INFO`, "unhandled cuda").consequence(),
	pattern("system_error", ClassUnclear, "a socket, file or shared memory call failed; the warning before has the cause",
		`unhandled system error \(run with NCCL_DEBUG=INFO`, "unhandled system").consequence(),
	pattern("internal_error", ClassInfeasible, "a bug of NCCL, or calls that differ between ranks",
		`internal error - please report`, "internal error").consequence(),
	pattern("invalid_usage", ClassInfeasible, "a bad setting or a bad call",
		`invalid (?:argument|usage) \(run with NCCL_DEBUG=WARN`, "NCCL_DEBUG=WARN").consequence(),
}

// FailurePatterns returns the table.
func FailurePatterns() []FailurePattern { return slices.Clone(failurePatterns) }

// Failure is a failure seen in a log.
type Failure struct {
	Reason         string
	Class          Class
	Cause          string
	Message        string // the line, or NCCL's part of it
	InfeasibleWith []string
	Consequence    bool
	Count          int // lines with this reason
}

// maxMessage bounds the text that is kept of a line.
const maxMessage = 500

// Diagnose looks for a known failure in one line of output, NCCL's or another
// program's. It also finds notices, which are no failures.
func Diagnose(text string) (Failure, bool) {
	text = text[:min(len(text), maxLine)]
	for i := range failurePatterns {
		p := &failurePatterns[i]
		contains := func(literal string) bool { return strings.Contains(text, literal) }
		if !slices.ContainsFunc(p.literals, contains) || !p.expression.MatchString(text) {
			continue
		}
		message := text
		if line, ok := ParseLine(text); ok {
			message = line.Message
		}
		message = strings.ToValidUTF8(strings.TrimSpace(message), "\uFFFD")
		return Failure{Reason: p.Reason, Class: p.Class, Cause: p.Cause, Message: clip(message),
			InfeasibleWith: slices.Clone(p.InfeasibleWith), Consequence: p.Consequence, Count: 1}, true
	}
	return Failure{}, false
}

// clip shortens a message at a character boundary.
func clip(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// ClassFor returns the class for a configuration that set these variables: a
// failed NVLS allocation is the host's fault, unless NVLS was asked for.
func (f Failure) ClassFor(settings map[string]string) Class {
	for _, name := range f.InfeasibleWith {
		if _, set := settings[name]; set {
			return ClassInfeasible
		}
	}
	return f.Class
}
