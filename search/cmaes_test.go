package search_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/cmaes"

	"nocturne/search"
)

// evolve asks goptuna's CMA-ES itself for trials and tells it values.
func evolve(t *testing.T, space map[string]any, direction goptuna.StudyDirection, trials int, value func(map[string]float64) float64) ([]map[string]float64, error) {
	t.Helper()
	study := plainStudy(t, goptuna.StudyOptionDirection(direction), goptuna.StudyOptionDefineSearchSpace(space),
		goptuna.StudyOptionRelativeSampler(cmaes.NewSampler(cmaes.SamplerOptionSeed(1))))
	var drawn []map[string]float64
	for range trials {
		trial, err := goptunaTrial(study)
		if err != nil {
			return drawn, err
		}
		for id, distribution := range space {
			uniform, ok := distribution.(goptuna.UniformDistribution)
			if !ok {
				continue
			}
			if _, err := trial.SuggestFloat(id, uniform.Low, uniform.High); err != nil {
				return drawn, err
			}
		}
		frozen, err := study.Storage.GetTrial(trial.ID)
		if err != nil {
			return drawn, err
		}
		drawn = append(drawn, frozen.InternalParams)
		if err := study.Storage.SetTrialValue(trial.ID, value(frozen.InternalParams)); err != nil {
			return drawn, err
		}
		if err := study.Storage.SetTrialState(trial.ID, goptuna.TrialStateComplete); err != nil {
			return drawn, err
		}
	}
	return drawn, nil
}

func unitRange() goptuna.UniformDistribution { return goptuna.UniformDistribution{Low: 0, High: 1} }

// TestGoptunaCMAESIgnoresMaximize is why it is told negative scores to minimize.
func TestGoptunaCMAESIgnoresMaximize(t *testing.T) {
	sum := func(params map[string]float64) float64 { return params["x"] + params["y"] }
	drawn, err := evolve(t, map[string]any{"x": unitRange(), "y": unitRange()}, goptuna.StudyDirectionMaximize, 120, sum)
	if err != nil {
		t.Fatal(err)
	}
	if last := sum(drawn[len(drawn)-1]); last > 0.5 {
		t.Errorf("told to maximize x + y from 0 to 2 it ends at %.2f: goptuna has mended it", last)
	}
}

// TestGoptunaCMAESFailsOnSpaces are the spaces that are kept from it.
func TestGoptunaCMAESFailsOnSpaces(t *testing.T) {
	cases := map[string]map[string]any{
		"categories only": {
			"a": goptuna.CategoricalDistribution{Choices: []string{"x", "y"}}, "b": goptuna.CategoricalDistribution{Choices: []string{"x", "y"}},
		},
		"single-valued": {"x": unitRange(), "y": goptuna.UniformDistribution{Low: 1, High: 1}},
	}
	for name, space := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := evolve(t, space, goptuna.StudyDirectionMinimize, 1, func(map[string]float64) float64 { return 0 }); err == nil {
				t.Error("goptuna takes such a space now")
			}
		})
	}
}

// TestGoptunaCMAESWantsEveryParameter is why knobs that do not matter are told at
// their defaults.
func TestGoptunaCMAESWantsEveryParameter(t *testing.T) {
	space := map[string]any{"x": unitRange(), "y": unitRange()}
	study := plainStudy(t, goptuna.StudyOptionDefineSearchSpace(space), goptuna.StudyOptionRelativeSampler(cmaes.NewSampler()))
	var failure error
	for range 20 {
		trial, err := goptunaTrial(study)
		if failure = err; err != nil {
			break
		}
		if _, err := trial.SuggestFloat("x", 0, 1); err != nil {
			t.Fatal(err)
		}
		if err := study.Storage.SetTrialState(trial.ID, goptuna.TrialStateComplete); err != nil {
			t.Fatal(err)
		}
	}
	if failure == nil {
		t.Error("goptuna goes on without a parameter now")
	}
}

// TestGoptunaCMAESDividesByTheDistanceFromTheMean is why the strategy does not
// start at the default itself.
func TestGoptunaCMAESDividesByTheDistanceFromTheMean(t *testing.T) {
	mean := []float64{0.5, 0.5}
	optimizer, err := cmaes.NewOptimizer(slices.Clone(mean), 1.0/6)
	if err != nil {
		t.Fatal(err)
	}
	solutions := []*cmaes.Solution{{Params: mean, Value: math.MaxFloat64}}
	for i := 1; i < optimizer.PopulationSize(); i++ {
		x, err := optimizer.Ask()
		if err != nil {
			t.Fatal(err)
		}
		solutions = append(solutions, &cmaes.Solution{Params: slices.Clone(x), Value: float64(i)})
	}
	if err := optimizer.Tell(solutions); err != nil {
		return
	}
	if x, err := optimizer.Ask(); err == nil && !math.IsNaN(x[0]) {
		t.Errorf("it draws %v: goptuna has mended it", x)
	}
}

// climb lets a sampler maximize and returns what it proposed.
func climb(t *testing.T, name string, request search.Request, trials int, value func(search.Values) float64) []search.Proposal {
	t.Helper()
	sampler, err := search.New(name)
	if err != nil {
		t.Fatal(err)
	}
	var proposals []search.Proposal
	for trial := range trials {
		proposal, err := sampler.Ask(context.Background(), request)
		if err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		proposals = append(proposals, proposal)
		request.History = append(request.History, search.Observation{Trial: trial, Values: proposal.Values, Value: value(proposal.Values)})
	}
	return proposals
}

func number(v search.Value) float64 {
	x, _ := v.Number()
	return x
}

// integers makes a space of integer knobs from 0 to 20, defaults in the middle.
func integers(t *testing.T, n int, more ...search.Knob) *search.Space {
	t.Helper()
	levels, err := search.Range(0, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	knobs := more
	for i := range n {
		knobs = append(knobs, search.Knob{ID: fmt.Sprintf("x%d", i), Kind: search.Integer, Levels: levels, Default: search.Int(10)})
	}
	return newSpace(t, knobs)
}

// TestCMAESMaximizes into the corner of all tops.
func TestCMAESMaximizes(t *testing.T) {
	for _, minimize := range []bool{false, true} {
		space := integers(t, 3)
		value := func(v search.Values) float64 {
			sum := number(v["x0"]) + number(v["x1"]) + number(v["x2"])
			if minimize {
				return 100 - sum
			}
			return 100 + sum
		}
		proposals := climb(t, "cmaes", search.Request{Space: space, Minimize: minimize, Seed: 1}, 120, value)
		best, strategy := 0.0, 0
		for _, proposal := range proposals {
			best = max(best, math.Abs(value(proposal.Values)-100))
			if strings.Contains(proposal.Reason, "evolution strategy") {
				strategy++
			}
		}
		if best < 58 || strategy < 110 {
			t.Errorf("minimize %v: the best of 120 trials is %v of 60; %d trials are the strategy's", minimize, best, strategy)
		}
	}
}

// TestCMAESOnAwkwardSpaces: what goptuna's own fails on gives proposals that are
// the sampler's, not random ones in its place.
func TestCMAESOnAwkwardSpaces(t *testing.T) {
	constant := search.Knob{ID: "constant", Kind: search.Integer, Levels: []search.Value{search.Int(7)}, Default: search.Int(7)}
	choice := func(id string) search.Knob {
		return search.Knob{ID: id, Kind: search.Categorical, Levels: search.Choices("a", "b", "c", "d", "e"), Default: search.Text("a")}
	}
	conditional := search.Knob{
		ID: "depth", Kind: search.Integer, Levels: []search.Value{search.Int(1), search.Int(2), search.Int(3)}, Default: search.Int(1),
		When: search.Condition{Knob: "a", In: []search.Value{search.Text("b")}},
	}
	spaces := map[string]*search.Space{
		"categories only":    newSpace(t, []search.Knob{choice("a"), choice("b"), choice("c")}),
		"one ordered knob":   integers(t, 1, choice("a"), choice("b")),
		"single-valued":      integers(t, 2, constant),
		"conditional":        integers(t, 2, choice("a"), conditional),
		"ordered and others": integers(t, 2, choice("a"), search.SwitchKnob("s")),
	}
	for name, space := range spaces {
		t.Run(name, func(t *testing.T) {
			proposals := climb(t, "cmaes", search.Request{Space: space, Seed: 1}, 40, func(v search.Values) float64 { return 100 + number(v["x0"]) })
			for n, proposal := range proposals[startupTrials:] {
				if strings.Contains(proposal.Reason, "random") {
					t.Errorf("trial %d: %s", n+startupTrials, proposal.Reason)
				}
			}
		})
	}
}

// startupTrials is the number of trials before goptuna's estimator is asked.
const startupTrials = 10

// TestCMAESDrawsAnewWithinAGeneration, by the seed, categories included.
func TestCMAESDrawsAnewWithinAGeneration(t *testing.T) {
	choice := search.Knob{ID: "c", Kind: search.Categorical, Levels: search.Choices("a", "b", "c", "d", "e"), Default: search.Text("a")}
	categories, firsts := make(map[string]bool), make(map[string]bool)
	for seed := range uint64(6) {
		proposals := climb(t, "cmaes", search.Request{Space: integers(t, 4, choice), Seed: seed}, 6, func(search.Values) float64 { return 1 })
		for n, proposal := range proposals[1:] {
			if !strings.HasPrefix(proposal.Reason, "a draw") {
				t.Errorf("seed %d, trial %d: %s", seed, n+1, proposal.Reason)
			}
		}
		categories[proposals[1].Values["c"].String()] = true
		firsts[proposals[1].Values.String()] = true
	}
	if len(categories) < 2 || len(firsts) < 6 {
		t.Errorf("six seeds begin with %d configurations and %d categories", len(firsts), len(categories))
	}
}

// TestCMAESTellsCrashesAsTheWorst: a corner that crashes is left although nothing
// there was ever measured.
func TestCMAESTellsCrashesAsTheWorst(t *testing.T) {
	space := integers(t, 3)
	sampler := search.NewCMAES()
	request := search.Request{Space: space, Seed: 2}
	late := 0
	for trial := range 80 {
		proposal, err := sampler.Ask(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		o := search.Observation{Trial: trial, Values: proposal.Values, Value: 100 + number(proposal.Values["x0"])}
		if number(proposal.Values["x0"])+number(proposal.Values["x1"]) > 24 {
			o.Outcome = search.Infeasible
			if trial >= 40 {
				late++
			}
		}
		request.History = append(request.History, o)
	}
	if late > 25 {
		t.Errorf("%d of the last 40 trials crashed, want at most 25", late)
	}
}
