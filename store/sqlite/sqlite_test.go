package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"nocturne/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Worker()
	os.Exit(m.Run())
}

func place(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "nocturne.db")
}

func TestConformance(t *testing.T) { storetest.Run(t, place) }

func Benchmark(b *testing.B) { storetest.Benchmark(b, place) }

func BenchmarkMillion(b *testing.B) { storetest.BenchmarkMillion(b, place) }
