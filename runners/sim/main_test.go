package sim

import (
	"context"
	"os"
	"testing"
)

// TestMain lets the test binary stand in for the program: workers are started by
// executing it again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sim" {
		os.Exit(Main(context.Background(), os.Args[2:], os.Environ(), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
