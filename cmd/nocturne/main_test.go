package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"nocturne/internal/testpg"
	"nocturne/runners/local"
	"nocturne/runners/supervise"
)

// locksVariable names the folder of the host's locks in processes that tests
// start: tests must not wait for campaigns of the machine, nor for each other.
const locksVariable = "NOCTURNE_TEST_LOCKS"

// The test binary is also the program, its supervisor and the simulated server:
// a copy of it named nocturne is the first in PATH.
func TestMain(m *testing.M) {
	// The workers of the simulated server have names of their own.
	if len(os.Args) > 1 && (os.Args[1] == "sim" || os.Args[1] == supervise.Command) {
		os.Exit(mainStatus(testHost()))
	}
	testscript.Main(withPostgres{m}, map[string]func(){
		"nocturne": func() { os.Exit(mainStatus(testHost())) },
	})
}

// withPostgres removes the tests' PostgreSQL cluster when they are over.
type withPostgres struct{ m *testing.M }

func (w withPostgres) Run() int { return testpg.Run(w.m) }

// testHost is this machine with locks of the test's own, and without what GPUs
// and NCCL's files of the machine would bring in.
func testHost() local.Options {
	return local.Options{
		LockDirectory: os.Getenv(locksVariable),
		GPUMemory:     func(context.Context) ([]int64, error) { return nil, nil },
		ConfFiles:     func(map[string]string) []string { return nil },
	}
}
