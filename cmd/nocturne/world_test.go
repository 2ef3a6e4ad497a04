package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nocturne/internal/testpg"
	"nocturne/store"
	"nocturne/store/open"
	"nocturne/tuner/output"
)

// patience is how long a test waits for something that takes a moment.
const patience = 60 * time.Second

// world is a place for real processes of the program: a home, a store, locks
// and a program file of its own, by which its processes are known.
type world struct {
	t       *testing.T
	folder  string
	program string
	db      string
	env     []string
	opened  store.Store // see store
}

// worldVariable marks the commands of a world's campaigns in /proc.
const worldVariable = "NOCTURNE_TEST_WORLD"

func newWorld(t *testing.T, db string) *world {
	t.Helper()
	w := &world{t: t, folder: t.TempDir(), db: db}
	original, err := exec.LookPath("nocturne")
	if err != nil {
		t.Fatal(err)
	}
	// A link, since the name in /proc/PID/exe is that by which it was started.
	w.program = filepath.Join(w.folder, "bin", "nocturne")
	for _, folder := range []string{"bin", "home", "locks"} {
		if err := os.Mkdir(filepath.Join(w.folder, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(original, w.program); err != nil {
		t.Fatal(err)
	}
	if w.db == "" {
		w.db = "sqlite:" + filepath.Join(w.folder, "home", "nocturne.db")
	}
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.folder, "home"), "NOCTURNE_DB=" + w.db,
		locksVariable + "=" + filepath.Join(w.folder, "locks"), "GORACE=atexit_sleep_ms=0",
	}
	t.Cleanup(func() { w.killAll() })
	return w
}

// stores are the databases that a test runs on, by name.
var stores = map[string]func(*testing.T) string{
	"sqlite":   func(*testing.T) string { return "" },
	"postgres": func(t *testing.T) string { return testpg.Empty(t) },
}

// onStores runs a test in a world on each kind of store.
func onStores(t *testing.T, test func(t *testing.T, w *world)) {
	for name, url := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, url(t)))
		})
	}
}

// write puts a file into the world's folder.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.program, args...)
	cmd.Env, cmd.Dir = w.env, w.folder
	return cmd
}

// run runs the program to its end.
func (w *world) run(args ...string) (stdout, stderr string, status int) {
	w.t.Helper()
	var out, errors bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errors
	status = exitCode(w.t, cmd.Run())
	return out.String(), errors.String(), status
}

// answer runs a command that must succeed and reads its document.
func answer[T any](w *world, args ...string) T {
	w.t.Helper()
	stdout, stderr, status := w.run(append(args, "--json")...)
	var document T
	if err := json.Unmarshal([]byte(stdout), &document); status != 0 || err != nil {
		w.t.Fatalf("nocturne %s: exit status %d, %v\n%s%s", strings.Join(args, " "), status, err, stdout, stderr)
	}
	return document
}

// killed is the exit status of a process that a signal ended.
const killed = -1

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// event is one line of `tune --json`.
type event struct {
	output.Header
	Trial json.RawMessage `json:"trial"`
	line  string
}

// number is the trial of the event: trial_finished carries the whole object.
func (e event) number() int {
	var number int
	if json.Unmarshal(e.Trial, &number) == nil {
		return number
	}
	var trial output.Trial
	_ = json.Unmarshal(e.Trial, &trial)
	return trial.Trial
}

// process is a running `tune --json` or `resume --json`.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan event
	stderr bytes.Buffer
	done   chan struct{}
	status int // once done
}

// start starts a tuner and reads its events.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	p := &process{t: w.t, cmd: w.command(append(args, "--json")...), events: make(chan event, 10_000), done: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.read(stdout)
		if err := p.cmd.Wait(); err != nil {
			p.status = p.cmd.ProcessState.ExitCode()
		}
	}()
	return p
}

func (p *process) read(stdout io.Reader) {
	defer close(p.events)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		e := event{line: lines.Text()}
		if json.Unmarshal(lines.Bytes(), &e) == nil { // a last line may be cut short
			p.events <- e
		}
	}
}

// await reads events up to one that is wanted; false when the tuner ended first.
func (p *process) await(wanted func(event) bool) bool {
	p.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e, open := <-p.events:
			if !open || wanted(e) {
				return open
			}
		case <-limit:
			p.t.Fatalf("an event that was awaited has not come in %s", patience)
		}
	}
}

// end waits for the end and returns the exit status, or killed.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Fatalf("the tuner has not ended in %s: %s", patience, p.stderr.String())
	}
	return p.status
}

// endsWith waits for the end, which must have this exit status.
func (p *process) endsWith(want int) {
	p.t.Helper()
	if status := p.end(); status != want {
		p.t.Errorf("the tuner ended with %d, want %d: %s", status, want, p.stderr.String())
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// processes lists the living processes of the world: those of its program, and
// those that its campaigns marked.
func (w *world) processes() []int {
	w.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "exe")) // none: dead by now
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		marked := slices.Contains(strings.Split(string(environ), "\x00"), worldVariable+"="+w.folder)
		if exe == w.program || marked {
			found = append(found, pid)
		}
	}
	return found
}

// awaitSilence waits until no process of the world is left.
func (w *world) awaitSilence() {
	w.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(patience)
	for left := w.processes(); len(left) > 0; left = w.processes() {
		select {
		case <-ticker.C:
		case <-limit:
			w.t.Fatalf("processes are left: %s", describe(left))
		}
	}
}

func describe(pids []int) string {
	var lines []string
	for _, pid := range pids {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // for people
		lines = append(lines, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
	}
	return strings.Join(lines, "\n")
}

// killAll is for the end of a test that failed.
func (w *world) killAll() {
	for _, pid := range w.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// store is the world's store, open beside its processes.
func (w *world) store() store.Store {
	w.t.Helper()
	if w.opened == nil {
		opened, err := open.Store(w.t.Context(), w.db)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = opened.Close() })
		w.opened = opened
	}
	if err := w.opened.Migrate(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.opened
}
