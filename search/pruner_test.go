package search_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/c-bata/goptuna"
	"pgregory.net/rapid"

	"nocturne/search"
)

func newPruner(t testing.TB, options search.PrunerOptions) *search.Pruner {
	t.Helper()
	pruner, err := search.NewPruner(options)
	if err != nil {
		t.Fatal(err)
	}
	return pruner
}

func TestShouldPrune(t *testing.T) {
	rounds := func(values ...float64) []search.Round {
		list := make([]search.Round, len(values))
		for i, value := range values {
			list[i] = search.Round{Value: value}
		}
		return list
	}
	cases := map[string]struct {
		minimize bool
		best     search.Round
		rounds   []search.Round
		want     bool
	}{
		"30 % worse, first round":           {best: search.Round{Value: 100}, rounds: rounds(70), want: true},
		"30 % slower, first round":          {minimize: true, best: search.Round{Value: 100}, rounds: rounds(130), want: true},
		"3 % worse, first round":            {best: search.Round{Value: 100}, rounds: rounds(97)},
		"better":                            {best: search.Round{Value: 100}, rounds: rounds(130)},
		"faster":                            {minimize: true, best: search.Round{Value: 100}, rounds: rounds(70)},
		"10 % worse, three rounds":          {best: search.Round{Value: 100}, rounds: rounds(90, 90.5, 89.5), want: true},
		"10 % worse, rounds that disagree":  {best: search.Round{Value: 100}, rounds: rounds(75, 105)},
		"30 % worse, a round of few tokens": {best: search.Round{Value: 100}, rounds: []search.Round{{Value: 70, StandardError: 15}}},
		"30 % worse, the best uncertain":    {best: search.Round{Value: 100, StandardError: 15}, rounds: rounds(70)},
		"no rounds":                         {best: search.Round{Value: 100}},
		"not a number":                      {best: search.Round{Value: 100}, rounds: rounds(math.NaN())},
		"one round not a number":            {best: search.Round{Value: 100}, rounds: rounds(math.NaN(), 70), want: true},
		"the best not a number":             {best: search.Round{Value: math.NaN()}, rounds: rounds(70)},
		"huge":                              {best: search.Round{Value: 1e300}, rounds: rounds(7e299), want: true},
		"tiny":                              {minimize: true, best: search.Round{Value: 1e-300}, rounds: rounds(1.3e-300), want: true},
		"negative":                          {best: search.Round{Value: -100}, rounds: rounds(-130), want: true},
		"zero":                              {best: search.Round{Value: 0}, rounds: rounds(0)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := search.ShouldPrune(newPruner(t, search.PrunerOptions{}), c.minimize, c.best, c.rounds)
			if err != nil || got != c.want {
				t.Errorf("got %v %v, want %v", got, err, c.want)
			}
		})
	}
}

// TestPrunerErrorRate: of two configurations that are equally good the later one
// is stopped no more often than the error rate says, over all its rounds, and of
// two where it is worse it is stopped nearly always. 1.5 % between launches, 1 %
// between rounds, five rounds.
func TestPrunerErrorRate(t *testing.T) {
	const launch, within, runs = 0.015, 0.01, 2000
	pruner := newPruner(t, search.PrunerOptions{ErrorRate: 0.05, Launch: launch, Round: within})
	random := rand.New(rand.NewPCG(1, 2))
	measure := func(truth float64) (rounds []search.Round, mean float64) {
		mean = truth * (1 + launch*random.NormFloat64())
		for range 5 {
			rounds = append(rounds, search.Round{Value: mean * (1 + within*random.NormFloat64()), StandardError: within * mean})
		}
		sum := 0.0
		for _, round := range rounds {
			sum += round.Value
		}
		return rounds, sum / 5
	}
	stopped := func(truth float64) (share float64) {
		for range runs {
			_, best := measure(100)
			rounds, _ := measure(truth)
			for n := range rounds {
				prune, err := search.ShouldPrune(pruner, false, search.Round{Value: best, StandardError: within * 100 / math.Sqrt(5)}, rounds[:n+1])
				if err != nil {
					t.Fatal(err)
				}
				if prune {
					share += 1.0 / runs
					break
				}
			}
		}
		return share
	}
	equal, worse := stopped(100), stopped(88)
	t.Logf("stopped: %.1f %% of equally good ones, %.1f %% of those 12 %% worse", 100*equal, 100*worse)
	if equal > 0.05 {
		t.Errorf("%.1f %% of the trials as good as the best were stopped, want at most 5 %%", 100*equal)
	}
	if worse < 0.95 {
		t.Errorf("%.1f %% of the trials 12 %% worse were stopped, want at least 95 %%", 100*worse)
	}
}

// TestPrunerNeverStopsWhatLeads holds for any numbers at all.
func TestPrunerNeverStopsWhatLeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pruner, err := search.NewPruner(search.PrunerOptions{
			ErrorRate: rapid.Float64Range(1e-6, 0.49).Draw(t, "error rate"), Launch: rapid.Float64Range(0, 1).Draw(t, "launch"),
		})
		if err != nil {
			t.Fatal(err)
		}
		minimize := rapid.Bool().Draw(t, "minimize")
		best := search.Round{Value: rapid.Float64().Draw(t, "best"), StandardError: rapid.Float64().Draw(t, "error of the best")}
		var rounds []search.Round
		ahead := true
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			round := search.Round{Value: rapid.Float64().Draw(t, "value"), StandardError: rapid.Float64().Draw(t, "error")}
			rounds = append(rounds, round)
			ahead = ahead && (round.Value == best.Value || (round.Value < best.Value) == minimize)
		}
		prune, err := search.ShouldPrune(pruner, minimize, best, rounds)
		if err != nil {
			t.Fatal(err)
		}
		if prune && ahead {
			t.Fatalf("stopped %v, none of which is worse than %v", rounds, best)
		}
		bound, ok := pruner.Bound(minimize, best, rounds)
		if !ok || math.IsNaN(bound) {
			t.Fatalf("bound %v %v", bound, ok)
		}
	})
}

// TestPrunerInAStudy: in goptuna's own Optimize, whose first trial has nothing to
// be compared with and whose best may be NaN.
func TestPrunerInAStudy(t *testing.T) {
	study := plainStudy(t, goptuna.StudyOptionDirection(goptuna.StudyDirectionMaximize), goptuna.StudyOptionPruner(newPruner(t, search.PrunerOptions{})))
	truth := []float64{math.NaN(), 100, 70, 101}
	err := study.Optimize(func(trial goptuna.Trial) (float64, error) {
		for round := 1; round <= 3; round++ {
			if err := search.ReportRound(&trial, round, search.Round{Value: truth[trial.ID], StandardError: 1}); err != nil {
				return 0, err
			}
		}
		return truth[trial.ID], nil
	}, len(truth))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := study.GetTrials()
	if err != nil {
		t.Fatal(err)
	}
	var states []goptuna.TrialState
	for _, trial := range trials {
		states = append(states, trial.State)
	}
	want := []goptuna.TrialState{goptuna.TrialStateComplete, goptuna.TrialStateComplete, goptuna.TrialStatePruned, goptuna.TrialStateComplete}
	if fmt.Sprint(states) != fmt.Sprint(want) || len(trials[2].IntermediateValues) != 1 {
		t.Errorf("got %v, the third after %d rounds; want %v and 1", states, len(trials[2].IntermediateValues), want)
	}
}

func TestNewPrunerRefusesNonsense(t *testing.T) {
	for _, options := range []search.PrunerOptions{{ErrorRate: 1}, {ErrorRate: -0.1}, {Launch: math.NaN()}, {Round: math.Inf(1)}} {
		if _, err := search.NewPruner(options); !errors.Is(err, search.ErrPrunerOptions) {
			t.Errorf("%+v: got %v, want ErrPrunerOptions", options, err)
		}
	}
}

// TestGoptunaWantsThePlainPrunedError is why ReportRound's error must not be
// wrapped.
func TestGoptunaWantsThePlainPrunedError(t *testing.T) {
	study := plainStudy(t, goptuna.StudyOptionIgnoreError(true))
	err := study.Optimize(func(goptuna.Trial) (float64, error) { return 0, fmt.Errorf("round 1: %w", goptuna.ErrTrialPruned) }, 1)
	if err != nil {
		t.Fatal(err)
	}
	if trials, err := study.GetTrials(); err != nil || trials[0].State != goptuna.TrialStateFail {
		t.Errorf("a wrapped ErrTrialPruned makes %v (%v): goptuna has mended it", trials, err)
	}
}
