package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Member is one process of a launch.
type Member struct {
	PID    int `json:"pid"`
	Parent int `json:"parent"`
	// Start is in clock ticks since boot; with the pid it names the process for
	// good, because pids are used again.
	Start uint64 `json:"start"`
	// State is the letter of ps: R runs, S sleeps, D hangs in the kernel, Z is
	// dead but not yet collected by its parent.
	State string `json:"state"`
	// Threads of a process in state Z are more than one when one of them hangs.
	Threads int `json:"threads"`
	// Args is the command line as the process shows it now; a server may have
	// replaced it by a title.
	Args []string `json:"args"`
}

// Command is the command line for people.
func (m Member) Command() string { return strings.Join(m.Args, " ") }

func (m Member) String() string {
	return fmt.Sprintf("pid %d (%s, state %s)", m.PID, cmp.Or(m.Command(), "?"), m.State)
}

func (m Member) identity() identity { return identity{pid: m.PID, start: m.Start} }

// dead says that a process will never run again: it has ended with all of its
// threads.
func (m Member) dead() bool { return dead(m.State, m.Threads) }

func dead(state string, threads int) bool {
	return (state == "Z" || state == "X") && threads <= 1
}

// identity names a process beyond the reuse of pids.
type identity struct {
	pid   int
	start uint64
}

// identify reads the identity of a pid.
func identify(pid int) (identity, error) {
	stat, err := readStat(pid)
	if err != nil {
		return identity{}, err
	}
	return identity{pid: pid, start: stat.Starttime}, nil
}

// running says whether the process still exists and is not dead.
func (id identity) running() bool {
	stat, err := readStat(id.pid)
	return err == nil && stat.Starttime == id.start && !dead(stat.State, stat.NumThreads)
}

// signal sends a signal to exactly this process. A process that is gone is no
// error.
func (id identity) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case err != nil:
		fd = -1 // a kernel before 5.3, or a sandbox that forbids pidfds
	default:
		defer unix.Close(fd)
	}
	if now, err := identify(id.pid); err != nil || now != id {
		return nil
	}
	if fd >= 0 {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		err = unix.Kill(id.pid, sig)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s to pid %d: %w", unix.SignalName(sig), id.pid, err)
	}
	return nil
}

func readStat(pid int) (procfs.ProcStat, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return proc.Stat()
}

// kernelThread is the flag PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

// snapshot is every process of the machine at about one moment.
type snapshot struct {
	stats    map[int]procfs.ProcStat
	children map[int][]int
}

// takeSnapshot reads /proc. Processes that end meanwhile are left out.
func takeSnapshot() (snapshot, error) {
	procs, err := procfs.AllProcs()
	if err != nil {
		return snapshot{}, fmt.Errorf("list the processes: %w", err)
	}
	s := snapshot{stats: make(map[int]procfs.ProcStat, len(procs)), children: make(map[int][]int)}
	for _, proc := range procs {
		stat, err := proc.Stat()
		if err != nil || stat.Flags&kernelThread != 0 {
			continue
		}
		s.stats[stat.PID] = stat
		s.children[stat.PPID] = append(s.children[stat.PPID], stat.PID)
	}
	return s, nil
}

// descendants returns the processes below root, parents before their children,
// so that killing in this order stops those that start others anew.
func (s snapshot) descendants(root int) []int {
	var found []int
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, child := range s.children[queue[0]] {
			if !seen[child] {
				seen[child] = true
				found = append(found, child)
				queue = append(queue, child)
			}
		}
	}
	return found
}

func (s snapshot) identity(pid int) identity {
	return identity{pid: pid, start: s.stats[pid].Starttime}
}

// members describes pids, those that are known, without duplicates, the oldest
// first.
func (s snapshot) members(pids []int) []Member {
	var members []Member
	seen := map[int]bool{}
	for _, pid := range pids {
		stat, ok := s.stats[pid]
		if !ok || seen[pid] {
			continue
		}
		seen[pid] = true
		member := Member{PID: pid, Parent: stat.PPID, Start: stat.Starttime, State: stat.State, Threads: stat.NumThreads}
		if proc, err := procfs.NewProc(pid); err == nil {
			member.Args, _ = proc.CmdLine() // empty for the dead
		}
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
	return members
}

// bootID names the current boot of the kernel.
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the id of this boot: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
