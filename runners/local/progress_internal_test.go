package local

import (
	"testing"

	"nocturne/runners"
	"nocturne/runners/servers"
)

// Who spins as many processes as a communicator has ranks waits in a collective,
// unless it compiles.
func TestRanksThatSpin(t *testing.T) {
	tests := []struct {
		phase           string
		ranks, spinning int
		want            bool
	}{
		{servers.PhaseGraphCapture, 2, 2, true},
		{servers.PhaseKVCache, 8, 9, true},
		{servers.PhaseKVCache, 8, 7, false},
		{servers.PhaseCompile, 2, 2, false},
		{servers.PhaseAutotune, 2, 2, false},
		{servers.PhaseGraphCapture, 1, 4, false},
		{servers.PhaseGraphCapture, 0, 4, false},
	}
	for _, test := range tests {
		now := standing{phase: runners.Phase{Name: test.phase}, ranks: test.ranks}
		if got := ranksSpin(now, test.spinning); got != test.want {
			t.Errorf("%d of %d ranks spin in %s: %v", test.spinning, test.ranks, test.phase, got)
		}
	}
}
