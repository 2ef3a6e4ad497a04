package local_test

import (
	"bufio"
	"os/exec"
	"testing"

	"nocturne/runners"
	"nocturne/runners/local"
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
