package load

import (
	"math"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// lagInterval is how often the generator's own punctuality is looked at.
const lagInterval = 10 * time.Millisecond

// clientLoad is how busy the generator itself was during a round, in real time.
type clientLoad struct {
	wall      time.Duration
	processor time.Duration // time of all cores that this process used
	cores     int           // that it may use at once
	// lag is by how much a sleep of lagInterval took longer: what the stamp of a
	// chunk is late by when the process or the machine is busy. Idle it is up to a
	// millisecond, the grain of the timers.
	lag distribution
}

func newClientLoad() clientLoad { return clientLoad{lag: newDistribution()} }

// busy is the share of the processor time at hand that was used, 0 to 1.
func (l *clientLoad) busy() float64 {
	available := l.wall.Seconds() * float64(l.cores)
	if available <= 0 {
		return math.NaN()
	}
	return l.processor.Seconds() / available
}

func (l *clientLoad) join(other *clientLoad) {
	l.wall += other.wall
	l.processor += other.processor
	l.cores = max(l.cores, other.cores)
	l.lag.merge(&other.lag)
}

// selfWatch watches the generator during a round.
type selfWatch struct {
	processor func() time.Duration
	started   time.Time
	before    time.Duration
	load      clientLoad
	done      chan struct{}
	group     sync.WaitGroup
}

func (c *Client) watchSelf() *selfWatch {
	w := &selfWatch{
		processor: c.processor, started: time.Now(), before: c.processor(),
		load: newClientLoad(), done: make(chan struct{}),
	}
	w.load.cores = runtime.GOMAXPROCS(0)
	w.group.Go(w.look)
	return w
}

func (w *selfWatch) look() {
	timer := time.NewTimer(lagInterval)
	defer timer.Stop()
	for due := w.started.Add(lagInterval); ; {
		select {
		case <-w.done:
			return
		case <-timer.C:
		}
		now := time.Now()
		w.load.lag.add(now.Sub(due), 1)
		due = now.Add(lagInterval)
		timer.Reset(lagInterval)
	}
}

// stop ends the watch and returns what it saw.
func (w *selfWatch) stop() clientLoad {
	close(w.done)
	w.group.Wait()
	w.load.wall = time.Since(w.started)
	w.load.processor = w.processor() - w.before
	return w.load
}

// processorTime is what this process has used of all cores, kernel included.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0 // cannot fail for the process itself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
