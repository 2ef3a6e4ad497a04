package supervise

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestExit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want Exit
		text string
	}{
		"success": {[]string{"exit", "0"}, Exit{}, "exited with status 0"},
		"failure": {[]string{"exit", "75"}, Exit{Code: 75}, "exited with status 75"},
		"signal":  {[]string{"suicide"}, Exit{Code: -1, Signal: syscall.SIGKILL}, "killed by signal 9 (killed)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, helperSpec(t, test.args[0], test.args[1:]...))
			if got := awaitDone(t, p); got != test.want || got.String() != test.text {
				t.Errorf("exit = %+v (%s), want %+v (%s)", got, got, test.want, test.text)
			}
			if err := p.Stop(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestExitUnknownWhileRunning(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "block"))
	if exit, ok := p.Exit(); ok {
		t.Errorf("a running server has exit %v", exit)
	}
}

func TestLaunchNamesTheSupervisor(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "block")
	before := time.Now()
	p := prepare(t, spec)
	launch := p.Launch()
	if id, err := identify(launch.SupervisorPID); err != nil || id.start != launch.SupervisorStart {
		t.Errorf("launch names supervisor %d started at %d; the process says %v, %v",
			launch.SupervisorPID, launch.SupervisorStart, id, err)
	}
	stat, err := readStat(launch.SupervisorPID)
	if err != nil || stat.Session != launch.SupervisorPID {
		t.Errorf("the supervisor is in session %d, want one of its own: a terminal that closes must not end it", stat.Session)
	}
	if stat.Comm != Command {
		t.Errorf("the supervisor is called %q, want %q: it must outlive `pkill nocturne`", stat.Comm, Command)
	}
	if boot, _ := bootID(); launch.BootID != boot {
		t.Errorf("boot id %q, want %q", launch.BootID, boot)
	}
	if launch.LogPath != spec.LogPath || launch.Marker == "" || launch.Started.Before(before.Add(-time.Second)) {
		t.Errorf("launch = %+v", launch)
	}
	if found := members(t, p); len(found) != 0 || p.PID() != 0 {
		t.Errorf("before Start there are processes %v", found)
	}
	if launch.Cgroup != "" {
		if _, err := os.Stat(launch.Cgroup); err != nil {
			t.Error(err)
		}
	}
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(launch.Cgroup); launch.Cgroup != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("cgroup after Stop: %v", err)
	}
	if _, err := os.Stat(spec.LogPath); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a launch that never started has a log: %v", err)
	}
}

func TestSecretsStayOutOfTheSupervisor(t *testing.T) {
	t.Parallel()
	const secret = "hf_0123456789"
	spec := helperSpec(t, "block")
	spec.Env["HF_TOKEN"] = secret
	p := start(t, spec)
	await(t, p, "up")
	supervisor, err := procfs.NewProc(p.Launch().SupervisorPID)
	if err != nil {
		t.Fatal(err)
	}
	env, err := supervisor.Environ()
	if err != nil {
		t.Fatal(err)
	}
	args, err := supervisor.CmdLine()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(env, args...) {
		if strings.Contains(text, secret) {
			t.Errorf("the supervisor shows the secret in %q", text)
		}
	}
	if got := ReadEnvironment(p.PID()).Variables["HF_TOKEN"]; got != secret {
		t.Errorf("the server has HF_TOKEN=%q", got)
	}
}

// A server must find itself as if started from a shell: three files, no ignored
// signals, only the environment it was given.
func TestServerInheritsNothing(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "status")
	spec.Env = map[string]string{"B": "2", "A": "1 = one"}
	p := start(t, spec)
	awaitDone(t, p)
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for _, line := range rest(t, p) {
		name, value, _ := strings.Cut(line.Text, " ")
		switch {
		case name == "fd":
			fd, target, _ := strings.Cut(value, " ")
			expected := map[string]string{"0": "/dev/null", "1": "pipe:", "2": "pipe:"}
			// The helper's own runtime and its reading of the folder add others.
			own := strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/proc/") ||
				strings.HasPrefix(target, "/sys/fs/cgroup/")
			if !own && (expected[fd] == "" || !strings.HasPrefix(target, expected[fd])) {
				t.Errorf("inherited file descriptor %s: %s", fd, target)
			}
		case strings.HasPrefix(line.Text, "SigIgn:"):
			if mask := strings.TrimSpace(strings.TrimPrefix(line.Text, "SigIgn:")); strings.Trim(mask, "0") != "" {
				t.Errorf("inherited ignored signals %s", mask)
			}
		case name == "directory":
			if want, _ := filepath.EvalSymlinks(spec.Directory); value != want {
				t.Errorf("directory %q, want %q", value, want)
			}
		case name == "environment":
			got := strings.Split(value, "|")
			want := []string{"A=1 = one", "B=2", MarkerVariable + "=" + p.Launch().Marker}
			if !slices.Equal(got, want) {
				t.Errorf("environment %q, want %q", got, want)
			}
		}
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	noProgram := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(noProgram, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*Spec)
		is     error
		text   string
	}{
		"absent":         {func(s *Spec) { s.Args = []string{"/no/such/program"} }, fs.ErrNotExist, "/no/such/program"},
		"not in path":    {func(s *Spec) { s.Args = []string{"no-such-program"}; s.Env["PATH"] = "/bin" }, fs.ErrNotExist, `"/bin"`},
		"no program":     {func(s *Spec) { s.Args = []string{noProgram} }, fs.ErrPermission, "permission denied"},
		"no directory":   {func(s *Spec) { s.Directory = "/no/such/directory" }, fs.ErrNotExist, "working directory"},
		"file directory": {func(s *Spec) { s.Directory = noProgram }, syscall.ENOTDIR, "working directory"},
		"log":            {func(s *Spec) { s.LogPath = "/no/such/directory/log" }, fs.ErrNotExist, "log"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := helperSpec(t, "block")
			test.change(&spec)
			p := prepare(t, spec)
			err := p.Start(testContext(t))
			var start *StartError
			if !errors.As(err, &start) || !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("Start: %v, want a StartError that is %v and tells %q", err, test.is, test.text)
			}
			if err := p.Stop(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]Spec{
		"no arguments": {},
		"zero byte":    {Args: []string{"a", "b\x00"}},
		"name":         {Args: []string{"a"}, Env: map[string]string{"A=B": ""}},
		"value":        {Args: []string{"a"}, Env: map[string]string{"A": "\x00"}},
		"timeout":      {Args: []string{"a"}, StopTimeout: -1},
	}
	for name, spec := range tests {
		if p, err := Prepare(testContext(t), spec); err == nil {
			_ = p.Kill(testContext(t))
			t.Errorf("%s: no error", name)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if p, err := Prepare(ended, helperSpec(t, "block")); err == nil {
		_ = p.Kill(testContext(t)) // it was ready before the context was looked at
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare with an ended context: %v", err)
	}
}

func TestProgramIsFoundInTheServersPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my-server"), []byte("#!/bin/sh\necho found\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := helperSpec(t, "block")
	spec.Args, spec.Env["PATH"] = []string{"my-server"}, "/nowhere:"+dir+":/bin"
	await(t, start(t, spec), "found")
}

func TestUnwritableCgroupIsAWarning(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "block")
	spec.CgroupParent = t.TempDir() // a plain directory: no cgroup.kill in it
	p := start(t, spec)
	await(t, p, "up")
	if warnings := p.Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "no cgroup") {
		t.Errorf("warnings %q", warnings)
	}
	if p.Launch().Cgroup != "" {
		t.Errorf("cgroup %q", p.Launch().Cgroup)
	}
	if left, _ := os.ReadDir(spec.CgroupParent); len(left) != 0 {
		t.Errorf("left in the parent: %v", left)
	}
}

func TestMainByHand(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := helperSpec(t, "block")
	spec.Args = []string{exe, Command, "by-hand"}
	p := start(t, spec)
	if exit := awaitDone(t, p); exit.Code != 2 {
		t.Errorf("exit %v, want status 2", exit)
	}
}
