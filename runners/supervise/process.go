package supervise

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"nocturne/runners"
)

// errSupervisorLost is wrapped by errors that come of a supervisor that ended
// without having finished its work.
var errSupervisorLost = errors.New("the supervisor ended unexpectedly")

// StartError says that the server could not be started. It unwraps to the
// system's error, so that errors.Is(err, fs.ErrNotExist) works.
type StartError struct {
	Message string
	Errno   syscall.Errno // 0 when there is none
}

func (e *StartError) Error() string { return e.Message }

func (e *StartError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Exit is how the server's own process ended.
type Exit struct {
	// Code is the exit status, -1 when a signal ended it.
	Code int
	// Signal ended it; 0 when it exited by itself.
	Signal syscall.Signal
	// CoreDumped says that the signal left a core dump.
	CoreDumped bool
	// Lost says that the supervisor vanished, so that nobody knows.
	Lost bool
}

func (e Exit) String() string {
	switch {
	case e.Lost:
		return errSupervisorLost.Error()
	case e.Signal != 0 && e.CoreDumped:
		return fmt.Sprintf("killed by signal %d (%s), core dumped", e.Signal, e.Signal)
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d (%s)", e.Signal, e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}

// Process is a launch in the hands of the tuner. Its methods may be called from
// several goroutines. Call Stop when done, whatever happened.
type Process struct {
	spec       Spec
	launch     runners.Launch
	supervisor identity
	lines      *lineQueue

	orderLock sync.Mutex
	control   io.WriteCloser

	ready   chan struct{} // closed when the supervisor is prepared
	started chan error    // the answer to Start; capacity 1
	done    chan struct{} // closed when the server ended or the supervisor is lost
	gone    chan struct{} // closed when the supervisor ended and was collected

	mu       sync.Mutex
	server   int // pid
	exit     Exit
	clean    bool // the supervisor said that nothing is left
	warnings []string
	last     string            // the supervisor's own last words
	known    map[identity]bool // members seen so far
}

// Prepare starts a supervisor for the launch, and nothing else. Store the
// result's Launch, then call Start. The context bounds the preparation only.
func Prepare(ctx context.Context, spec Spec) (*Process, error) {
	spec, err := spec.resolve()
	if err != nil {
		return nil, fmt.Errorf("prepare a launch: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("prepare a launch: %w", err)
	}
	p := &Process{
		spec:  spec,
		lines: newLineQueue(),
		launch: runners.Launch{
			BootID: boot, Marker: rand.Text(), LogPath: spec.LogPath, Started: time.Now().UTC(),
		},
		ready: make(chan struct{}), started: make(chan error, 1),
		done: make(chan struct{}), gone: make(chan struct{}),
		known: map[identity]bool{},
	}
	if err := p.startSupervisor(); err != nil {
		return nil, fmt.Errorf("start a supervisor: %w", err)
	}
	select {
	case <-p.ready:
		return p, nil
	case <-p.done:
		err = fmt.Errorf("%w: %s", errSupervisorLost, p.lastWords())
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.closeControl() // the supervisor ends by itself
	<-p.gone
	return nil, fmt.Errorf("prepare a launch: %w", err)
}

// startSupervisor starts the process and the goroutines that listen to it. They
// end when it ends.
func (p *Process) startSupervisor() error {
	var ours, theirs [3]*os.File // control, report, lines
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:i], theirs[:i])
			return err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	var stderr tailBuffer
	// The very program that runs now, also when its file was replaced meanwhile.
	cmd := exec.Command("/proc/self/exe", Command, p.launch.Marker)
	cmd.Args[0] = filepath.Base(os.Args[0])
	cmd.Dir = "/"
	cmd.Env = []string{
		"NOCTURNE_SUPERVISOR=" + p.launch.Marker,
		"GOMAXPROCS=2",             // its work is small, also on a host of 200 cores
		"GORACE=atexit_sleep_ms=0", // builds with the race detector would end late
	}
	cmd.ExtraFiles = theirs[:]
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := cmd.Start()
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return err
	}
	p.control = ours[0]
	p.supervisor, err = identify(cmd.Process.Pid)
	p.launch.SupervisorPID, p.launch.SupervisorStart = p.supervisor.pid, p.supervisor.start

	var listeners sync.WaitGroup
	listeners.Go(func() { p.listen(ours[1]) })
	listeners.Go(func() { receiveLines(ours[2], p.lines) })
	go func() {
		_ = cmd.Wait() // what there is to know came by report
		p.mu.Lock()
		p.last = stderr.String()
		p.mu.Unlock()
		listeners.Wait()
		p.lost()
		p.closeControl()
		closeAll(ours[1:])
		close(p.gone)
	}()
	if err == nil {
		err = p.order(order{Do: orderPrepare, Spec: &p.spec, Marker: p.launch.Marker})
	}
	if err != nil {
		p.closeControl()
		<-p.gone
	}
	return err
}

func closeAll(groups ...[]*os.File) {
	for _, group := range groups {
		for _, f := range group {
			f.Close()
		}
	}
}

// listen takes in the supervisor's reports until it ends.
func (p *Process) listen(r io.Reader) {
	for decoder := json.NewDecoder(r); ; {
		var next report
		if err := decoder.Decode(&next); err != nil {
			return
		}
		p.heard(next)
	}
}

func (p *Process) heard(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Event {
	case reportReady:
		p.launch.Cgroup = r.Cgroup
		close(p.ready)
	case reportStarted:
		p.server = r.PID
		p.started <- nil
	case reportFailed:
		p.started <- &StartError{Message: r.Message, Errno: r.Errno}
	case reportExited:
		p.exit = Exit{Code: r.Code, Signal: r.Signal, CoreDumped: r.Core}
		close(p.done)
	case reportWarning:
		p.warnings = append(p.warnings, r.Message)
	case reportGone:
		p.clean = true
	}
}

// lost is called when the supervisor has ended: a server that is not known to
// have ended before is counted as ended.
func (p *Process) lost() {
	select {
	case <-p.done:
	default:
		p.mu.Lock()
		p.exit = Exit{Code: -1, Lost: true}
		p.mu.Unlock()
		close(p.done)
	}
}

// Launch identifies the launch for the record. Host and Address are the caller's
// to fill in.
func (p *Process) Launch() runners.Launch { return p.launch }

// Start releases the server. It returns a *StartError when the server cannot be
// started. Call it once.
func (p *Process) Start(ctx context.Context) error {
	if err := p.order(order{Do: orderStart}); err != nil {
		return fmt.Errorf("start the server: %w: %w: %s", errSupervisorLost, err, p.lastWords())
	}
	select {
	case err := <-p.started:
		return err
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("start the server: %w", ctx.Err())
	}
	select {
	case err := <-p.started: // both were ready: a server that ended at once did start
		return err
	default:
		return fmt.Errorf("start the server: %w: %s", errSupervisorLost, p.lastWords())
	}
}

// PID is the process id of the server itself, 0 before it was started.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// Done is closed when the server's own process has ended. Others of its tree may
// still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the server's own process ended; false while it runs.
func (p *Process) Exit() (Exit, bool) {
	select {
	case <-p.done:
	default:
		return Exit{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit, true
}

// NextLine waits for the next line of output. It returns io.EOF when the last
// process that could write has ended and all lines were read. Lines that nobody
// reads are dropped, the oldest first, beyond 4 MiB.
func (p *Process) NextLine(ctx context.Context) (Line, error) { return p.lines.pop(ctx) }

// Warnings are what went wrong without stopping the launch: no cgroup could be
// made, the log cannot be written.
func (p *Process) Warnings() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.warnings...)
}

func (p *Process) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == "" {
		return "it left no message"
	}
	return p.last
}

// order sends an order to the supervisor.
func (p *Process) order(o order) error {
	p.orderLock.Lock()
	defer p.orderLock.Unlock()
	return json.NewEncoder(p.control).Encode(o)
}

func (p *Process) closeControl() {
	p.orderLock.Lock()
	defer p.orderLock.Unlock()
	_ = p.control.Close() // once more does no harm
}

// tailBuffer keeps the last part of what is written to it.
type tailBuffer struct{ bytes.Buffer }

const tailLimit = 8 << 10

// Write implements io.Writer.
func (b *tailBuffer) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if extra := b.Len() - tailLimit; extra > 0 {
		b.Next(extra)
	}
	return n, err
}
