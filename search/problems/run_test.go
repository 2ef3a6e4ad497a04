package problems_test

import (
	"context"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

// scripted proposes what it is told to and records the requests.
type scripted struct {
	proposals []search.Values
	requests  []search.Request
}

func (*scripted) Name() string { return "scripted" }

func (s *scripted) Ask(_ context.Context, request search.Request) (search.Proposal, error) {
	s.requests = append(s.requests, request)
	if len(s.requests) > len(s.proposals) {
		return search.Proposal{}, search.ErrExhausted
	}
	return search.Proposal{Values: s.proposals[len(s.requests)-1]}, nil
}

func TestSeveralHosts(t *testing.T) {
	problem := problems.Table(1, problems.TableOptions{Knobs: 3, MinLevels: 3, MaxLevels: 4, Gap: 0.3})
	problem.Hosts = 2
	sampler := &scripted{}
	for values := range problem.Space.Enumerate() {
		if problem.Space.Key(values) != problem.Space.Key(problem.Space.Default()) {
			sampler.proposals = append(sampler.proposals, values)
		}
	}
	run, err := problem.Campaign(context.Background(), sampler, 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.History) != 6 || len(run.Regret) != 6 || len(run.Asks) != 5 {
		t.Fatalf("%d trials, %d regrets, %d proposals, want 6, 6 and 5", len(run.History), len(run.Regret), len(run.Asks))
	}
	for n, request := range sampler.requests {
		// One of the two hosts is busy whenever something is asked for.
		if len(request.Pending) != 1 || len(request.History) != n || request.Remaining != 5-n {
			t.Errorf("proposal %d: %d pending, %d ended, %d remaining, want 1, %d and %d",
				n+1, len(request.Pending), len(request.History), request.Remaining, n, 5-n)
		}
	}
}

// TestFaultyProposalsAreCounted: repeats and what a constraint rejects.
func TestFaultyProposalsAreCounted(t *testing.T) {
	problem := problems.Table(2, problems.TableOptions{Knobs: 4, MinLevels: 3, MaxLevels: 4, Crash: 0.3, Published: true, Gap: 0.3})
	rejected := rejectedBy(t, problem)
	start := problem.Space.Default()
	sampler := &scripted{proposals: []search.Values{start, rejected, rejected}}
	run, err := problem.Campaign(context.Background(), sampler, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if run.Duplicates != 2 || run.Violations != 2 || run.Crashes != 2 || len(run.History) != 4 {
		t.Errorf("%d duplicates, %d violations, %d crashes, %d trials, want 2, 2, 2 and 4", run.Duplicates, run.Violations, run.Crashes, len(run.History))
	}
	if run.After(10) != run.After(4) {
		t.Error("an exhausted campaign has no value after its last trial")
	}
}

// rejectedBy finds a configuration that the published constraints reject: it must
// crash.
func rejectedBy(t *testing.T, problem *problems.Problem) search.Values {
	t.Helper()
	free, err := search.NewSpace(problem.Space.Knobs(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rejected search.Values
	for values := range free.Enumerate() {
		if problem.Space.Check(values) == nil {
			continue
		}
		if _, runs := problem.Truth(values); runs {
			t.Fatalf("%v is rejected and runs", values)
		}
		rejected = values
	}
	if rejected == nil {
		t.Fatal("no configuration is rejected")
	}
	return rejected
}

// TestMixedProblemsDiffer in size, noise and drift, within what is stated.
func TestMixedProblemsDiffer(t *testing.T) {
	least, most := 1e9, 0.0
	for seed := range uint64(30) {
		problem := problems.Mixed(seed)
		size := 1.0
		for _, knob := range problem.Space.Knobs() {
			size *= float64(len(knob.Levels))
		}
		least, most = min(least, size), max(most, size)
		if size < 120 || size > 2e7 {
			t.Errorf("seed %d: %v configurations, want about 200 to 1e7", seed, size)
		}
		if problem.Noise < 0.005 || problem.Noise > 0.03 || problem.Drift < -0.1 || problem.Drift > 0.1 {
			t.Errorf("seed %d: noise %v, drift %v", seed, problem.Noise, problem.Drift)
		}
	}
	if least > 2000 || most < 1e6 {
		t.Errorf("sizes from %v to %v, want small and large ones", least, most)
	}
}
