package problems_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

// ruled draws problems; what they find out about NCCL's rules is shared.
var ruled = problems.RuledServers()

// TestRuledTruthFollowsWhatActs: configurations of one launch have one value and
// crash alike, whatever their settings.
func TestRuledTruthFollowsWhatActs(t *testing.T) {
	problem := ruled(1)
	random := rand.New(rand.NewPCG(1, 3))
	inert := 0
	for range 100 {
		values := randomValues(problem, random)
		for other := range problem.Space.Neighbours(values) {
			// Neighbours yields what comes to another launch; all the rest is tried here.
			if problem.Space.Key(other) == problem.Space.Key(values) {
				t.Fatalf("%v and %v are one launch", values, other)
			}
		}
		for _, knob := range problem.Space.Knobs() {
			for _, level := range knob.Levels {
				partial := search.Values{}
				for id, value := range values {
					partial[id] = value
				}
				partial[knob.ID] = level
				other, err := problem.Space.Complete(partial)
				if err != nil {
					t.Fatal(err)
				}
				if level == values[knob.ID] || problem.Space.Key(other) != problem.Space.Key(values) {
					continue
				}
				inert++
				first, _ := problem.Truth(values)
				if second, runs := problem.Truth(other); !runs || first != second {
					t.Fatalf("%v gives %v, and %v, which is the same launch, %v (runs %v)", values, first, other, second, runs)
				}
			}
		}
	}
	if inert < 300 {
		t.Errorf("%d changes without effect of 100 configurations, want some for each", inert)
	}
}

// TestRuledSettings names the rules that the family is about.
func TestRuledSettings(t *testing.T) {
	space := ruled(1).Space
	for name, settings := range map[string][2]search.Values{
		"the buffer is inert without Simple": {
			{"NCCL_PROTO": search.Text("LL"), "NCCL_BUFFSIZE": search.Int(1 << 24)}, {"NCCL_PROTO": search.Text("LL")}},
		"the P2P level is inert without P2P": {
			{"NCCL_P2P_DISABLE": search.Text("1"), "NCCL_P2P_LEVEL": search.Text("SYS")}, {"NCCL_P2P_DISABLE": search.Text("1")}},
		"the level LOC is P2P off": {
			{"NCCL_P2P_LEVEL": search.Text("LOC")}, {"NCCL_P2P_DISABLE": search.Text("1")}},
		"threads are inert with LL128 alone": {
			{"NCCL_PROTO": search.Text("LL128"), "NCCL_NTHREADS": search.Int(64)}, {"NCCL_PROTO": search.Text("LL128")}},
		"threads are clamped": {
			{"NCCL_PROTO": search.Text("Simple"), "NCCL_NTHREADS": search.Int(1024)}, {"NCCL_PROTO": search.Text("Simple"), "NCCL_NTHREADS": search.Int(512)}},
		"more channels than there are":   {{"NCCL_MAX_NCHANNELS": search.Int(64)}, {}},
		"all algorithms are the default": {{"NCCL_ALGO": search.Text("Tree,Ring")}, {}},
		"4 MiB is the default":           {{"NCCL_BUFFSIZE": search.Int(1 << 22)}, {}},
	} {
		if a, b := space.Key(settings[0]), space.Key(settings[1]); a != b {
			t.Errorf("%s: %q and %q are not one launch", name, a, b)
		}
	}
	acts := search.Values{"NCCL_PROTO": search.Text("Simple"), "NCCL_BUFFSIZE": search.Int(1 << 24)}
	if space.Key(acts) == space.Key(search.Values{"NCCL_PROTO": search.Text("Simple")}) {
		t.Error("the buffer is inert with Simple")
	}
}

// TestRuledIsOfTheDifficultyMeasured as the family without rules.
func TestRuledIsOfTheDifficultyMeasured(t *testing.T) {
	if n, _ := ruled(0).Space.Count(context.Background()); n < 1e8 || n > 1e9 {
		t.Errorf("%v launches, want a few 1e8", n)
	}
	crashes := 0.0
	const seeds = 3
	for seed := range uint64(seeds) {
		problem := ruled(seed)
		if n := len(problem.Space.Knobs()); n != 13 {
			t.Fatalf("%d knobs, want 13", n)
		}
		if regret := problem.Regret(problem.Space.Default()); regret < 0.30 || regret > 0.42 {
			t.Errorf("seed %d: the default is %v from the optimum", seed, regret)
		}
		crashes += problem.CrashShare() / seeds
	}
	if crashes < 0.13 || crashes > 0.21 {
		t.Errorf("%v of random configurations crash, want about 0.17", crashes)
	}
}
