package sim

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func procFile(t *testing.T, pid int, name string) string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, path := range tasks {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(content)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, child)
		}
	}
	return out
}

// alive tells whether a process exists and is no zombie.
func alive(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(content), ") ")
	return !strings.HasPrefix(state, "Z")
}

// watchDeath returns a function that waits until none of the processes runs.
func watchDeath(t *testing.T, pids []int) func() {
	t.Helper()
	var watched []unix.PollFd
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		watched = append(watched, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	return func() {
		t.Helper()
		for i := range watched {
			n, err := unix.Poll(watched[i:i+1], int(patience.Milliseconds()))
			if errors.Is(err, unix.EINTR) {
				n, err = unix.Poll(watched[i:i+1], int(patience.Milliseconds()))
			}
			if err != nil || n == 0 {
				t.Errorf("process %d is still there: %v", pids[i], err)
			}
		}
	}
}

func waitStatus(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// terminate stops a server the friendly way.
func terminate(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := waitStatus(t, cmd); status != exitOK {
		t.Errorf("exit status %d after the terminate signal, want 0", status)
	}
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitStatus(t, cmd)
}

func TestProcessTree(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *exec.Cmd){"terminated": terminate, "killed": kill} {
		cmd, log := subprocess(t, []string{"NCCL_PROTO=LL"}, "--tp=4")
		log.await(t, readyLine)
		children := childrenOf(t, cmd.Process.Pid)
		titles := map[string]bool{}
		for _, pid := range children {
			title, _, _ := strings.Cut(procFile(t, pid, "cmdline"), "\x00")
			titles[title] = true
		}
		for rank := range 4 {
			if title := fmt.Sprintf("sglang::scheduler_TP%d", rank); !titles[title] {
				t.Errorf("%s: no process is titled %s: %v", name, title, titles)
			}
		}
		dead := watchDeath(t, children)
		stop(t, cmd)
		dead()
	}
}

// Titled processes show their environment only where SPT_NOENV says so.
func TestTitlesEraseTheEnvironment(t *testing.T) {
	for _, readable := range []bool{false, true} {
		env := []string{"NCCL_PROTO=LL"}
		if readable {
			env = append(env, "SPT_NOENV=1")
		}
		cmd, log := subprocess(t, env, "--tp=1", "--sim-load-scale=9000")
		log.await(t, readyLine)
		environ := procFile(t, childrenOf(t, cmd.Process.Pid)[0], "environ")
		if strings.Contains(environ, "NCCL_PROTO=LL") != readable || environ == "" || !readable && strings.Trim(environ, "\x00") != "" {
			t.Errorf("SPT_NOENV %t: environment of the worker is %q", readable, environ)
		}
		terminate(t, cmd)
	}
}

// A scheduler that is killed from outside takes the server with it.
func TestKilledWorkerEndsTheServer(t *testing.T) {
	cmd, log := subprocess(t, nil, "--tp=2")
	log.await(t, readyLine)
	if err := syscall.Kill(childrenOf(t, cmd.Process.Pid)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := waitStatus(t, cmd); status != exitKilled || !log.has("crashed with exit code -9") {
		t.Errorf("exit status %d\n%s", status, log)
	}
}

// The server notices a busy port only once it has loaded, as SGLang does.
func TestBusyPort(t *testing.T) {
	first := start(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(first.url, "http://"), ":")
	second := launchMain(t, nil, "--port="+port)
	if status := second.exit(t); status != exitFailed || !second.log.has("[Errno 98]") || !second.log.has("Memory pool end") {
		t.Errorf("exit status %d\n%s", status, second.log)
	}
}

// A program that does not hand "sim --worker" to Main must not multiply.
func TestWorkersDoNotNest(t *testing.T) {
	saved := os.Args
	defer func() { os.Args = saved }()
	os.Args = []string{"sglang::scheduler_TP0", "sim", workerFlag}
	if _, err := startWorkers(1, nil); !errors.Is(err, errNested) {
		t.Errorf("a worker starts workers: %v", err)
	}
}

// NCCL refuses a setting in its first collective, and the server dies of it.
func TestF10_RefusedAlgorithm(t *testing.T) {
	r := launchMain(t, []string{"NCCL_ALGO=Tree", "NCCL_DEBUG=WARN"})
	if status := r.exit(t); status != exitFailed {
		t.Errorf("exit status %d", status)
	}
	for _, line := range []string{
		"NCCL WARN Error : no algorithm/protocol available for function Broadcast with datatype ncclInt8. NCCL_ALGO was set to Tree.",
		"ncclInvalidUsage", "Last error:\nError : no algorithm/protocol available",
	} {
		if !r.log.has(line) {
			t.Errorf("%q is missing in\n%s", line, r.log)
		}
	}
}

// Memory can run out at the start and under load.
func TestOutOfMemory(t *testing.T) {
	early := launchMain(t, nil, "--mem-fraction-static=0.97")
	if status := early.exit(t); status != exitFailed || !early.log.has("Capture cuda graph failed: CUDA out of memory") {
		t.Errorf("exit status %d\n%s", status, early.log)
	}
	late := start(t, nil, "--mem-fraction-static=0.94")
	if response, err := http.Post(late.url+"/v1/completions", "application/json", strings.NewReader(short)); err == nil {
		response.Body.Close()
	}
	if status := late.exit(t); status != exitKilled || !late.log.has("torch.OutOfMemoryError: CUDA out of memory.") {
		t.Errorf("exit status %d\n%s", status, late.log)
	}
}

func TestNCCLDebugFile(t *testing.T) {
	folder := t.TempDir()
	r := start(t, []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=" + folder + "/nccl.%p.log"}, "--sim-workers=2", "--tp=2")
	files, err := filepath.Glob(folder + "/nccl.*.log")
	if err != nil || len(files) != 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	if content, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(content), "Init COMPLETE") || r.log.has("NCCL INFO") {
		t.Errorf("%s and stdout:\n%s", content, r.log)
	}
}
