package supervise

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"go.uber.org/goleak"
)

// TestMain turns the test binary into a supervisor, or into one of the programs
// of helpers_test.go, when it is started as such.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case Command:
			os.Exit(Main(os.Args[2:]))
		case "helper":
			os.Exit(helper(os.Args[2], os.Args[3:]))
		}
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of a test; it is reached only when one fails.
const patience = 30 * time.Second

// shortContext ends soon, for waits that must be given up.
func shortContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	tb.Cleanup(cancel)
	return ctx
}

func testContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// helperSpec is a launch of a helper program.
func helperSpec(tb testing.TB, name string, args ...string) Spec {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return Spec{
		Args: append([]string{exe, "helper", name}, args...),
		Env: map[string]string{
			"PATH": os.Getenv("PATH"),
			// Builds with the race detector end late, those for coverage talk.
			"GORACE": "atexit_sleep_ms=0", "GOCOVERDIR": tb.TempDir(),
		},
		Directory:   tb.TempDir(),
		LogPath:     filepath.Join(tb.TempDir(), "server.log"),
		StopTimeout: 10 * time.Second,
		KillTimeout: patience,
	}
}

func prepare(tb testing.TB, spec Spec) *Process {
	tb.Helper()
	p, err := Prepare(testContext(tb), spec)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Kill(ctx); err != nil {
			tb.Errorf("clean up after the test: %v", err)
		}
	})
	return p
}

func start(tb testing.TB, spec Spec) *Process {
	tb.Helper()
	p := prepare(tb, spec)
	if err := p.Start(testContext(tb)); err != nil {
		tb.Fatal(err)
	}
	return p
}

// await reads lines until one has the prefix, and returns what follows it.
func await(tb testing.TB, p *Process, prefix string) string {
	tb.Helper()
	for {
		line, err := p.NextLine(testContext(tb))
		if err != nil {
			tb.Fatalf("waiting for a line %q: %v", prefix, err)
		}
		if rest, ok := strings.CutPrefix(line.Text, prefix); ok && !line.Partial {
			return strings.TrimSpace(rest)
		}
	}
}

// awaitAll reads n lines with the prefix.
func awaitAll(tb testing.TB, p *Process, prefix string, n int) []string {
	tb.Helper()
	var found []string
	for range n {
		found = append(found, await(tb, p, prefix))
	}
	return found
}

// rest reads all lines up to the end.
func rest(tb testing.TB, p *Process) []Line {
	tb.Helper()
	var lines []Line
	for {
		line, err := p.NextLine(testContext(tb))
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, line)
	}
}

func awaitDone(tb testing.TB, p *Process) Exit {
	tb.Helper()
	select {
	case <-p.Done():
	case <-testContext(tb).Done():
		tb.Fatal("the server did not end")
	}
	exit, ok := p.Exit()
	if !ok {
		tb.Fatal("Done is closed, but there is no Exit")
	}
	return exit
}

func members(tb testing.TB, p *Process) []Member {
	tb.Helper()
	found, err := p.Processes()
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// assertGone fails when one of the processes, or any with the marker, lives.
func assertGone(tb testing.TB, marker string, seen []Member) {
	tb.Helper()
	for _, m := range seen {
		if m.identity().running() {
			tb.Errorf("%s is still there", m)
		}
	}
	procs, err := procfs.AllProcs()
	if err != nil {
		tb.Fatal(err)
	}
	for _, proc := range procs {
		if env := ReadEnvironment(proc.PID); env.Variables[MarkerVariable] == marker {
			args, _ := proc.CmdLine()
			tb.Errorf("pid %d %q has the marker of the launch and is still there", proc.PID, args)
		}
	}
}

// isolation runs a test with and without a cgroup.
func isolation(t *testing.T, test func(t *testing.T, spec func(name string, args ...string) Spec)) {
	t.Run("descent", func(t *testing.T) {
		t.Parallel()
		test(t, func(name string, args ...string) Spec {
			spec := helperSpec(t, name, args...)
			spec.NoCgroup = true
			return spec
		})
	})
	if !cgroupsWork(t) {
		t.Log("this machine has no cgroup v2 that the tests may write to: the launch is tested by descent only")
		return
	}
	t.Run("cgroup", func(t *testing.T) {
		t.Parallel()
		test(t, func(name string, args ...string) Spec { return helperSpec(t, name, args...) })
	})
}

func cgroupsWork(tb testing.TB) bool {
	tb.Helper()
	self, err := procfs.Self()
	if err != nil {
		tb.Fatal(err)
	}
	parent, err := ownCgroup(self)
	if err != nil {
		return false
	}
	dir, err := makeCgroup(parent, "probe-"+filepath.Base(tb.TempDir())+time.Now().Format("150405.000000000"))
	if err != nil {
		return false
	}
	if err := removeCgroup(dir, cgroupTime); err != nil {
		tb.Fatal(err)
	}
	return true
}
