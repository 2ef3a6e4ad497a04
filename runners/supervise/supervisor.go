package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// orphanGrace is how long what is left of a tree may take to end by itself
	// once the server's own process has ended.
	orphanGrace = 2 * time.Second
	// drainTime is how long the output may take to end after the last process.
	drainTime = time.Second
	// cgroupTime is how long the kernel may take to release an emptied cgroup.
	cgroupTime = 2 * time.Second
	// Waits between two rounds of killing.
	firstKillWait, lastKillWait = 2 * time.Millisecond, 100 * time.Millisecond
)

// Main is the supervisor. The tuner's executable calls it, with the arguments
// after Command, before it does anything else, and exits with what it returns.
func Main([]string) int {
	// The parent-death signal of the server is bound to the thread that started
	// it (prctl(2)); this one lives as long as the process.
	runtime.LockOSThread()
	for _, fd := range []int{controlFD, reportFD, linesFD} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			fmt.Fprintf(os.Stderr, "%s is started by nocturne itself and is of no use by hand\n", Command)
			return 2
		}
		// The server must not inherit the ends of the tuner's pipes,
		unix.CloseOnExec(fd)
	}
	// nor what the tuner itself inherited without asking (Linux 5.11).
	_ = unix.CloseRange(controlFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	s := &supervisor{
		reports:    json.NewEncoder(os.NewFile(reportFD, "report")),
		lines:      os.NewFile(linesFD, "lines"),
		signals:    make(chan os.Signal, 16),
		childEnded: make(chan os.Signal, 1),
		killTimer:  time.NewTimer(time.Hour),
		signalled:  map[identity]unix.Signal{},
	}
	s.killTimer.Stop()
	s.run(receiveOrders(os.NewFile(controlFD, "control")))
	return 0
}

// receiveOrders decodes orders until the tuner's end of the pipe is closed.
func receiveOrders(r io.Reader) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for decoder := json.NewDecoder(r); ; {
			var next order
			if err := decoder.Decode(&next); err != nil {
				return
			}
			orders <- next
		}
	}()
	return orders
}

// phase is how far the end of a launch has come.
type phase uint8

const (
	serving     phase = iota // nobody has asked for the end
	terminating              // SIGTERM sent; killTimer says when patience ends
	killing                  // SIGKILL sent; repeated by killTimer
	finished                 // nothing is left
)

// supervisor is the state of the supervising process. All but the reports is
// owned by the goroutine of run.
type supervisor struct {
	reportLock sync.Mutex
	reports    *json.Encoder

	lines      *os.File
	signals    chan os.Signal
	childEnded chan os.Signal
	output     *output // nil before the start

	spec   Spec
	marker string
	cgroup string

	server    int // pid, 0 before the start and after the end
	phase     phase
	killTimer *time.Timer
	killWait  time.Duration
	deadline  time.Time
	signalled map[identity]unix.Signal // the last one by signalTree
}

// run is the life of the supervisor: it returns when the end of the launch was
// asked for, by an order, a signal or the end of the tuner, and nothing is left.
func (s *supervisor) run(orders <-chan order) {
	// Handlers rather than SIG_IGN, which the server would inherit. Interrupts
	// are the tuner's business: it stops the launch in its own time.
	signal.Notify(s.childEnded, unix.SIGCHLD)
	signal.Notify(s.signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	// Not the tuner's name: `pkill nocturne` is meant for that one, and this one
	// has to clean up after it.
	_ = os.WriteFile("/proc/self/comm", []byte(Command), 0)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		s.warn("orphans of the server cannot be collected: " + err.Error())
	}
	for s.phase != finished {
		select {
		case next, ok := <-orders:
			if !ok {
				orders = nil
				next = order{Do: orderStop, Timeout: s.spec.StopTimeout}
			}
			s.obey(next)
		case sig := <-s.signals:
			if sig == unix.SIGTERM {
				s.terminated()
			}
		case <-s.childEnded:
			s.collect()
		case <-s.killTimer.C:
			s.kill()
		}
	}
	s.finish()
}

func (s *supervisor) obey(next order) {
	switch next.Do {
	case orderPrepare:
		s.spec, s.marker = *next.Spec, next.Marker
		s.prepare()
	case orderStart:
		s.start()
	case orderStop:
		s.stop(next.Timeout)
	}
}

// terminated is called for SIGTERM: the first stops the launch, the second loses
// patience.
func (s *supervisor) terminated() {
	if s.phase == serving {
		s.stop(s.spec.StopTimeout)
	} else {
		s.stop(0)
	}
}

// stop begins the end, or brings it forward.
func (s *supervisor) stop(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	switch s.phase {
	case serving:
		s.phase, s.deadline = terminating, deadline
		if s.collect(); s.phase == finished {
			return
		}
		if timeout > 0 {
			s.terminate()
		}
	case terminating:
		s.deadline = earlier(s.deadline, deadline)
	default:
		return
	}
	s.killTimer.Reset(time.Until(s.deadline))
}

// terminate asks the server's own process to end, because it knows best how to
// end its workers; without it, everything that is left.
func (s *supervisor) terminate() {
	if s.server != 0 {
		_ = unix.Kill(s.server, unix.SIGTERM) // ours until it is collected: no reuse
		return
	}
	s.deadline = earlier(s.deadline, time.Now().Add(orphanGrace))
	s.signalTree(unix.SIGTERM)
}

// kill ends what did not end by itself, and comes again until nothing is left.
func (s *supervisor) kill() {
	if s.phase == terminating {
		s.phase, s.killWait = killing, firstKillWait
	}
	if s.cgroup != "" {
		if err := killCgroup(s.cgroup); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.warn("the cgroup cannot be killed as one: " + err.Error())
		}
	}
	if s.signalTree(unix.SIGKILL) {
		s.killWait = firstKillWait // the tree still grows
	}
	s.killTimer.Reset(s.killWait)
	s.killWait = min(2*s.killWait, lastKillWait)
}

// signalTree signals all descendants and says whether some got this signal for
// the first time. Those that appear meanwhile are met the next time; as
// subreaper this process loses none.
func (s *supervisor) signalTree(sig unix.Signal) (fresh bool) {
	all, err := takeSnapshot()
	if err != nil {
		s.warn(err.Error())
		return false
	}
	for _, pid := range all.descendants(os.Getpid()) {
		id := all.identity(pid)
		first := s.signalled[id] != sig
		s.signalled[id] = sig
		if err := id.signal(sig); err != nil && first {
			s.warn(err.Error())
		}
		fresh = fresh || first
	}
	return fresh
}

// collect waits for every child that has ended. When there is no child at all,
// then there is no descendant either: orphans become children of a subreaper.
func (s *supervisor) collect() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			if s.phase != serving {
				s.phase = finished
			}
			return
		case pid == 0:
			return
		case pid == s.server:
			s.serverEnded(syscall.WaitStatus(status))
		}
	}
}

func (s *supervisor) serverEnded(status syscall.WaitStatus) {
	s.server = 0
	ended := report{Event: reportExited, Code: status.ExitStatus()}
	if status.Signaled() {
		ended.Signal, ended.Core = status.Signal(), status.CoreDump()
	}
	s.tell(ended)
	if s.phase == terminating {
		s.terminate()
		s.killTimer.Reset(time.Until(s.deadline))
	}
}

// finish completes the output and removes the cgroup.
func (s *supervisor) finish() {
	if s.cgroup != "" {
		// Empty as far as descendants go; a process that was moved in from outside
		// must not keep it alive.
		_ = killCgroup(s.cgroup)
		if err := removeCgroup(s.cgroup, cgroupTime); err != nil {
			s.warn("the cgroup cannot be removed: " + err.Error())
		}
	}
	if s.output != nil {
		s.output.finish(drainTime)
	}
	s.tell(report{Event: reportGone})
}

// tell sends a report. A tuner that is gone needs none.
func (s *supervisor) tell(r report) {
	s.reportLock.Lock()
	defer s.reportLock.Unlock()
	_ = s.reports.Encode(r)
}

func (s *supervisor) warn(message string) { s.tell(report{Event: reportWarning, Message: message}) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
