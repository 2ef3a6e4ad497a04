package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStopTerminatesFirst(t *testing.T) {
	t.Parallel()
	isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
		p := start(t, spec("block"))
		await(t, p, "up")
		if err := p.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if exit := awaitDone(t, p); exit.Signal != syscall.SIGTERM {
			t.Errorf("ended by %v, want SIGTERM", exit)
		}
		if err := p.Stop(testContext(t)); err != nil {
			t.Errorf("Stop again: %v", err)
		}
	})
}

func TestStopKillsTheStubborn(t *testing.T) {
	t.Parallel()
	isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
		s := spec("stubborn")
		s.StopTimeout = 100 * time.Millisecond
		p := start(t, s)
		await(t, p, "up")
		began := time.Now()
		if err := p.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if exit := awaitDone(t, p); exit.Signal != syscall.SIGKILL {
			t.Errorf("ended by %v, want SIGKILL", exit)
		}
		if waited := time.Since(began); waited < s.StopTimeout {
			t.Errorf("killed after %v, before the stop timeout of %v", waited, s.StopTimeout)
		}
	})
}

func TestKillDoesNotWait(t *testing.T) {
	t.Parallel()
	s := helperSpec(t, "stubborn")
	s.StopTimeout = time.Hour
	p := start(t, s)
	await(t, p, "up")
	stopping := make(chan error)
	go func() { stopping <- p.Stop(testContext(t)) }()
	if err := p.Kill(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-stopping; err != nil {
		t.Errorf("a Stop that was overtaken by Kill: %v", err)
	}
}

// F18: children in new sessions, one of them ignoring SIGTERM, daemons and
// scrubbed environments are all gone after Stop, whether the server itself
// lives or was killed before.
func TestF18_StopLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		name := map[bool]string{false: "server lives", true: "server was killed"}[killed]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
				s := spec("family")
				s.StopTimeout = 200 * time.Millisecond
				p := start(t, s)
				awaitAll(t, p, "up", 5)
				seen := members(t, p)
				if len(seen) < 5 {
					t.Errorf("Processes found %d, want 5: %v", len(seen), seen)
				}
				if killed {
					if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					awaitDone(t, p)
				}
				if err := p.Stop(testContext(t)); err != nil {
					t.Fatal(err)
				}
				assertGone(t, p.Launch().Marker, seen)
				if left, err := p.Processes(); err != nil || len(left) != 0 {
					t.Errorf("after Stop: %v, %v", left, err)
				}
			})
		})
	}
}

// F18: a tree that grows again while it is being killed.
func TestF18_ProcessesThatForkWhileKilled(t *testing.T) {
	t.Parallel()
	isolation(t, func(t *testing.T, spec func(string, ...string) Spec) {
		const length, births = 5, 100
		tokens := t.TempDir()
		for i := range births {
			if err := os.WriteFile(filepath.Join(tokens, strconv.Itoa(i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := spec("hydra", tokens, strconv.Itoa(length))
		s.StopTimeout = 0
		p := start(t, s)
		awaitAll(t, p, "up", length)
		seen := members(t, p)
		if err := p.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		assertGone(t, p.Launch().Marker, seen)
	})
}

// What is left of a server that ended when it was asked to is not waited for as
// long as the server itself.
func TestStopDoesNotWaitForOrphans(t *testing.T) {
	t.Parallel()
	s := helperSpec(t, "family")
	s.StopTimeout = time.Hour
	p := start(t, s)
	awaitAll(t, p, "up", 5)
	seen := members(t, p)
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	assertGone(t, p.Launch().Marker, seen)
}

// A pid that another process got meanwhile is not signalled.
func TestSignalChecksTheStart(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "block"))
	await(t, p, "up")
	id, err := identify(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := (identity{pid: id.pid, start: id.start + 1}).signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := id.signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if exit := awaitDone(t, p); exit.Signal != syscall.SIGTERM {
		t.Errorf("ended by %v, want the second signal, SIGTERM", exit)
	}
}

// A server may make cgroups of its own below that of the launch.
func TestStopRemovesNestedCgroups(t *testing.T) {
	t.Parallel()
	if !cgroupsWork(t) {
		t.Log("this machine has no cgroup v2 that the tests may write to: nothing to nest")
		return
	}
	p := start(t, helperSpec(t, "block"))
	await(t, p, "up")
	nested := filepath.Join(p.Launch().Cgroup, "workers", "gpu0")
	if err := os.MkdirAll(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.Launch().Cgroup); !os.IsNotExist(err) {
		t.Errorf("the cgroup is still there: %v", err)
	}
}

func TestStopNamesSurvivors(t *testing.T) {
	t.Parallel()
	s := helperSpec(t, "stubborn")
	s.StopTimeout, s.KillTimeout = time.Hour, time.Hour
	p := start(t, s)
	await(t, p, "up")
	ctx := shortContext(t)
	err := p.Stop(ctx)
	var survivors *SurvivorsError
	if !errors.As(err, &survivors) || len(survivors.Members) != 1 || survivors.Members[0].PID != p.PID() {
		t.Fatalf("Stop of an unyielding server: %v", err)
	}
	if !errors.Is(err, ctx.Err()) || !strings.Contains(err.Error(), "helper stubborn") {
		t.Errorf("the error does not tell enough: %v", err)
	}
}
