package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// defaultPath is where programs are looked up when the server's environment has
// no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// prepare makes the cgroup and answers that all is ready.
func (s *supervisor) prepare() {
	if !s.spec.NoCgroup {
		dir, err := s.newCgroup()
		if err != nil {
			s.warn("no cgroup for the launch, its processes are found by descent: " + err.Error())
		}
		s.cgroup = dir
	}
	s.tell(report{Event: reportReady, Cgroup: s.cgroup})
}

func (s *supervisor) newCgroup() (string, error) {
	parent := s.spec.CgroupParent
	if parent == "" {
		self, err := procfs.Self()
		if err != nil {
			return "", err
		}
		if parent, err = ownCgroup(self); err != nil {
			return "", err
		}
	}
	return makeCgroup(parent, s.marker)
}

// start releases the server.
func (s *supervisor) start() {
	if s.phase != serving || s.server != 0 || s.output != nil {
		return
	}
	pid, err := s.launch()
	if err != nil {
		failed := report{Event: reportFailed, Message: err.Error()}
		errors.As(err, &failed.Errno)
		s.tell(failed)
		return
	}
	s.server = pid
	s.tell(report{Event: reportStarted, PID: pid})
}

// launch starts the server with its output connected.
func (s *supervisor) launch() (int, error) {
	path, err := lookPath(s.spec.Args[0], s.spec.Env["PATH"])
	if err != nil {
		return 0, err
	}
	if info, err := os.Stat(s.spec.Directory); err != nil {
		return 0, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return 0, fmt.Errorf("working directory %s: %w", s.spec.Directory, syscall.ENOTDIR)
	}
	var log io.WriteCloser
	if s.spec.LogPath != "" {
		if log, err = openLog(s.spec.LogPath, s.spec.LogLimit); err != nil {
			return 0, fmt.Errorf("log of the server: %w", err)
		}
	}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	output, writers, err := newOutput(log, s.warn)
	if err != nil {
		return 0, fmt.Errorf("pipes for the server's output: %w", err)
	}
	pid, err := s.fork(path, []uintptr{stdin.Fd(), writers[0].Fd(), writers[1].Fd()})
	for _, w := range writers {
		w.Close()
	}
	s.output = output
	go output.run(s.lines) // ends with the output; finish waits for it
	return pid, err
}

// fork starts the server, in the cgroup from its first instruction on. The
// kernel may still refuse that (permissions, a threaded cgroup): then without.
func (s *supervisor) fork(path string, files []uintptr) (int, error) {
	attr := &syscall.ProcAttr{
		Dir: s.spec.Directory, Env: s.environment(), Files: files,
		// A group of its own keeps signals that the server sends to its group from
		// the supervisor. It stays in the supervisor's session, whose id is on
		// record.
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if s.cgroup != "" {
		pid, err := forkInto(s.cgroup, path, s.spec.Args, attr)
		if err == nil {
			return pid, nil
		}
		attr.Sys.UseCgroupFD = false
		pid, plain := syscall.ForkExec(path, s.spec.Args, attr)
		if plain == nil {
			s.warn("the server could not be put into its cgroup, its processes are found by descent: " + err.Error())
			return pid, nil
		}
	}
	pid, err := syscall.ForkExec(path, s.spec.Args, attr)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", path, err)
	}
	return pid, nil
}

func forkInto(cgroup, path string, args []string, attr *syscall.ProcAttr) (int, error) {
	fd, err := unix.Open(cgroup, unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_PATH, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
	return syscall.ForkExec(path, args, attr)
}

// environment is that of the server, in a stable order.
func (s *supervisor) environment() []string {
	env := make([]string, 0, len(s.spec.Env)+1)
	for name, value := range s.spec.Env {
		if name != MarkerVariable {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, MarkerVariable+"="+s.marker)
	slices.Sort(env)
	return env
}

// lookPath finds a program as execvp(3) does, but in the path of the server, not
// in that of this process. Empty elements of the path, the working directory,
// are skipped.
func lookPath(program, path string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	if path == "" {
		path = defaultPath
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, program)
		info, err := os.Stat(candidate)
		if dir != "" && err == nil && info.Mode().IsRegular() && unix.Access(candidate, unix.X_OK) == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("start %s: %w: %w in PATH %q of the server", program, exec.ErrNotFound, syscall.ENOENT, path)
}
