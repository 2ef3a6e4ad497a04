package postgres_test

import (
	"os"
	"testing"

	"nocturne/internal/testpg"
	"nocturne/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Worker()
	os.Exit(testpg.Run(m))
}

func TestConformance(t *testing.T) { storetest.Run(t, testpg.Empty) }

func Benchmark(b *testing.B) { storetest.Benchmark(b, testpg.URL) }

func BenchmarkMillion(b *testing.B) { storetest.BenchmarkMillion(b, testpg.URL) }
