package problems_test

import (
	"math"
	"testing"

	"nocturne/search/problems"
)

func BenchmarkServer(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		problems.Server(seed)
		seed++
	}
}

// TestOptimumIsTheOptimum compares the climbs with a full search.
func TestOptimumIsTheOptimum(t *testing.T) {
	for seed := range uint64(20) {
		problem := problems.Table(seed, problems.TableOptions{
			Knobs: 5, MinLevels: 2, MaxLevels: 6, Interaction: 0.5, Crash: 0.15, Gap: 0.35,
		})
		best := math.Inf(-1)
		for values := range problem.Space.Enumerate() {
			if value, ok := problem.Truth(values); ok {
				best = max(best, value)
			}
		}
		if math.Abs(problem.Optimum()/best-1) > 1e-9 {
			t.Errorf("seed %d: optimum %v, a full search finds %v", seed, problem.Optimum(), best)
		}
		if regret := problem.Regret(problem.Space.Default()); math.Abs(regret-0.35) > 1e-6 {
			t.Errorf("seed %d: the default is %v from the optimum, want 0.35", seed, regret)
		}
		if regret := problem.Regret(problem.Best()); regret != 0 {
			t.Errorf("seed %d: the best configuration is %v from the optimum", seed, regret)
		}
	}
}

// TestServerIsOfTheDifficultyMeasured: 13 knobs, about 1.4e9 configurations, a
// sixth of them crash, the default at a distance of 30 to 42 %.
func TestServerIsOfTheDifficultyMeasured(t *testing.T) {
	crashes := 0.0
	const seeds = 10
	for seed := range uint64(seeds) {
		problem := problems.Server(seed)
		if n := len(problem.Space.Knobs()); n != 13 {
			t.Fatalf("%d knobs, want 13", n)
		}
		if regret := problem.Regret(problem.Space.Default()); regret < 0.30 || regret > 0.42 {
			t.Errorf("seed %d: the default is %v from the optimum", seed, regret)
		}
		crashes += problem.CrashShare() / seeds
	}
	if crashes < 0.14 || crashes > 0.20 {
		t.Errorf("%v of random configurations crash, want about 0.17", crashes)
	}
}

// TestProblemsAreRepeatable: the same seed gives the same problem and noise.
func TestProblemsAreRepeatable(t *testing.T) {
	a, b := problems.Server(4), problems.Server(4)
	if a.Space.Describe() != b.Space.Describe() || a.Optimum() != b.Optimum() {
		t.Error("the same seed gave different problems")
	}
	values := a.Space.Default()
	if first, second := a.Observe(values, 1, 7), b.Observe(values, 1, 7); first.Value != second.Value {
		t.Errorf("the same trial gave %v and %v", first.Value, second.Value)
	}
	if first, second := a.Observe(values, 1, 7), a.Observe(values, 1, 8); first.Value == second.Value {
		t.Error("two trials have the same noise")
	}
}

// TestFewLevelsStillMakeAProblem: no crash rule is narrow enough for two levels.
func TestFewLevelsStillMakeAProblem(t *testing.T) {
	problem := problems.Table(1, problems.TableOptions{Knobs: 3, MinLevels: 2, MaxLevels: 2, Interaction: 0.3, Crash: 0.1, Gap: 0.3})
	if share := problem.CrashShare(); share > 0.15 {
		t.Errorf("%v of the configurations crash, want at most about 0.1", share)
	}
}
