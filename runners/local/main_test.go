package local_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/runnertest"
	"nocturne/runners/sim"
	"nocturne/runners/supervise"
)

// The test binary is also the supervisor, and the servers and commands that the
// tests run: all of them are started as processes of their own.
func TestMain(m *testing.M) {
	if status, ok := runnertest.Dispatch(os.Args); ok {
		os.Exit(status)
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Command:
			os.Exit(supervise.Main(os.Args[2:]))
		case "sim":
			os.Exit(sim.Main(context.Background(), os.Args[2:], os.Environ(), os.Stdout, os.Stderr))
		case "hold-lock":
			os.Exit(holdLock(os.Args[2]))
		}
	}
	// Tests wait for processes more than they compute, so more of them fit than there
	// are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// atOnce is how many tests run at the same time.
const atOnce = 6

// holdLock takes the lock of the whole host and keeps it until it is killed.
func holdLock(directory string) int {
	host, err := local.New(local.Options{LockDirectory: directory})
	if err == nil {
		_, err = host.Lock(context.Background(), runners.GPUSelection{All: true}, "holder")
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("locked")
	time.Sleep(time.Hour) // a select without cases is a deadlock to the runtime
	return 1
}

// newHost is this machine without GPUs, without configuration files of NCCL,
// and with an environment of the test's own.
func newHost(t testing.TB, change ...func(*local.Options)) *local.Host {
	t.Helper()
	options := local.Options{
		Environ:       []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
		LockDirectory: t.TempDir(),
		GPUMemory:     func(context.Context) ([]int64, error) { return nil, nil },
		ConfFiles:     func(map[string]string) []string { return nil },
	}
	for _, f := range change {
		f(&options)
	}
	host, err := local.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return host
}
