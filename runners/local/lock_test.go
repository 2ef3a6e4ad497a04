package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"nocturne/runners"
	"nocturne/runners/fingerprint"
	"nocturne/runners/local"
	"nocturne/runners/runnertest"
)

// The kernel frees the lock of a process that was killed.
func TestLockEndsWithItsProcess(t *testing.T) {
	directory := t.TempDir()
	holder := exec.Command("/proc/self/exe", "hold-lock", directory)
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("holder said %q, %v", line, err)
	}
	host := newHost(t, func(o *local.Options) { o.LockDirectory = directory })
	if _, err := host.Lock(t.Context(), runners.GPUSelection{All: true}, "b"); err == nil {
		t.Fatal("the lock of a living process was taken")
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed
	release, err := host.Lock(t.Context(), runners.GPUSelection{All: true}, "b")
	if err != nil {
		t.Fatalf("lock after the death of the holder: %v", err)
	}
	release()
}

// gpus is a Source with that many GPUs; memory in use is said to be 5 MiB each.
type gpus int

func (gpus) Files() fs.FS               { return fstest.MapFS{} }
func (gpus) Size(string) (int64, error) { return 0, fs.ErrNotExist }

func (n gpus) Run(_ context.Context, name string, args ...string) (fingerprint.Output, error) {
	fields, isQuery := strings.CutPrefix(strings.Join(args, " "), "--query-gpu=")
	if name != "nvidia-smi" || !isQuery {
		return fingerprint.Output{}, exec.ErrNotFound
	}
	fields, _, _ = strings.Cut(fields, " ")
	var out strings.Builder
	for i := range int(n) {
		var row []string
		for field := range strings.SplitSeq(fields, ",") {
			row = append(row, map[string]string{
				"index": fmt.Sprint(i), "uuid": fmt.Sprintf("GPU-%d", i), "name": "Test", "memory.used": "5", "memory.total": "1000",
			}[field])
		}
		out.WriteString(strings.Join(row, ", ") + "\n")
	}
	return fingerprint.Output{Text: out.String()}, nil
}

// Two campaigns share a machine, but not a GPU.
func TestLockIsForEachGPU(t *testing.T) {
	directory := t.TempDir()
	host := newHost(t, func(o *local.Options) { o.LockDirectory, o.Source = directory, gpus(4) })
	lock := func(indices ...int) (func(), error) {
		return host.Lock(t.Context(), runners.GPUSelection{All: indices == nil, Indices: indices}, "a")
	}
	release, err := lock(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	others, err := lock(2, 3)
	if err != nil {
		t.Fatalf("lock of other GPUs: %v", err)
	}
	others()
	var locked *runners.LockedError
	if _, err := lock(1, 2); !errors.As(err, &locked) || locked.Resource != "GPU-1" {
		t.Errorf("lock of a GPU in use: %v, expected GPU-1 to be named", err)
	}
	if _, err := lock(); !errors.As(err, &locked) {
		t.Errorf("lock of all: %v", err)
	}
	if _, err := lock(7); err == nil || errors.As(err, new(*runners.LockedError)) {
		t.Errorf("lock of a GPU that does not exist: %v", err)
	}
	release()
	all, err := lock() // what failed above left nothing locked
	if err != nil {
		t.Fatal(err)
	}
	all()
}

func TestGPUMemoryComesFromTheSource(t *testing.T) {
	host, err := local.New(local.Options{LockDirectory: t.TempDir(), Source: gpus(2), ConfFiles: func(map[string]string) []string { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	result := host.Run(t.Context(), runnertest.CommandJob(t, "0", `{"x": 1}`), &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if got := result.Effective["gpu_memory_before_mib"]; got != "5 5" {
		t.Errorf("memory on record %q, expected 5 MiB on each of 2 GPUs", got)
	}
}
