package fingerprint

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whatever this machine is, it has a fingerprint, the same one twice.
func TestReadThisMachine(t *testing.T) {
	t.Parallel()
	first, err := Read(t.Context(), Local())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(first, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if first.Hardware.CPU == "" || first.Hardware.MemoryMiB == 0 || first.Stack.Kernel == "" {
		t.Errorf("CPU %q, %d MiB, kernel %q", first.Hardware.CPU, first.Hardware.MemoryMiB, first.Stack.Kernel)
	}
	second, err := Read(t.Context(), Local())
	if err != nil {
		t.Fatal(err)
	}
	if first.Hardware.Key != second.Hardware.Key || first.Stack.Key != second.Stack.Key ||
		first.Hardware.Instance != second.Hardware.Instance {
		t.Errorf("the keys of this machine changed: %+v, then %+v", first.Hardware, second.Hardware)
	}
}

func TestReadStopsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, Local()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestLocalRun(t *testing.T) {
	t.Parallel()
	output, err := Local().Run(t.Context(), "/bin/sh", "-c", "echo out; echo err >&2; exit 9")
	if err != nil || output.Status != 9 || output.Text != "out\nerr\n" {
		t.Errorf("output %+v, %v", output, err)
	}
	if _, err := Local().Run(t.Context(), "no-such-tool"); err == nil {
		t.Error("a tool that is not there ran")
	}
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		_, _ = os.ReadFile(fifo) // until the command has opened and closed it
	}()
	if _, err := Local().Run(ctx, "/bin/sh", "-c", ": > "+fifo+"; exec sleep 60"); !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "did not answer") {
		t.Errorf("error %v of a command that was given up", err)
	}
}

func TestLocalSize(t *testing.T) {
	t.Parallel()
	if size, err := Local().Size("/"); err != nil || size <= 0 {
		t.Errorf("size %d, %v", size, err)
	}
	if _, err := Local().Size("/no/such/path"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkReadThisMachine(b *testing.B) {
	for b.Loop() {
		if _, err := Read(b.Context(), Local()); err != nil {
			b.Fatal(err)
		}
	}
}
