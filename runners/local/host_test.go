package local_test

import (
	"testing"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/runnertest"
)

func TestHost(t *testing.T) {
	locks := t.TempDir()
	runnertest.TestHost(t, func(t testing.TB) runners.Host {
		return newHost(t, func(o *local.Options) { o.LockDirectory = locks })
	})
}
