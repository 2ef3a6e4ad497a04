package search_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"nocturne/search"
	"nocturne/search/problems"
)

// TestTable runs campaigns of 40 trials on a few problems of the server family
// and prints the distance from the optimum, in percent, as quartiles. With -v it
// is a small version of the table that bench/search prints.
func TestTable(t *testing.T) {
	const seeds = 8
	checkpoints := []int{5, 10, 20, 30, 40}
	drawn := make([]*problems.Problem, seeds)
	for seed := range drawn {
		drawn[seed] = problems.Server(uint64(seed))
	}
	final := make(map[string]float64)
	for _, name := range []string{"random", "tpe", "descent", "auto"} {
		regrets := make(map[int][]float64)
		crashes := make([]float64, 0, seeds)
		for _, run := range campaigns(t, name, drawn) {
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
		final[name] = regrets[40][seeds/2]
	}
	for _, pair := range [][2]string{{"auto", "descent"}, {"descent", "tpe"}, {"tpe", "random"}} {
		if final[pair[0]] >= final[pair[1]] {
			t.Errorf("after 40 trials %s is %.1f %% from the optimum and %s %.1f %%, want the first nearer",
				pair[0], final[pair[0]], pair[1], final[pair[1]])
		}
	}
	if final["auto"] > 8 {
		t.Errorf("auto ends %.1f %% from the optimum, want at most 8 %%", final["auto"])
	}
}

// campaigns lets a sampler work on each problem for 40 trials.
func campaigns(t *testing.T, name string, drawn []*problems.Problem) []*problems.Run {
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
			runs[seed], err = problem.Campaign(ctx, sampler, 40, uint64(seed))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return runs
}
