package local

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"nocturne/runners/supervise"
)

// The rule for a server that stopped getting on. Signs of progress are a log
// line, reading from disk, and GPU memory that grows. CPU time alone is a weak
// one: a kernel compiler uses it, but NCCL also spins while it waits for a peer
// that never comes. So CPU time stretches the limit and does not lift it, and
// while the log ends in the set-up of a collective it counts for nothing.
const (
	// cpuStretch is how much longer a server may be silent while it computes.
	// DeepGEMM compiles for 10 to 20 minutes where 10 are the usual limit for
	// silence (sglang#9867).
	cpuStretch = 3
	// minRead bytes, and minReadRate bytes/s, are the least that a load reads.
	minRead     = 1 << 20
	minReadRate = 256 << 10
	// minCPU is the least share of one core of a tree that computes, spinCPU that
	// of a process that does nothing but wait in a loop.
	minCPU, spinCPU = 0.05, 0.9
	// minGrowthMiB is the least growth of GPU memory that counts: contexts of other
	// processes come and go.
	minGrowthMiB = 64
	// Bounds of the time between two looks.
	minLook, maxLook = 50 * time.Millisecond, 5 * time.Second
)

// stallRule decides when silence has lasted too long.
type stallRule struct {
	limit time.Duration
	// processes lists the tree of the launch.
	processes func() ([]supervise.Member, error)
	// memory is the GPU memory in use, 0 while it is not known.
	memory func() int64

	lines int
	moved time.Time // the last sign of progress
	// base is what the tree had consumed at the first look since moved.
	base  usage
	based time.Time // zero: not looked yet
	// spinning counts the processes that have done nothing but compute since then.
	spinning int
}

// usage is what the tree has consumed so far.
type usage struct {
	cpu       map[int]time.Duration // by pid
	read      uint64                // bytes, from disk or cache
	memoryMiB int64                 // on the GPUs
}

func newStallRule(limit time.Duration, processes func() ([]supervise.Member, error), memory func() int64) *stallRule {
	return &stallRule{limit: limit, processes: processes, memory: memory, moved: time.Now()}
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
		return 0, false // /proc and the GPUs are read only for a server that has fallen silent
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
	now.memoryMiB = r.memory()
	switch since := time.Since(r.based); {
	case r.based.IsZero():
		r.base, r.based = now, time.Now()
	case readsOn(now.read-min(r.base.read, now.read), since), r.base.memoryMiB > 0 && now.memoryMiB >= r.base.memoryMiB+minGrowthMiB:
		r.base, r.based, r.moved = now, time.Now(), time.Now()
	case r.base.memoryMiB == 0:
		r.base.memoryMiB = now.memoryMiB // the first answer of the GPUs comes late
	}
	return r.computed(now)
}

// computed compares CPU times with the first look and counts who spins.
func (r *stallRule) computed(now usage) (computing bool) {
	since := time.Since(r.based).Seconds()
	total := 0.0
	r.spinning = 0
	for pid, cpu := range now.cpu {
		spent := (cpu - r.base.cpu[pid]).Seconds()
		total += spent
		if since > 0 && spent >= spinCPU*since {
			r.spinning++
		}
	}
	return total >= minCPU*since
}

// readsOn tells a load from disk from the small talk of idle processes.
func readsOn(read uint64, since time.Duration) bool {
	return float64(read) >= max(minRead, minReadRate*since.Seconds())
}

// consumption adds up the tree.
func consumption(members []supervise.Member) usage {
	sum := usage{cpu: make(map[int]time.Duration, len(members))}
	for _, member := range members {
		process, err := procfs.NewProc(member.PID)
		if err != nil {
			continue
		}
		if stat, err := process.Stat(); err == nil {
			sum.cpu[member.PID] = time.Duration(stat.CPUTime() * float64(time.Second))
		}
		if io, err := process.IO(); err == nil {
			sum.read += max(io.RChar, io.ReadBytes)
		}
	}
	return sum
}

// memoryGauge reads GPU memory beside the wait: the tool that tells it takes up
// to a second, and hangs itself when the driver does.
type memoryGauge struct {
	read       func(context.Context) ([]int64, error)
	background *sync.WaitGroup

	mu     sync.Mutex
	asking bool
	total  int64 // MiB
}

// gaugeTimeout bounds one reading.
const gaugeTimeout = 30 * time.Second

// latest is the last reading, 0 when there was none. It asks for another one
// unless one is under way.
func (g *memoryGauge) latest(ctx context.Context) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asking {
		g.asking = true
		g.background.Go(func() { g.ask(ctx) })
	}
	return g.total
}

func (g *memoryGauge) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
	defer cancel()
	used, err := g.read(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asking = false
	if err != nil {
		return // unknown is no sign of either kind; the last reading stays
	}
	g.total = 0
	for _, mib := range used {
		g.total += mib
	}
}
