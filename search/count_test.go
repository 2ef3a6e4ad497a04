package search_test

import (
	"context"
	"testing"

	"nocturne/search"
)

func TestCountIsExact(t *testing.T) {
	tests := map[string]struct {
		constraints []string
		want        float64
	}{
		// 3 protocols x 5 threads x 4 levels x 2 x 2 x (1 + 4 steps x 2 topk)
		"free":        {nil, 3 * 5 * 4 * 2 * 2 * 9},
		"constrained": {[]string{"speculative.topk == 1 || speculative.steps >= 2"}, 3 * 5 * 4 * 2 * 2 * 8},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			space := newSpace(t, serverKnobs(t), test.constraints...)
			if n, exact := space.Count(context.Background()); n != test.want || !exact {
				t.Errorf("count is %v (exact %v), want exactly %v", n, exact, test.want)
			}
			listed := 0.0
			for values := range space.Enumerate() {
				if err := space.Check(values); err != nil {
					t.Fatalf("enumerated %v: %v", values, err)
				}
				listed++
			}
			if listed != test.want {
				t.Errorf("enumerated %v, want %v", listed, test.want)
			}
		})
	}
}

// threadsInertUnderLL stands for the rules of a library: the thread count plays
// no part under LL, and 512 is clamped to 256.
func threadsInertUnderLL(values search.Values) search.Values {
	if values["NCCL_PROTO"] == search.Text("LL") {
		delete(values, "NCCL_NTHREADS")
	} else if values["NCCL_NTHREADS"] == search.Int(512) {
		values["NCCL_NTHREADS"] = search.Int(256)
	}
	return values
}

func TestCountCountsLaunches(t *testing.T) {
	space, err := search.NewSpace(serverKnobs(t), nil, threadsInertUnderLL)
	if err != nil {
		t.Fatal(err)
	}
	const want = (1 + 2*4) * 4 * 2 * 2 * 9
	if n, exact := space.Count(context.Background()); n != want || !exact {
		t.Errorf("count is %v (exact %v), want exactly %v", n, exact, want)
	}
}

func TestCountEstimatesLargeSpaces(t *testing.T) {
	knobs := serverKnobs(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		levels, err := search.Range(1, 10, 1)
		if err != nil {
			t.Fatal(err)
		}
		knobs = append(knobs, search.Knob{ID: id, Kind: search.Integer, Levels: levels, Default: search.Int(1)})
	}
	space, err := search.NewSpace(knobs, []search.Constraint{{Source: "a + b + c + d + e + f + speculative.steps <= 40"}}, threadsInertUnderLL)
	if err != nil {
		t.Fatal(err)
	}
	n, exact := space.Count(context.Background())
	// Counted by hand: the launches of the free knobs, times the sums allowed.
	sums := sumsAtMost(40)
	want := float64((1+2*4)*4*2*2) * sums
	if exact || n < 0.9*want || n > 1.1*want {
		t.Errorf("count is %v (exact %v), want an estimate near %v", n, exact, want)
	}
}

// sumsAtMost counts six numbers of 1..10 and a step count of 0..4 (with two
// choices of topk above 0) whose sum is at most limit. The constraint mentions
// the steps alone, so it holds for each topk.
func sumsAtMost(limit int) float64 {
	ways := map[int]float64{0: 1}
	for range 6 {
		next := make(map[int]float64)
		for sum, n := range ways {
			for v := 1; v <= 10; v++ {
				next[sum+v] += n
			}
		}
		ways = next
	}
	total := 0.0
	for sum, n := range ways {
		for steps := range 5 {
			if sum+steps <= limit {
				total += n * float64(1+min(steps, 1))
			}
		}
	}
	return total
}

func TestKeyIsTheLaunch(t *testing.T) {
	space, err := search.NewSpace(serverKnobs(t), nil, threadsInertUnderLL)
	if err != nil {
		t.Fatal(err)
	}
	complete := func(partial search.Values) search.Values {
		values, err := space.Complete(partial)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	ll := search.Text("LL")
	same := [][2]search.Values{
		{{"NCCL_PROTO": ll, "NCCL_NTHREADS": search.Int(64)}, {"NCCL_PROTO": ll}},
		{{"NCCL_NTHREADS": search.Int(512)}, {"NCCL_NTHREADS": search.Int(256)}},
		{{"speculative.topk": search.Int(4)}, {}},
	}
	for _, pair := range same {
		if a, b := space.Key(complete(pair[0])), space.Key(complete(pair[1])); a != b {
			t.Errorf("keys differ for %v and %v:\n%s\n%s", pair[0], pair[1], a, b)
		}
		if a, b := space.Key(pair[0]), space.Key(complete(pair[0])); a != b {
			t.Errorf("the key of partial values differs:\n%s\n%s", a, b)
		}
	}
	if space.Key(search.Values{"NCCL_NTHREADS": search.Int(64)}) == space.Key(search.Values{}) {
		t.Error("different launches share a key")
	}
	if space.Key(search.Values{"attention": search.Text("4")}) == space.Key(search.Values{"attention": search.Int(4)}) {
		t.Error("a text and a number share a key")
	}
}
