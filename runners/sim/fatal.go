package sim

import "fmt"

// failure is why a running server dies.
type failure struct {
	lines []string // as the scheduler prints them
	// worker is the rank whose process is killed for it; -1 for none.
	worker int
}

// exception is a failure that the scheduler reports itself.
func exception(lines ...string) failure {
	return failure{worker: -1, lines: append([]string{"Scheduler hit an exception: Traceback (most recent call last):"}, lines...)}
}

// fatal tells whether the request that would make a batch of so many kills the
// server.
func (e *engine) fatal(batch int) (failure, bool) {
	f := e.perf.options.faults
	exceeded := func(name string) bool {
		limit, on := f.number(name)
		return on && float64(e.accepted) > limit
	}
	switch {
	case e.perf.failsUnderLoad(batch):
		return exception(fmt.Sprintf("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB. GPU 0 has a total capacity of %.2f GiB of which %.2f GiB is free.",
			e.perf.machine.memoryGiB, max(0, e.perf.memory.Free))), true
	case exceeded(faultCrashUnderLoad):
		return exception("RuntimeError: CUDA error: an illegal memory access was encountered"), true
	case exceeded(faultDeadWorker):
		return failure{worker: e.perf.options.workers - 1}, true
	case e.lost():
		return exception(
			"torch.distributed.DistBackendError: NCCL error in: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, remote process exited or there was a network error, NCCL version "+e.perf.options.nccl.String(),
			"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."), true
	default:
		return failure{}, false
	}
}

// lostAfter is how many requests a launch gets through that the fault
// "lost-launch" hits.
const lostAfter = 1

func (e *engine) lost() bool {
	number, on := e.perf.options.faults.number(faultLostLaunch)
	return on && int(number) == e.launch && e.accepted > lostAfter
}

// stuck tells whether the scheduler stops without a word.
func (e *engine) stuck() bool {
	limit, on := e.perf.options.faults.number(faultHangUnderLoad)
	return on && float64(e.accepted) > limit
}
