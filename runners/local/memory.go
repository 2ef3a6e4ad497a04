package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"nocturne/runners/fingerprint"
	"nocturne/runners/servers"
)

const (
	// dirtyMiB is the memory in use on a GPU, before anything of ours runs, from
	// which on the GPU counts as not clean. A display takes less.
	dirtyMiB = 1024
	// memoryTolerance is how far above its level before the launch the memory of
	// a GPU may stay: contexts of other processes come and go.
	memoryTolerance = 512
	// Release of GPU memory is asynchronous: the driver takes it back after the
	// process is gone, in seconds (sglang PR#39545).
	memoryPoll        = 500 * time.Millisecond
	defaultGPURelease = 2 * time.Minute
)

// nvidiaMemory asks nvidia-smi for the memory in use on each GPU, in MiB.
// Without the program there are no GPUs.
func nvidiaMemory(source fingerprint.Source) func(context.Context) ([]int64, error) {
	return func(ctx context.Context) ([]int64, error) {
		output, err := source.Run(ctx, "nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
		switch {
		case errors.Is(err, exec.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case output.Status != 0:
			return nil, fmt.Errorf("nvidia-smi ended with status %d: %s", output.Status, strings.TrimSpace(output.Text))
		}
		return parseMemory(output.Text)
	}
}

// parseMemory reads one number a line.
func parseMemory(text string) ([]int64, error) {
	var used []int64
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		number, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: memory in use is %q, expected MiB", line)
		}
		used = append(used, number)
	}
	return used, nil
}

// lookAtGPUs records the memory in use before the launch.
func (t *trial) lookAtGPUs(ctx context.Context) error {
	used, err := t.host.gpuMemory(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// A machine may have the tool and no GPU; what cannot work, the server says.
		t.result.Warnings = append(t.result.Warnings, "GPU memory before the launch is unknown: "+err.Error())
	}
	t.memoryBefore = used
	t.circumstances[servers.StartedDirty] = slices.ContainsFunc(t.ofJob(used), func(gpu usedMemory) bool { return gpu.mib >= dirtyMiB })
	if len(used) > 0 {
		words := make([]string, len(used))
		for i, mib := range used {
			words[i] = strconv.FormatInt(mib, 10)
		}
		t.result.Effective["gpu_memory_before_mib"] = strings.Join(words, " ")
	}
	return nil
}

// usedMemory is the memory in use on one GPU.
type usedMemory struct {
	index int
	mib   int64
}

// ofJob picks the GPUs of the job.
func (t *trial) ofJob(used []int64) []usedMemory {
	var own []usedMemory
	for i, mib := range used {
		if t.job.GPUs.All || len(t.job.GPUs.Indices) == 0 || slices.Contains(t.job.GPUs.Indices, i) {
			own = append(own, usedMemory{i, mib})
		}
	}
	return own
}

// awaitGPUMemory waits until the memory of the job's GPUs is back at its level
// before the launch.
func (t *trial) awaitGPUMemory(ctx context.Context) error {
	if len(t.memoryBefore) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.host.gpuRelease)
	defer cancel()
	for {
		used, err := t.host.gpuMemory(ctx)
		if err != nil {
			return fail(servers.ReasonHostDirty, "GPU memory after the stop is unknown: %v", err)
		}
		held := aboveLevel(t.memoryBefore, t.ofJob(used))
		if held == "" {
			return nil
		}
		if sleep(ctx, memoryPoll) != nil {
			return fail(servers.ReasonHostDirty, "GPU memory was not released within %s although no process of the trial is left: %s",
				t.host.gpuRelease, held)
		}
	}
}

// aboveLevel names the GPUs whose memory has not come down.
func aboveLevel(before []int64, now []usedMemory) string {
	var held []string
	for _, gpu := range now {
		if gpu.index < len(before) && gpu.mib > before[gpu.index]+memoryTolerance {
			held = append(held, fmt.Sprintf("GPU %d uses %d MiB, before the launch %d MiB", gpu.index, gpu.mib, before[gpu.index]))
		}
	}
	return strings.Join(held, ", ")
}
