package supervise

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"nocturne/runners"
)

// lifetime ends every helper by itself, should a test fail to.
const lifetime = 2 * time.Minute

// helpers are the programs that stand in for servers and their workers.
var helpers = map[string]func(args []string) int{
	"exit":     helperExit,
	"suicide":  helperSuicide,
	"block":    helperBlock,
	"stubborn": helperStubborn,
	"print":    helperPrint,
	"flood":    helperFlood,
	"progress": helperProgress,
	"status":   helperStatus,
	"family":   helperFamily,
	"daemon":   helperDaemon,
	"nursery":  helperNursery,
	"hydra":    helperHydra,
	"scrub":    helperScrub,
	"clobber":  helperClobber,
	"listen":   helperListen,
	"tuner":    helperTuner,
	"recover":  helperRecover,
}

func helper(name string, args []string) int {
	run, ok := helpers[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such helper:", name)
		return 2
	}
	return run(args)
}

// spawn starts another helper. Its end is nobody's business.
func spawn(attr *syscall.SysProcAttr, env []string, name string, args ...string) int {
	cmd := exec.Command("/proc/self/exe", append([]string{"helper", name}, args...)...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.Env = os.Stdout, os.Stderr, attr, env
	if err := cmd.Start(); err != nil {
		fmt.Println("spawn:", err)
		return 0
	}
	return cmd.Process.Pid
}

func helperExit(args []string) int {
	code, _ := strconv.Atoi(args[0])
	return code
}

func helperSuicide([]string) int {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	return helperBlock(nil)
}

// helperBlock says "up PID" and waits. It ends at SIGTERM, as the default is.
func helperBlock([]string) int {
	fmt.Println("up", os.Getpid())
	time.Sleep(lifetime)
	return 0
}

// helperStubborn is helperBlock that ignores SIGTERM.
func helperStubborn([]string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return helperBlock(nil)
}

// helperPrint writes each argument as it is, with C escapes.
func helperPrint(args []string) int {
	for _, arg := range args {
		text, err := strconv.Unquote(`"` + arg + `"`)
		if err != nil {
			return 2
		}
		fmt.Print(text)
	}
	return 0
}

// helperFlood writes lines of 100 bytes to a total of args[0] bytes.
func helperFlood(args []string) int {
	total, _ := strconv.Atoi(args[0])
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for i := range total / 100 {
		fmt.Fprintf(out, "line %9d %s\n", i, strings.Repeat("x", 84))
	}
	_ = out.Flush()
	fmt.Fprintln(os.Stderr, "flooded")
	return 0
}

// helperProgress draws a progress bar that rests within its line.
func helperProgress([]string) int {
	fmt.Print("\rloading 10%")
	time.Sleep(lifetime)
	return 0
}

// helperStatus tells what a server inherits.
func helperStatus([]string) int {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil {
			fmt.Println("fd", fd.Name(), target)
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Sig") {
			fmt.Print(line)
		}
	}
	dir, _ := os.Getwd()
	fmt.Println("directory", dir)
	fmt.Println("environment", strings.Join(os.Environ(), "|"))
	return 0
}

// helperFamily is the server of F18: workers in new sessions, one of which
// ignores SIGTERM, a daemon that forked twice, and an ordinary child.
func helperFamily([]string) int {
	spawn(&syscall.SysProcAttr{Setsid: true}, nil, "stubborn")
	spawn(&syscall.SysProcAttr{Setsid: true}, nil, "block")
	spawn(nil, nil, "daemon")
	spawn(nil, []string{"EMPTY=1"}, "stubborn")
	return helperBlock(nil)
}

// helperDaemon leaves a grandchild in a session of its own and ends.
func helperDaemon(args []string) int {
	if len(args) == 0 {
		spawn(&syscall.SysProcAttr{Setsid: true}, nil, "daemon", "again")
		return 0
	}
	spawn(&syscall.SysProcAttr{Setsid: true}, []string{"EMPTY=1"}, "stubborn")
	return 0
}

// helperNursery has a worker in a session of its own, whose child is in another
// and has an environment without a trace of the launch, and a worker that wrote
// over its environment.
func helperNursery(args []string) int {
	if len(args) == 0 {
		spawn(&syscall.SysProcAttr{Setsid: true}, nil, "nursery", "worker")
		spawn(nil, nil, "clobber", "")
	} else {
		spawn(&syscall.SysProcAttr{Setsid: true}, []string{"EMPTY=1"}, "stubborn")
	}
	return helperStubborn(nil)
}

// helperHydra grows a chain of processes below it, each in a session of its own,
// and grows it again whenever the next one is killed. Each birth uses up a file
// of the folder args[0], which bounds them; the chain is args[1] long.
func helperHydra(args []string) int {
	signal.Ignore(syscall.SIGTERM)
	length, _ := strconv.Atoi(args[1])
	fmt.Println("up", os.Getpid())
	for length > 1 && useToken(args[0]) {
		cmd := exec.Command("/proc/self/exe", "helper", "hydra", args[0], strconv.Itoa(length-1))
		cmd.Args[0] = os.Args[0]
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdout = os.Stdout
		if cmd.Start() != nil {
			break
		}
		_ = cmd.Wait()
	}
	time.Sleep(lifetime)
	return 0
}

// useToken removes one file of a folder; false when there is none left.
func useToken(dir string) bool {
	tokens, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, token := range tokens {
		if os.Remove(filepath.Join(dir, token.Name())) == nil {
			return true
		}
	}
	return false
}

// helperScrub is the server of F15: its two workers get an environment of their
// own.
func helperScrub([]string) int {
	spawn(nil, []string{"NCCL_ALGO=Ring"}, "block")
	spawn(nil, []string{}, "block")
	return helperBlock(nil)
}

// helperClobber overwrites its environment in place, as setproctitle does: with
// zero bytes, or beginning with the end of a title.
func helperClobber(args []string) int {
	self, err := procfs.Self()
	if err != nil {
		return 1
	}
	raw, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return 1
	}
	from, err := environmentAddress(self)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return 1
	}
	block := make([]byte, len(raw))
	copy(block, strings.Join(args, " "))
	if _, err := memory.WriteAt(block, from); err != nil {
		fmt.Println(err)
		return 1
	}
	return helperBlock(nil)
}

// environmentAddress is field 50, env_start, of /proc/PID/stat (proc(5)).
func environmentAddress(proc procfs.Proc) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", proc.PID))
	if err != nil {
		return 0, err
	}
	afterName := string(raw[bytes.LastIndexByte(raw, ')')+1:])
	return strconv.ParseInt(strings.Fields(afterName)[50-3], 10, 64)
}

// helperListen accepts connections on args[0] from a child process.
func helperListen(args []string) int {
	if len(args) == 1 {
		spawn(nil, nil, "listen", args[0], "child")
		return helperBlock(nil)
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer listener.Close()
	return helperBlock(nil)
}

// tunerSpec is what a test tells helperTuner.
type tunerSpec struct {
	Spec Spec
	// Until is how far it goes: prepare, start or stop.
	Until string
}

// helperTuner is a tuner of its own: it makes a launch, prints the record, and
// waits to be killed. It ends with an error when its launch fails.
func helperTuner([]string) int {
	var task tunerSpec
	if err := json.NewDecoder(os.Stdin).Decode(&task); err != nil {
		return 2
	}
	ctx := context.Background()
	p, err := Prepare(ctx, task.Spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(p.Launch())
	if task.Until != "prepare" {
		if err := p.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for {
			line, err := p.NextLine(ctx)
			if err != nil {
				break
			}
			_ = out.Encode(line)
			if task.Until == "stop" && strings.HasPrefix(line.Text, "up") {
				go func() { _ = p.Stop(ctx) }()
			}
		}
	}
	time.Sleep(lifetime)
	return 0
}

// helperRecover recovers the launch on its stdin.
func helperRecover([]string) int {
	var launch runners.Launch
	if err := json.NewDecoder(os.Stdin).Decode(&launch); err != nil {
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	defer cancel()
	if err := Recover(ctx, launch); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}
