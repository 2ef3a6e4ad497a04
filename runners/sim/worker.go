package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// workerFlag starts a process of the tree instead of a server.
const workerFlag = "--worker"

// reportDescriptor is where a worker writes a byte once it is up.
const reportDescriptor = 3

// escapedLifetime bounds the life of children that nothing else ends, so that a
// forgotten one does not stay for ever.
const escapedLifetime = 30 * time.Minute

// workers are the children of a server.
type workers struct {
	children []*child
	// input is the end of a pipe that all children read: it closes when the server
	// dies, however it dies.
	input *os.File
	// up is closed once every scheduler has reported.
	up chan struct{}
}

type child struct {
	cmd  *exec.Cmd
	rank int
	gone chan struct{} // closed once the process was reaped
}

// errNested is returned where a child would start children of its own: the
// program that was started does not dispatch "sim" to Main.
var errNested = errors.New("this process was started as a worker of the simulated server: its program must call sim.Main with the arguments after \"sim\"")

// startWorkers forks one scheduler for each rank, titled as SGLang titles them.
func startWorkers(count int, env map[string]string) (*workers, error) {
	if len(os.Args) > 2 && os.Args[1] == "sim" && os.Args[2] == workerFlag {
		return nil, errNested
	}
	w := &workers{up: make(chan struct{})}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start workers: %w", err)
	}
	defer read.Close()
	w.input = write
	reports, report, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start workers: %w", err), write.Close())
	}
	defer report.Close()
	go func() { // ends when all have reported or died
		defer reports.Close()
		if _, err := io.ReadFull(reports, make([]byte, count)); err == nil {
			close(w.up)
		}
	}()
	for rank := range count {
		title := fmt.Sprintf("sglang::scheduler_TP%d", rank)
		if err := w.start(title, rank, env, read, report); err != nil {
			w.stop()
			return nil, err
		}
	}
	return w, nil
}

func (w *workers) start(title string, rank int, env map[string]string, input, report *os.File, args ...string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start %s: %w", title, err)
	}
	cmd := exec.Command(program)
	cmd.Args = append([]string{title, "sim", workerFlag}, args...)
	cmd.Env = environmentList(env)
	cmd.Stdin = input
	if report != nil {
		cmd.ExtraFiles = []*os.File{report} // descriptor reportDescriptor
	}
	// As with the real server, whoever is left keeps the log open.
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if len(args) > 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", title, err)
	}
	c := &child{cmd: cmd, rank: rank, gone: make(chan struct{})}
	go func() {
		defer close(c.gone)
		_ = cmd.Wait() // its exit status is in cmd.ProcessState
	}()
	w.children = append(w.children, c)
	return nil
}

// escape starts children in sessions of their own that ignore everything but the
// kill signal.
func (w *workers) escape(count int, env map[string]string) error {
	for i := range count {
		if err := w.start(fmt.Sprintf("sglang::detokenizer_%d", i), -1, env, nil, nil, "--escaped"); err != nil {
			return err
		}
	}
	return nil
}

// pid returns the process of a rank; the server's own when there is none.
func (w *workers) pid(rank int) int {
	for _, c := range w.children {
		if c.rank == rank {
			return c.cmd.Process.Pid
		}
	}
	return os.Getpid()
}

// watch calls died with the rank of the first scheduler that ends before the
// context does.
func (w *workers) watch(ctx context.Context, group *sync.WaitGroup, died func(rank, pid int, status string)) {
	for _, c := range w.children {
		if c.rank < 0 {
			continue
		}
		group.Go(func() {
			select {
			case <-c.gone:
				died(c.rank, c.cmd.Process.Pid, exitCode(c.cmd.ProcessState))
			case <-ctx.Done():
			}
		})
	}
}

// exitCode writes a status as Python's multiprocessing does: signals negative.
func exitCode(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return strconv.Itoa(-int(status.Signal()))
	}
	return strconv.Itoa(state.ExitCode())
}

func (w *workers) kill(rank int) {
	for _, c := range w.children {
		if c.rank == rank {
			_ = c.cmd.Process.Kill() // it may have gone by itself
		}
	}
}

// stop ends all schedulers and reaps them; escaped children stay.
func (w *workers) stop() {
	_ = w.input.Close()
	for _, c := range w.children {
		if c.rank >= 0 {
			_ = c.cmd.Process.Kill()
			<-c.gone
		}
	}
}

// worker is the life of a child: it waits for the server to go.
func worker(args []string) int {
	if os.Getenv("SPT_NOENV") == "" {
		if err := eraseEnvironment(); err != nil {
			fmt.Fprintln(os.Stderr, err) // the environment stays readable
		}
	}
	if len(args) > 0 && args[0] == "--escaped" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		time.Sleep(escapedLifetime)
		return 0
	}
	if len(args) > 0 {
		fmt.Fprintf(os.Stderr, "sim %s: unexpected arguments %s\n", workerFlag, strings.Join(args, " "))
		return 2
	}
	report := os.NewFile(reportDescriptor, "report")
	_, _ = report.Write([]byte{0}) // the server may be gone; then reading ends at once
	_ = report.Close()
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when the server does
	return 0
}

// eraseEnvironment fills what /proc/PID/environ shows with zeros: that is where
// Python's setproctitle, which SGLang titles its processes with, puts the title
// unless SPT_NOENV is set.
func eraseEnvironment() error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return fmt.Errorf("erase the environment: %w", err)
	}
	// The fields after the name, which may hold anything, begin with the third;
	// env_start and env_end are the 50th and the 51st (proc(5)).
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	const first, envStart, envEnd = 3, 50, 51
	if len(fields) <= envEnd-first {
		return fmt.Errorf("erase the environment: /proc/self/stat has %d fields, expected 52", len(fields)+2)
	}
	start, err := strconv.ParseInt(fields[envStart-first], 10, 64)
	if err != nil {
		return fmt.Errorf("erase the environment: env_start: %w", err)
	}
	end, err := strconv.ParseInt(fields[envEnd-first], 10, 64)
	if err != nil {
		return fmt.Errorf("erase the environment: env_end: %w", err)
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("erase the environment: %w", err)
	}
	defer memory.Close()
	if _, err := memory.WriteAt(make([]byte, end-start), start); err != nil {
		return fmt.Errorf("erase the environment: %w", err)
	}
	return nil
}
