package sim

import (
	"context"
	"strconv"
	"time"
)

// failure is why a running server dies.
type failure struct {
	lines []string // as the scheduler prints them
	// worker is the rank whose process is killed for it; -1 for none.
	worker int
}

// counts is a copy of what others may read.
type counts struct {
	stats
	running, waiting int
}

func (e *engine) snapshotCounts() counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return counts{e.stats, e.running, e.waiting}
}

// flush empties the prefix cache and the totals; false while requests run.
func (e *engine) flush() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running+e.waiting > 0 {
		return false
	}
	e.cache.flush()
	e.stats.cycles, e.stats.drafts, e.stats.correct = 0, 0, 0
	return true
}

// fatal tells whether the next request kills the server.
func (e *engine) fatal(batch int) (failure, bool) {
	f := e.perf.options.faults
	exceeded := func(name string) bool {
		limit, on := f.number(name)
		return on && float64(e.accepted) > limit
	}
	switch {
	case e.perf.failsUnderLoad(batch):
		return failure{worker: -1, lines: []string{
			"Scheduler hit an exception: Traceback (most recent call last):",
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB. GPU 0 has a total capacity of " +
				strconv.FormatFloat(e.perf.machine.memoryGiB, 'f', 2, 64) + " GiB of which " +
				strconv.FormatFloat(max(0, e.perf.memory.Free), 'f', 2, 64) + " GiB is free.",
		}}, true
	case exceeded(faultCrashUnderLoad):
		return failure{worker: -1, lines: []string{
			"Scheduler hit an exception: Traceback (most recent call last):",
			"RuntimeError: CUDA error: an illegal memory access was encountered",
		}}, true
	case exceeded(faultDeadWorker):
		return failure{worker: e.perf.options.workers - 1}, true
	case e.log.launch > 0 && f.has(faultLostLaunch) && isLaunch(f, e.log.launch) && e.accepted > 1:
		return failure{worker: -1, lines: []string{
			"Scheduler hit an exception: Traceback (most recent call last):",
			"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356, remote process exited or there was a network error, NCCL version " + e.perf.options.nccl.String(),
			"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
		}}, true
	}
	return failure{}, false
}

// isLaunch tells whether the fault "lost-launch" means this launch, counted from 1.
func isLaunch(f faults, launch int) bool {
	number, _ := f.number(faultLostLaunch)
	return int(number) == launch
}

// stuck tells whether the scheduler stops without a word.
func (e *engine) stuck() bool {
	limit, on := e.perf.options.faults.number(faultHangUnderLoad)
	return on && float64(e.accepted) > limit
}

// countCycle adds one step of the batch to the totals.
func (e *engine) countCycle(running []*request) {
	e.mu.Lock()
	before := e.stats.generated
	e.stats.cycles += len(running)
	e.stats.drafts += len(running) * max(0, e.perf.verified-1)
	correct, generated := 0, 0
	for _, r := range running {
		correct += r.correct - r.counted.correct
		generated += r.tokens - r.counted.tokens
		r.counted = counted{r.tokens, r.correct}
	}
	e.stats.correct += correct
	e.stats.generated = before + generated
	e.mu.Unlock()
	e.log.decode(e, running)
}

// submit queues a request; the answer comes through next.
func (e *engine) submit(ctx context.Context, r *request) bool {
	r.arrival = time.Now()
	r.wake = make(chan struct{}, 1)
	select {
	case e.arrived <- r:
		return true
	case <-ctx.Done():
		return false
	}
}
