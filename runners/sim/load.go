package sim

import (
	"context"
	"fmt"
	"time"
)

// stillRunning is what loading returns when the server is up.
const stillRunning = -1

// The fault "ready-early" has times of its own, unscaled.
const (
	earlyPort         = 2 * time.Second
	earlyModels       = 3 * time.Second
	earlyHealth       = 20 * time.Second
	earlyFirstRequest = 9 * time.Second
)

// Shares of the load time at which its phases begin.
const (
	loadInit     = 0.005
	loadNCCL     = 0.01
	loadWeights  = 0.02
	loadPool     = 0.72
	loadCapture  = 0.74
	loadDraft    = 0.85
	loadCapacity = 0.95
	loadWarm     = 0.97
)

// shards is the number of files that the model's weights lie in.
const shards = 163

// scaledLoad brings a time of loading to real time.
func (s *server) scaledLoad(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.options.loadScale)
}

// loader walks through the phases of loading on an absolute schedule.
type loader struct {
	*process
	ctx   context.Context
	total time.Duration // unscaled
}

// load brings the server up and returns stillRunning, or the exit status.
func (p *process) load(ctx context.Context) int {
	l := &loader{process: p, ctx: ctx}
	l.total = time.Duration(float64(p.launch.loadTime()) * p.loadFactor)
	if p.options.faults.has(faultReadyEarly) {
		return l.early()
	}
	if after, on := p.options.faults.duration(faultExitAfter); on {
		l.until(after)
		return exitFailed
	}
	for _, phase := range []func() (status int, over bool){l.communicators, l.weights, l.graphs, l.ready} {
		if status, over := phase(); over {
			return status
		}
	}
	return stillRunning
}

// until waits for an unscaled time after the start; false when told to stop.
func (l *loader) until(offset time.Duration) bool {
	at := l.begin.Add(time.Duration(float64(offset) / l.options.loadScale))
	return sleep(l.ctx, time.Until(at))
}

func (l *loader) share(fraction float64) bool {
	return l.until(time.Duration(fraction * float64(l.total)))
}

func (l *loader) hang() (int, bool) {
	<-l.ctx.Done()
	return exitOK, true
}

// communicators sets up torch.distributed and NCCL, where hangs and refusals of
// settings show.
func (l *loader) communicators() (int, bool) {
	if !l.share(loadInit) {
		return exitOK, true
	}
	for rank := range l.options.ranks() {
		l.log.rank(rank, "Init torch distributed begin.")
	}
	if !l.share(loadNCCL) {
		return exitOK, true
	}
	if l.options.ranks() > 1 {
		l.log.rank(0, "sglang is using nccl==%s", l.options.nccl)
		l.logNCCLInit()
	}
	if l.launch.stage == failsAtInit {
		if l.launch.outcome == Hang {
			return l.hang()
		}
		l.initFailed(l.launch.reason)
		return exitFailed, true
	}
	if l.options.faults.has(faultHangAtInit) {
		return l.hang()
	}
	for rank := range l.options.ranks() {
		l.log.rank(rank, "Init torch distributed ends. elapsed=%.2f s, mem usage=1.20 GB", 0.008*l.total.Seconds())
		l.log.rank(rank, "Load weight begin. avail mem=%.2f GB", l.options.machine.memoryGiB-1.2)
	}
	return 0, false
}

// initFailed prints what an error in NCCL's first collective looks like.
func (l *loader) initFailed(reason string) {
	l.logNCCLFailure(reason)
	l.log.rank(0, "Scheduler hit an exception: Traceback (most recent call last):")
	kind, detail := "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", "invalid usage (run with NCCL_DEBUG=WARN for details)"
	if l.launch.comm != nil && l.launch.reason == outOfMemoryInNCCL {
		kind, detail = "ncclUnhandledCudaError: Call to CUDA function failed.", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
	}
	l.log.raw("torch.distributed.DistBackendError: NCCL error in: torch/csrc/distributed/c10d/NCCLUtils.cpp:93, %s, NCCL version %s\n%s\nLast error:\n%s", detail, l.options.nccl, kind, reason)
	l.died(1)
}

// died prints the consequences of a scheduler's death during the start.
func (l *loader) died(code int) {
	l.log.server("Rank 0 scheduler died during initialization (exit code: %d). Please see the error messages above.", code)
	l.log.server("Initialization failed. Please see the error messages above.")
}

// weights loads shards with a progress line at least every minute.
func (l *loader) weights() (int, bool) {
	if status, over := l.shards(loadWeights, loadPool); over {
		return status, over
	}
	for rank := range l.options.ranks() {
		l.log.rank(rank, "Load weight end. elapsed=%.2f s, type=KimiK25ForConditionalGeneration, avail mem=%.2f GB, mem usage=%.2f GB.",
			(loadPool-loadWeights)*l.total.Seconds(), l.options.machine.memoryGiB-l.options.machine.weightsGiB-1.2, l.options.machine.weightsGiB)
	}
	if l.launch.stage == failsAtLoad {
		l.log.rank(0, "Scheduler hit an exception: Traceback (most recent call last):")
		l.log.raw("RuntimeError: %s Current value: mem_fraction_static=%s", l.launch.reason, l.options.text("mem_fraction_static"))
		l.died(1)
		return exitFailed, true
	}
	m := l.launch.performance.memory
	l.log.rank(0, "KV Cache is allocated. dtype: torch.bfloat16, #tokens: %d, KV size: %.2f GB", m.KVTokens, float64(m.KVTokens)*kvBytesPerToken/(1<<30))
	l.log.rank(0, "Memory pool end. avail mem=%.2f GB", max(0, m.Total-m.Static))
	return 0, false
}

// shards prints the progress of reading weights between two shares of the time.
func (l *loader) shards(from, to float64) (int, bool) {
	span := (to - from) * l.total.Seconds()
	lines := max(20, int(span/60)+1)
	for i := 1; i <= lines; i++ {
		if !l.share(from + (to-from)*float64(i)/float64(lines)) {
			return exitOK, true
		}
		if text, on := l.options.faults[faultCrashAtStart]; on && i == lines/2 {
			l.log.rank(0, "Scheduler hit an exception: Traceback (most recent call last):")
			l.log.raw("%s", text)
			l.died(1)
			return exitFailed, true
		}
		done := shards * i / lines
		elapsed := span * float64(i) / float64(lines)
		l.log.raw("Loading safetensors checkpoint shards: %3d%% Completed | %d/%d [%s<%s, %5.2fs/it]",
			100*i/lines, done, shards, clock(elapsed), clock(span-elapsed), span/shards)
	}
	return 0, false
}

// clock writes seconds as tqdm does.
func clock(seconds float64) string {
	s := int(seconds)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// graphs captures CUDA graphs, and loads the draft model.
func (l *loader) graphs() (int, bool) {
	perf := l.launch.performance
	if !l.share(loadCapture) {
		return exitOK, true
	}
	if batch := l.options.graphBatch(); batch > 0 {
		name := ""
		if perf.steps > 0 {
			name = "target verify "
		}
		l.log.rank(0, "Capture %sCUDA graph begin. backend=full, bs=[1, 2, 4, ..., %d], avail mem=%.2f GB", name, batch, max(0, perf.memory.Total-perf.memory.Static-contextMemory))
		l.logOperations()
		if l.launch.stage == failsAtGraphs {
			l.log.rank(0, "Scheduler hit an exception: Traceback (most recent call last):")
			l.log.raw("Exception: %s Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)", l.launch.reason)
			l.died(1)
			return exitFailed, true
		}
		for percent := 25; percent <= 100; percent += 25 {
			if !l.share(loadCapture + (loadDraft-loadCapture)*float64(percent)/100) {
				return exitOK, true
			}
			l.log.raw("Capturing batches (bs=%d avail_mem=%.2f GB): %3d%%|%-10s| %d/%d", max(1, batch*(100-percent)/100), perf.memory.Free, percent, "##########"[:percent/10], percent*52/100, 52)
		}
		l.log.rank(0, "Capture %sCUDA graph end. elapsed=%.2f s, mem usage=%.2f GB, avail mem=%.2f GB.", name, (loadDraft-loadCapture)*l.total.Seconds(), graphMemory+graphPerBatch*float64(batch), perf.memory.Free)
	}
	if perf.steps > 0 {
		l.log.rank(0, "Load weight begin. avail mem=%.2f GB", perf.memory.Free+draftMemory)
		if status, over := l.shards(loadDraft, loadCapacity); over {
			return status, over
		}
		l.log.rank(0, "Load weight end. elapsed=%.2f s, type=LlamaForCausalLMEagle3, avail mem=%.2f GB, mem usage=%.2f GB.", draftLoad.Seconds(), perf.memory.Free, draftMemory)
		l.log.rank(0, "Capture draft CUDA graph begin. backend=full, bs=[1, 2, 4], avail mem=%.2f GB", perf.memory.Free)
		l.log.rank(0, "Capture draft CUDA graph end. elapsed=3.10 s, mem usage=0.10 GB, avail mem=%.2f GB.", perf.memory.Free)
	}
	return 0, false
}

// ready opens the port, warms up and says so.
func (l *loader) ready() (int, bool) {
	if !l.share(loadCapacity) {
		return exitOK, true
	}
	perf := l.launch.performance
	l.log.rank(0, "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d, context_len=%d, available_gpu_mem=%.2f GB",
		perf.memory.KVTokens, l.options.number("chunked_prefill_size"), l.options.number("max_prefill_tokens"), l.options.maxRunning(), contextLength, perf.memory.Free)
	l.log.server("Engine startup timings (s): load_weight=%.2f, kv_cache_allocation=1.00, scheduler_e2e=%.2f, tokenizer_e2e=%.2f",
		(loadPool-loadWeights)*l.total.Seconds(), loadCapacity*l.total.Seconds(), loadCapacity*l.total.Seconds()+1)
	select {
	case <-l.workers.up:
	case <-l.ctx.Done():
		return exitOK, true
	}
	if err := l.open(l.ctx); err != nil {
		l.log.raw("ERROR:    %v", err)
		return exitFailed, true
	}
	l.server.set(phaseWarming)
	if !l.share(loadWarm) {
		return exitOK, true
	}
	if !l.options.on("skip_server_warmup") && !l.share(1) {
		return exitOK, true
	}
	l.server.set(phaseReady)
	l.log.server("The server is fired up and ready to roll!")
	return 0, false
}

// early is loading under the fault "ready-early".
func (l *loader) early() int {
	if !l.until(earlyPort) {
		return exitOK
	}
	if err := l.open(l.ctx); err != nil {
		l.log.raw("ERROR:    %v", err)
		return exitFailed
	}
	if !l.until(earlyModels) {
		return exitOK
	}
	l.server.set(phaseWarming)
	if !l.until(earlyHealth) {
		return exitOK
	}
	l.server.set(phaseReady)
	l.log.server("The server is fired up and ready to roll!")
	return stillRunning
}
