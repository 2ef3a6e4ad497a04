package search_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"nocturne/search"
	"nocturne/search/problems"
)

// TestTable runs campaigns of 40 trials on a few problems of the server family
// and prints the distance from the optimum, in percent, as quartiles. With -v it
// is a small version of the table that bench/search prints.
func TestTable(t *testing.T) {
	const seeds = 10
	checkpoints := []int{5, 10, 20, 30, 40}
	drawn := make([]*problems.Problem, seeds)
	for seed := range drawn {
		drawn[seed] = problems.Server(uint64(seed))
	}
	overall := make(map[string]float64) // mean over the problems and all checkpoints but the first
	for _, name := range []string{"random", "tpe", "descent", "auto"} {
		regrets := make(map[int][]float64)
		crashes := make([]float64, 0, seeds)
		for _, run := range campaignsOf(t, name, drawn, 40) {
			for _, n := range checkpoints {
				regrets[n] = append(regrets[n], 100*run.After(n))
			}
			crashes = append(crashes, float64(run.Crashes))
		}
		for _, n := range checkpoints {
			slices.Sort(regrets[n])
			t.Logf("%-8s after %2d trials %5.1f %% [%4.1f, %4.1f]", name, n,
				regrets[n][seeds/2], regrets[n][seeds/4], regrets[n][3*seeds/4])
		}
		slices.Sort(crashes)
		t.Logf("%-8s crashes %v", name, crashes[seeds/2])
		for _, n := range checkpoints[1:] {
			overall[name] += stat.Mean(regrets[n], nil) / float64(len(checkpoints)-1)
		}
	}
	for _, pair := range [][2]string{{"auto", "descent"}, {"descent", "tpe"}, {"tpe", "random"}} {
		if overall[pair[0]] >= overall[pair[1]] {
			t.Errorf("over the night %s is %.1f %% from the optimum and %s %.1f %%, want the first nearer",
				pair[0], overall[pair[0]], pair[1], overall[pair[1]])
		}
	}
	if share := overall["auto"] / overall["descent"]; share > 0.85 {
		t.Errorf("auto is %.2f times as far from the optimum as descent, want at most 0.85", share)
	}
}

// campaignsOf lets a sampler work on each problem.
func campaignsOf(t *testing.T, name string, drawn []*problems.Problem, trials int) []*problems.Run {
	t.Helper()
	sampler, err := search.New(name)
	if err != nil {
		t.Fatal(err)
	}
	runs := make([]*problems.Run, len(drawn))
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for seed, problem := range drawn {
		group.Go(func() (err error) {
			runs[seed], err = problem.Campaign(ctx, sampler, trials, uint64(seed))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return runs
}
