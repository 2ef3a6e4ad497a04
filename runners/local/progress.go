package local

import (
	"time"

	"github.com/prometheus/procfs"

	"nocturne/runners/supervise"
)

// The rule for a server that stopped getting on. A log line is a sign of
// progress, and so is reading from disk. CPU time alone is a weak one: a kernel
// compiler uses it, but NCCL also spins while it waits for a peer that never
// comes. So CPU time stretches the limit and does not lift it, and while the
// log ends in the set-up of a collective it counts for nothing.
const (
	// cpuStretch is how much longer a server may be silent while it computes.
	// DeepGEMM compiles for 10 to 20 minutes where 10 are the usual limit for
	// silence (sglang#9867).
	cpuStretch = 3
	// minRead bytes, and minReadRate bytes/s, are the least that a load reads.
	minRead     = 1 << 20
	minReadRate = 256 << 10
	// minCPU is the least share of one core of a tree that computes.
	minCPU = 0.05
	// Bounds of the time between two looks.
	minLook, maxLook = 50 * time.Millisecond, 5 * time.Second
)

// stallRule decides when silence has lasted too long.
type stallRule struct {
	limit time.Duration
	// processes lists the tree of the launch.
	processes func() ([]supervise.Member, error)

	lines int
	moved time.Time // the last line or reading
	// base is what the tree had consumed at the first look since moved.
	base  usage
	based time.Time // zero: not looked yet
}

// usage is what the tree has consumed so far.
type usage struct {
	cpu  time.Duration
	read uint64 // bytes, from disk or cache
}

func newStallRule(limit time.Duration, processes func() ([]supervise.Member, error)) *stallRule {
	return &stallRule{limit: limit, processes: processes, moved: time.Now()}
}

// interval is how often stalled should be asked.
func (r *stallRule) interval() time.Duration {
	return min(max(r.limit/20, minLook), maxLook)
}

// stalled tells how long there has been no progress, once that is too long.
func (r *stallRule) stalled(now standing) (silent time.Duration, stalled bool) {
	if r.limit <= 0 {
		return 0, false
	}
	if now.lines != r.lines {
		r.lines, r.moved, r.based = now.lines, time.Now(), time.Time{}
		return 0, false
	}
	if time.Since(r.moved) < r.limit/4 {
		return 0, false // /proc is read only for a server that has fallen silent
	}
	limit := r.limit
	if computing := r.look(); computing && !inCollective(now) {
		limit *= cpuStretch
	}
	silent = time.Since(r.moved)
	return silent, silent >= limit
}

// look reads what the tree consumed, and tells whether it has been computing
// since the first look.
func (r *stallRule) look() (computing bool) {
	members, err := r.processes()
	if err != nil {
		return false
	}
	now := consumption(members)
	switch {
	case r.based.IsZero():
		r.base, r.based = now, time.Now()
	case readsOn(now.read-min(r.base.read, now.read), time.Since(r.based)):
		r.base, r.based, r.moved = now, time.Now(), time.Now()
	}
	since := time.Since(r.based)
	return (now.cpu - r.base.cpu).Seconds() >= minCPU*since.Seconds()
}

// readsOn tells a load from disk from the small talk of idle processes.
func readsOn(read uint64, since time.Duration) bool {
	return float64(read) >= max(minRead, minReadRate*since.Seconds())
}

// consumption adds up the tree.
func consumption(members []supervise.Member) usage {
	var sum usage
	for _, member := range members {
		process, err := procfs.NewProc(member.PID)
		if err != nil {
			continue
		}
		if stat, err := process.Stat(); err == nil {
			sum.cpu += time.Duration(stat.CPUTime() * float64(time.Second))
		}
		if io, err := process.IO(); err == nil {
			sum.read += max(io.RChar, io.ReadBytes)
		}
	}
	return sum
}
