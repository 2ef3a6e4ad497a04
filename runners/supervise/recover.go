package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"nocturne/runners"
)

const (
	// recoverGrace is how long Recover lets a supervisor finish in its own way:
	// the server of a dead tuner has nothing left worth a slow farewell.
	recoverGrace = 10 * time.Second
	// recoverKill is how long it then waits for the supervisor's killing.
	recoverKill = 5 * time.Second
)

// Recover makes sure that nothing of an earlier launch is left, from whatever
// process, after whatever crash. It waits for the launch's supervisor, if that
// still lives, to clean up, and does the work itself if it does not. It may be
// called again at any time. A *SurvivorsError names what could not be ended.
func Recover(ctx context.Context, launch runners.Launch) error {
	boot, err := bootID()
	if err != nil {
		return fmt.Errorf("recover a launch: %w", err)
	}
	if launch.Marker == "" || launch.BootID != boot {
		return nil // a reboot leaves no process
	}
	supervisor := identity{pid: launch.SupervisorPID, start: launch.SupervisorStart}
	// The first SIGTERM also reaches a supervisor that does not know yet that its
	// tuner is dead; the second tells it to kill; the last one is for a
	// supervisor that is stuck.
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, recoverGrace}, {unix.SIGTERM, recoverKill}, {unix.SIGKILL, recoverKill}} {
		if !supervisor.running() {
			break
		}
		if err := supervisor.signal(step.signal); err != nil {
			return fmt.Errorf("recover a launch: %w", err)
		}
		if err := supervisor.await(ctx, step.wait); err != nil {
			return fmt.Errorf("recover a launch: %w", err)
		}
	}
	return sweep(ctx, launch, nil, DefaultKillTimeout)
}

// await waits until the process has ended, for at most limit.
func (id identity) await(ctx context.Context, limit time.Duration) error {
	const interval = 50 * time.Millisecond // how often the context is looked at
	fd, err := unix.PidfdOpen(id.pid, 0)
	if err != nil {
		fd = -1
	} else {
		defer unix.Close(fd)
	}
	for deadline := time.Now().Add(limit); id.running() && time.Now().Before(deadline); {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A pidfd becomes readable at the end of its process; without one this is
		// a plain wait.
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, int(interval.Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for pid %d: %w", id.pid, err)
		}
	}
	return nil
}

// sweep ends every process of a launch that has no supervisor any more, and
// those in known. Nobody collects orphans here, so a tree is first brought to a
// standstill: a process whose parent dies before it was seen could be lost.
func sweep(ctx context.Context, launch runners.Launch, known []identity, limit time.Duration) error {
	traces := traces{launch: launch, known: known}
	wait := firstKillWait
	deadline := time.Now().Add(limit)
	for stopped := map[identity]bool{}; ; {
		members, err := traces.find()
		if err != nil {
			return fmt.Errorf("clean up after a lost supervisor: %w", err)
		}
		if len(members) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return &SurvivorsError{Members: members}
		}
		// A fork bomb may outrun the standstill, but not for ever.
		if fresh := halt(members, stopped); fresh && len(stopped) < maxStandstill {
			continue
		}
		traces.kill(members)
		if err := pauseFor(ctx, wait); err != nil {
			return &SurvivorsError{Members: members, Cause: err}
		}
		wait = min(2*wait, lastKillWait)
	}
	if !isLaunchCgroup(launch.Cgroup, launch.Marker) {
		return nil
	}
	if err := removeCgroup(launch.Cgroup, cgroupTime); err != nil {
		return fmt.Errorf("clean up after a lost supervisor: %w", err)
	}
	return nil
}

// maxStandstill is how many processes are stopped before they are killed at the
// latest.
const maxStandstill = 10_000

// halt stops the members that were not stopped yet, and says whether there were
// any.
func halt(members []Member, stopped map[identity]bool) bool {
	fresh := false
	for _, m := range members {
		if !stopped[m.identity()] {
			fresh = true
			stopped[m.identity()] = true
			_ = m.identity().signal(unix.SIGSTOP) // one that cannot be stopped is told as a survivor
		}
	}
	return fresh
}

// traces are what a launch can be found by without its supervisor.
type traces struct {
	launch runners.Launch
	known  []identity
}

// find lists the living processes of the launch, and remembers them, so that a
// process stays found when its parent has ended.
func (t *traces) find() ([]Member, error) {
	all, err := takeSnapshot()
	if err != nil {
		return nil, err
	}
	var pids []int
	if isLaunchCgroup(t.launch.Cgroup, t.launch.Marker) {
		pids = cgroupMembers(t.launch.Cgroup)
	}
	for _, id := range t.known {
		if all.identity(id.pid) == id {
			pids = append(pids, id.pid)
		}
	}
	for pid, stat := range all.stats {
		if stat.Starttime >= t.launch.SupervisorStart && t.leftBy(all, stat) {
			pids = append(pids, pid)
		}
	}
	for _, root := range pids {
		pids = append(pids, all.descendants(root)...)
	}
	var living []Member
	for _, m := range all.members(pids) {
		if !m.dead() && m.PID != os.Getpid() && m.PID != t.launch.SupervisorPID {
			living = append(living, m)
			t.known = append(t.known, m.identity())
		}
	}
	return living, nil
}

// leftBy says whether a process carries the launch's marker, or, when its
// environment cannot tell, belongs to its session.
func (t *traces) leftBy(all snapshot, stat procfs.ProcStat) bool {
	env := ReadEnvironment(stat.PID)
	if env.Known {
		return env.Variables[MarkerVariable] == t.launch.Marker
	}
	// A session id is not used again while the session has members. When another
	// process has that id by now, the session is another one as well.
	leader, reused := all.stats[t.launch.SupervisorPID]
	return stat.Session == t.launch.SupervisorPID && (!reused || leader.Starttime == t.launch.SupervisorStart)
}

func (t *traces) kill(members []Member) {
	if isLaunchCgroup(t.launch.Cgroup, t.launch.Marker) {
		_ = killCgroup(t.launch.Cgroup) // what it misses is killed below
	}
	for _, m := range members {
		_ = m.identity().signal(unix.SIGKILL) // one that cannot be killed is told as a survivor
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
