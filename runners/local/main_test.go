package local_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/sim"
	"nocturne/runners/supervise"
)

// The test binary is also the supervisor, and the servers and commands that the
// tests run: all of them are started as processes of their own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Command:
			os.Exit(supervise.Main(os.Args[2:]))
		case "sim":
			os.Exit(sim.Main(context.Background(), os.Args[2:], os.Environ(), os.Stdout, os.Stderr))
		case "fake":
			os.Exit(fakeServer(os.Args[2:]))
		case "fake-worker":
			os.Exit(fakeWorker(os.Args[2:]))
		case "fake-command":
			os.Exit(fakeCommand(os.Args[2:]))
		case "hold-lock":
			os.Exit(holdLock(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

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
	select {}
}
