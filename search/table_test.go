package search_test

import (
	"context"
	"slices"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

// TestTable runs campaigns of 40 trials on a few problems of the server family
// and prints the distance from the optimum, in percent, as quartiles. With -v it
// is a small version of the table that bench/search prints.
func TestTable(t *testing.T) {
	const seeds = 20
	checkpoints := []int{5, 10, 20, 30, 40}
	final := make(map[string]float64)
	for _, name := range []string{"random", "tpe", "descent"} {
		regrets := make(map[int][]float64)
		crashes := make([]float64, 0, seeds)
		for seed := range uint64(seeds) {
			sampler, err := search.New(name)
			if err != nil {
				t.Fatal(err)
			}
			run, err := problems.Server(seed).Campaign(context.Background(), sampler, 40, seed)
			if err != nil {
				t.Fatal(err)
			}
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
	if !(final["descent"] < final["tpe"] && final["tpe"] < final["random"]) {
		t.Errorf("after 40 trials: %v, want descent nearer to the optimum than tpe, and tpe than random", final)
	}
	if final["descent"] > 10 {
		t.Errorf("descent ends %.1f %% from the optimum, want at most 10 %%", final["descent"])
	}
}
