package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nocturne/runners"
)

// deadTuner runs a tuner in a process of its own until so many workers are up,
// kills it with SIGKILL, and returns the record it left.
func deadTuner(t *testing.T, task tunerSpec, workers int, as *syscall.Credential) runners.Launch {
	t.Helper()
	input, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), executableFor(t, as), "helper", "tuner")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	cmd.Dir = "/"
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(stdout)
	var launch runners.Launch
	if err := decoder.Decode(&launch); err != nil {
		t.Fatal("the tuner left no record: ", err)
	}
	for workers > 0 {
		var line Line
		if err := decoder.Decode(&line); err != nil {
			t.Fatal("the tuner ended early: ", err)
		}
		if strings.HasPrefix(line.Text, "up") {
			workers--
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return launch
}

// executableFor returns a copy of the test binary that another user may run.
func executableFor(t *testing.T, as *syscall.Credential) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if as == nil {
		return exe
	}
	dir, err := os.MkdirTemp("", "supervise-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "supervise.test")
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}

// awaitSupervisor waits until the supervisor of a launch has ended by itself.
func awaitSupervisor(t *testing.T, launch runners.Launch) {
	t.Helper()
	id := identity{pid: launch.SupervisorPID, start: launch.SupervisorStart}
	if err := id.await(testContext(t), patience); err != nil {
		t.Fatal(err)
	}
	if id.running() {
		t.Fatal("the supervisor outlives its tuner")
	}
}

// phases are the moments at which a tuner is killed, with the number of
// processes that are up by then.
var phases = map[string]struct {
	until  string
	server string
	up     int
}{
	"before start":   {"prepare", "family", 0},
	"while starting": {"start", "family", 0},
	"while running":  {"start", "family", 5},
	"while stopping": {"stop", "stubborn", 1},
}

// F18: kill -9 of the tuner at any moment leaves nothing, without anyone's help.
func TestF18_TunerKilled(t *testing.T) {
	t.Parallel()
	for name, phase := range phases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
				s := spec(phase.server)
				s.StopTimeout = 300 * time.Millisecond
				launch := deadTuner(t, tunerSpec{Spec: s, Until: phase.until}, phase.up, nil)
				awaitSupervisor(t, launch)
				assertGone(t, launch.Marker, nil)
				assertCgroupGone(t, launch)
				if err := Recover(testContext(t), launch); err != nil {
					t.Errorf("Recover when nothing is left: %v", err)
				}
			})
		})
	}
}

// The guarantees need no privilege.
func TestF18_TunerKilledUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("not run as root: TestF18_TunerKilled was the unprivileged test already")
		return
	}
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	s := helperSpec(t, "family")
	s.Args[0] = executableFor(t, nobody)
	s.StopTimeout, s.Directory = 300*time.Millisecond, "/"
	s.LogPath = filepath.Join(filepath.Dir(s.Args[0]), "server.log")
	launch := deadTuner(t, tunerSpec{Spec: s, Until: "start"}, 5, nobody)
	awaitSupervisor(t, launch)
	assertGone(t, launch.Marker, nil)
}

// The log is complete although nobody was left to stop the server.
func TestTunerKilledLogIsComplete(t *testing.T) {
	t.Parallel()
	s := helperSpec(t, "block")
	launch := deadTuner(t, tunerSpec{Spec: s, Until: "start"}, 1, nil)
	awaitSupervisor(t, launch)
	if log, err := os.ReadFile(launch.LogPath); err != nil || !bytes.HasPrefix(log, []byte("up ")) {
		t.Errorf("log %q, %v", log, err)
	}
}

// The supervisor itself is killed: the tuner notices, and does its work.
func TestF18_SupervisorKilled(t *testing.T) {
	t.Parallel()
	isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
		p := start(t, spec("family"))
		awaitAll(t, p, "up", 5)
		seen := members(t, p)
		if err := syscall.Kill(p.Launch().SupervisorPID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if exit := awaitDone(t, p); !exit.Lost {
			t.Errorf("exit %v, want lost", exit)
		}
		if err := p.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		assertGone(t, p.Launch().Marker, seen)
		assertCgroupGone(t, p.Launch())
	})
}

// Tuner and supervisor were both killed, and what is left must be found by
// another process: by the cgroup, or else by marker, descent and session.
func TestF18_RecoverAfterEverybodyWasKilled(t *testing.T) {
	t.Parallel()
	isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
		p := start(t, spec("nursery"))
		awaitAll(t, p, "up", 4)
		seen := members(t, p)
		launch := p.Launch()
		if err := syscall.Kill(launch.SupervisorPID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitDone(t, p)
		if code, out := runRecover(t, launch); code != 0 {
			t.Fatalf("recover: status %d: %s", code, out)
		}
		assertGone(t, launch.Marker, seen)
		assertCgroupGone(t, launch)
		if err := Recover(testContext(t), launch); err != nil {
			t.Errorf("Recover again: %v", err)
		}
	})
}

func runRecover(t *testing.T, launch runners.Launch) (int, string) {
	t.Helper()
	input, err := json.Marshal(launch)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), exe, "helper", "recover")
	cmd.Stdin = bytes.NewReader(input)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// A tuner that lives, but lost its campaign to another: Recover makes its
// supervisor stop.
func TestRecoverStopsALivingLaunch(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "block"))
	await(t, p, "up")
	if err := Recover(testContext(t), p.Launch()); err != nil {
		t.Fatal(err)
	}
	if exit := awaitDone(t, p); exit.Signal != unix.SIGTERM {
		t.Errorf("ended by %v, want SIGTERM", exit)
	}
	assertGone(t, p.Launch().Marker, nil)
}

func TestRecoverLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "clobber", "")) // its environment cannot exonerate it
	await(t, p, "up")
	stranger := p.Launch()
	tests := map[string]func(*runners.Launch){
		"another boot":       func(l *runners.Launch) { l.BootID = "other" },
		"no marker":          func(l *runners.Launch) { l.Marker = "" },
		"a reused pid":       func(l *runners.Launch) { l.SupervisorStart++; l.Marker, l.Cgroup = "OTHER", "" },
		"a strange cgroup":   func(l *runners.Launch) { l.SupervisorPID = 1 << 30; l.Marker = "OTHER" },
		"a session of later": func(l *runners.Launch) { l.SupervisorStart = 1; l.Marker, l.Cgroup = "OTHER", "" },
	}
	for name, change := range tests {
		launch := stranger
		change(&launch)
		if err := Recover(testContext(t), launch); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if exit, ended := p.Exit(); ended {
			t.Fatalf("%s: the server of another launch was ended: %v", name, exit)
		}
	}
}

func TestRecoverStopsWaiting(t *testing.T) {
	t.Parallel()
	s := helperSpec(t, "stubborn")
	s.StopTimeout = time.Hour
	p := start(t, s)
	await(t, p, "up")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Recover(ctx, p.Launch()); err == nil {
		t.Error("Recover with an ended context reports success while the server lives")
	}
}

func assertCgroupGone(t *testing.T, launch runners.Launch) {
	t.Helper()
	if launch.Cgroup == "" {
		return
	}
	if _, err := os.Stat(launch.Cgroup); !os.IsNotExist(err) {
		t.Errorf("cgroup %s is still there: %v", launch.Cgroup, err)
	}
}

func TestTailBuffer(t *testing.T) {
	t.Parallel()
	var b tailBuffer
	for range 100 {
		if n, err := b.Write(bytes.Repeat([]byte("x"), 1000)); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
	}
	_, _ = b.Write([]byte("end"))
	if got := b.String(); len(got) != tailLimit || !strings.HasSuffix(got, "xend") {
		t.Errorf("%d bytes", len(got))
	}
}
