package search_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

// TestF12_NoConfigurationTwice: 24 points, 40 asks, two workers.
func TestF12_NoConfigurationTwice(t *testing.T) {
	knobs := []search.Knob{
		{ID: "a", Kind: search.Categorical, Levels: search.Choices("x", "y", "z"), Default: search.Text("x")},
		{ID: "b", Kind: search.Integer, Levels: []search.Value{search.Int(1), search.Int(2), search.Int(3), search.Int(4)}, Default: search.Int(1)},
		search.SwitchKnob("c"),
	}
	for _, name := range search.Names() {
		t.Run(name, func(t *testing.T) {
			space := newSpace(t, knobs)
			sampler, err := search.New(name)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(map[string]bool)
			request := search.Request{Space: space, Seed: 1}
			for ask := range 40 {
				proposal, err := sampler.Ask(context.Background(), request)
				if len(seen) == 24 {
					if !errors.Is(err, search.ErrExhausted) {
						t.Fatalf("ask %d after 24 points: got %v %v, want ErrExhausted", ask, proposal, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("ask %d after %d points: %v", ask, len(seen), err)
				}
				key := space.Key(proposal.Values)
				if seen[key] {
					t.Fatalf("ask %d: %s was proposed before", ask, key)
				}
				seen[key] = true
				// Two workers: the proposal stays pending while the next is asked for.
				request.Pending = append(request.Pending, proposal.Values)
				if len(request.Pending) == 2 {
					done := request.Pending[0]
					request.Pending = request.Pending[1:]
					request.History = append(request.History, search.Observation{Trial: ask, Values: done, Value: float64(100 + ask)})
				}
			}
		})
	}
}

// TestF13_CrashingCornerIsLeft: memory fractions from 0.94 on run out of memory;
// after the first evidence at most two of twelve trials go back there.
func TestF13_CrashingCornerIsLeft(t *testing.T) {
	fractions := []search.Value{}
	for _, f := range []float64{0.80, 0.84, 0.88, 0.90, 0.92, 0.94, 0.96, 0.98} {
		fractions = append(fractions, search.Float(f))
	}
	knobs := []search.Knob{
		{ID: "flag.mem_fraction", Kind: search.Ordinal, Levels: fractions, Default: search.Float(0.88)},
		{ID: "flag.batch", Kind: search.Log2, Levels: []search.Value{search.Int(1), search.Int(2), search.Int(4), search.Int(8)}, Default: search.Int(4)},
		{ID: "attention", Kind: search.Categorical, Levels: search.Choices("fa3", "flashinfer", "triton"), Default: search.Text("fa3")},
		search.SwitchKnob("flag.overlap"),
	}
	for _, name := range search.Names() {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s seed %d", name, seed), func(t *testing.T) {
				space := newSpace(t, knobs)
				sampler, err := search.New(name)
				if err != nil {
					t.Fatal(err)
				}
				request := search.Request{Space: space, Seed: seed}
				crashes := 0
				for trial := 1; trial <= 12; trial++ {
					proposal, err := sampler.Ask(context.Background(), request)
					if err != nil {
						t.Fatal(err)
					}
					o := search.Observation{Trial: trial, Values: proposal.Values}
					fraction, _ := proposal.Values["flag.mem_fraction"].Number()
					batch, _ := proposal.Values["flag.batch"].Number()
					o.Value = 60 + 40*fraction + batch // more memory is better, until it crashes
					if fraction >= 0.94 {
						crashes++
						o.Outcome = search.Infeasible
					}
					request.History = append(request.History, o)
				}
				if crashes > 3 {
					t.Errorf("%d of 12 trials crashed, want at most 2 after the first", crashes)
				}
			})
		}
	}
}

func TestHintsComeFirst(t *testing.T) {
	space := newSpace(t, serverKnobs(t), "NCCL_NTHREADS != 512")
	complete := func(partial search.Values) search.Values {
		values, err := space.Complete(partial)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	hints := []search.Values{
		{"speculative.steps": search.Int(2)},
		{"NCCL_NTHREADS": search.Int(512)}, // a constraint rejects it
		{"NCCL_PROTO": search.Text("LL")},
	}
	sampler, err := search.New("random")
	if err != nil {
		t.Fatal(err)
	}
	request := search.Request{Space: space, Hints: hints}
	var got []string
	for range 2 {
		proposal, err := sampler.Ask(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, space.Key(proposal.Values)+" "+proposal.Reason)
		request.Pending = append(request.Pending, proposal.Values)
	}
	want := []string{space.Key(complete(hints[0])) + " hint 1 of 3", space.Key(complete(hints[2])) + " hint 3 of 3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	proposal, err := sampler.Ask(context.Background(), request)
	if err != nil || proposal.Reason != "drawn at random" {
		t.Errorf("got %v %v, want the sampler's own proposal after the hints", proposal, err)
	}
}

func TestNewNamesNearestSampler(t *testing.T) {
	_, err := search.New("decent")
	var unknown *search.UnknownSamplerError
	if !errors.As(err, &unknown) || unknown.Nearest != "descent" {
		t.Errorf("got %v, want an UnknownSamplerError near descent", err)
	}
	for _, name := range search.Names() {
		sampler, err := search.New(name)
		if err != nil || sampler.Name() != name {
			t.Errorf("New(%q) is %v, %v", name, sampler, err)
		}
	}
}

// TestLowerIsBetter: the mirror image of a problem gives the same proposals.
func TestLowerIsBetter(t *testing.T) {
	problem := problems.Server(3)
	for _, name := range search.Names() {
		t.Run(name, func(t *testing.T) {
			sampler, err := search.New(name)
			if err != nil {
				t.Fatal(err)
			}
			up, down := search.Request{Space: problem.Space, Seed: 5}, search.Request{Space: problem.Space, Seed: 5, Minimize: true}
			for trial := range 15 {
				first, err := sampler.Ask(context.Background(), up)
				if err != nil {
					t.Fatal(err)
				}
				second, err := sampler.Ask(context.Background(), down)
				if err != nil {
					t.Fatal(err)
				}
				if first.Values.String() != second.Values.String() {
					t.Fatalf("trial %d: maximizing gives %v, minimizing %v", trial, first.Values, second.Values)
				}
				o := problem.Observe(first.Values, 1, trial)
				up.History = append(up.History, o)
				o.Value = 10000 / o.Value
				down.History = append(down.History, o)
			}
		})
	}
}

// TestHistoryOfAnotherSpace: observations with knobs or levels that the space
// has lost must not disturb; those that lack a new knob count at its default.
func TestHistoryOfAnotherSpace(t *testing.T) {
	space := newSpace(t, serverKnobs(t))
	history := []search.Observation{
		{Trial: 1, Values: search.Values{}, Value: 60},
		{Trial: 2, Values: search.Values{"NCCL_PROTO": search.Text("LL128")}, Value: 80},
		{Trial: 3, Values: search.Values{"gone": search.Int(1)}, Value: 90},
	}
	for _, name := range search.Names() {
		t.Run(name, func(t *testing.T) {
			sampler, err := search.New(name)
			if err != nil {
				t.Fatal(err)
			}
			proposal, err := sampler.Ask(context.Background(), search.Request{Space: space, History: history})
			if err != nil || space.Check(proposal.Values) != nil {
				t.Fatalf("got %v %v", proposal, err)
			}
			if space.Key(proposal.Values) == space.Key(space.Default()) {
				t.Error("the baseline was proposed again: it was measured before the space grew")
			}
		})
	}
}

func BenchmarkAsk(b *testing.B) {
	problem := problems.Server(1)
	for _, name := range search.Names() {
		for _, n := range []int{40, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/history=%d", name, n), func(b *testing.B) {
				request := search.Request{Space: problem.Space, History: longHistory(b, problem, n)}
				sampler, err := search.New(name)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					request.Seed++
					if _, err := sampler.Ask(context.Background(), request); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// longHistory measures random configurations.
func longHistory(t testing.TB, problem *problems.Problem, n int) []search.Observation {
	t.Helper()
	history := make([]search.Observation, n)
	request := search.Request{Space: problem.Space}
	for trial := range history {
		request.Seed = uint64(trial)
		proposal, err := search.NewRandom().Ask(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		history[trial] = problem.Observe(proposal.Values, 1, trial)
	}
	return history
}

// TestLongHistory: a thousand trials are no trouble.
func TestLongHistory(t *testing.T) {
	problem := problems.Server(2)
	request := search.Request{Space: problem.Space, History: longHistory(t, problem, 1000)}
	for _, name := range search.Names() {
		sampler, err := search.New(name)
		if err != nil {
			t.Fatal(err)
		}
		proposal, err := sampler.Ask(context.Background(), request)
		if err != nil || problem.Space.Check(proposal.Values) != nil {
			t.Errorf("%s: got %v %v", name, proposal, err)
		}
	}
}
