package search_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/tpe"

	"nocturne/search"
)

// TestTPELeavesACrashingCategory: goptuna does not count failed trials, and left
// to itself proposes a category that always crashes nine times in ten.
func TestTPELeavesACrashingCategory(t *testing.T) {
	levels, err := search.Range(0, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	space := newSpace(t, []search.Knob{
		{ID: "backend", Kind: search.Categorical, Levels: search.Choices("a", "b", "crash", "d"), Default: search.Text("a")},
		{ID: "x", Kind: search.Integer, Levels: levels, Default: search.Int(0)},
		{ID: "y", Kind: search.Integer, Levels: levels, Default: search.Int(0)},
	})
	request := search.Request{Space: space}
	crashes, top := 0, false
	for trial := range 60 {
		proposal, err := search.NewTPE().Ask(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		o := search.Observation{Trial: trial, Values: proposal.Values}
		x, _ := proposal.Values["x"].Number()
		y, _ := proposal.Values["y"].Number()
		o.Value = 100 + x + y
		if proposal.Values["backend"] == search.Text("crash") {
			o.Outcome = search.Infeasible
			crashes++
		}
		top = top || (x == 10 && y == 10)
		request.History = append(request.History, o)
	}
	if crashes > 6 {
		t.Errorf("%d of 60 trials took the crashing category, want at most 6", crashes)
	}
	if !top {
		t.Error("the top of both ranges, where the optimum is, was never proposed")
	}
}

// TestTPEWithSingleValuedKnobs: goptuna hangs or fails on ranges of one value.
func TestTPEWithSingleValuedKnobs(t *testing.T) {
	var knobs []search.Knob
	for i := range 3 {
		knobs = append(knobs, search.Knob{ID: fmt.Sprintf("fixed%d", i), Kind: search.Integer, Levels: []search.Value{search.Int(7)}, Default: search.Int(7)})
	}
	levels, err := search.Range(0, 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	knobs = append(knobs, search.Knob{ID: "x", Kind: search.Integer, Levels: levels, Default: search.Int(20)})
	request := search.Request{Space: newSpace(t, knobs)}
	for trial := range 41 {
		proposal, err := search.NewTPE().Ask(context.Background(), request)
		if err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		request.History = append(request.History, search.Observation{Trial: trial, Values: proposal.Values, Value: float64(trial)})
	}
}

// suggestOf asks a sampler of goptuna itself for one parameter, with a history of
// its values (x as the parameter, its square as the value to minimize).
func suggestOf(t *testing.T, sampler goptuna.Sampler, distribution any, history ...float64) (float64, error) {
	t.Helper()
	study := plainStudy(t, goptuna.StudyOptionSampler(sampler))
	for _, x := range history {
		_, err := study.Storage.CloneTrial(study.ID, goptuna.FrozenTrial{
			State: goptuna.TrialStateComplete, Value: x * x, InternalParams: map[string]float64{"x": x}, Distributions: map[string]any{"x": distribution},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	trial, err := goptunaTrial(study)
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := study.Storage.GetTrial(trial.ID)
	if err != nil {
		t.Fatal(err)
	}
	return sampler.Sample(study, frozen, "x", distribution)
}

func count(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i % 4)
	}
	return list
}

// TestGoptunaRandomMissesTheTop and ignores its seed for categories: random is this
// package's own.
func TestGoptunaRandomMissesTheTop(t *testing.T) {
	sampler := goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(1))
	top := 0.0
	for range 500 {
		x, err := suggestOf(t, sampler, goptuna.IntUniformDistribution{Low: 0, High: 3})
		if err != nil {
			t.Fatal(err)
		}
		top = max(top, x)
	}
	if top == 3 {
		t.Error("500 draws from 0 to 3 reach 3: goptuna has mended it")
	}
}

// sameTwice reports whether two samplers of one seed draw the same 40 times.
func sameTwice(t *testing.T, sampler func() goptuna.Sampler, distribution any, history ...float64) bool {
	t.Helper()
	first, second := sampler(), sampler()
	for range 40 {
		a, err := suggestOf(t, first, distribution, history...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := suggestOf(t, second, distribution, history...)
		if err != nil {
			t.Fatal(err)
		}
		if a != b {
			return false
		}
	}
	return true
}

// TestGoptunaIgnoresSeeds is why its start-up draws and its mixtures are not used.
func TestGoptunaIgnoresSeeds(t *testing.T) {
	categories := goptuna.CategoricalDistribution{Choices: []string{"a", "b", "c", "d"}}
	random := func() goptuna.Sampler { return goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(1)) }
	estimator := func() goptuna.Sampler { return tpe.NewSampler(tpe.SamplerOptionSeed(1)) }
	if sameTwice(t, random, categories) {
		t.Error("two random samplers of one seed draw the same categories: goptuna has mended it")
	}
	if sameTwice(t, estimator, goptuna.UniformDistribution{Low: 0, High: 4}, count(20)...) {
		t.Error("two estimators of one seed draw the same numbers: goptuna has mended it")
	}
	// What NewTPE relies on: with more candidates than levels nothing is drawn.
	guarded := func() goptuna.Sampler {
		return tpe.NewSampler(tpe.SamplerOptionNumberOfStartupTrials(0), tpe.SamplerOptionNumberOfEICandidates(5))
	}
	if !sameTwice(t, guarded, categories, count(20)...) {
		t.Error("the estimator draws although it could compare all categories: proposals of tpe are not repeatable")
	}
}

// TestGoptunaTPELeavesTheRange is why no knob is given as a range with a step.
func TestGoptunaTPELeavesTheRange(t *testing.T) {
	distribution := goptuna.StepIntUniformDistribution{Low: -10, High: 0, Step: 4}
	sampler := tpe.NewSampler(tpe.SamplerOptionNumberOfStartupTrials(0))
	outside := false
	for range 200 {
		x, err := suggestOf(t, sampler, distribution, -10, -6, -2)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := distribution.ToExternalRepr(x).(int)
		outside = outside || !ok || value > 0
	}
	if !outside {
		t.Error("all of 200 draws keep to the steps: goptuna has mended it")
	}
}

// TestGoptunaTPEIgnoresFailedTrials is why crashes are told as the worst score.
func TestGoptunaTPEIgnoresFailedTrials(t *testing.T) {
	categories := goptuna.CategoricalDistribution{Choices: []string{"good", "crash"}}
	study := plainStudy(t, goptuna.StudyOptionSampler(tpe.NewSampler(
		tpe.SamplerOptionNumberOfStartupTrials(0), tpe.SamplerOptionNumberOfEICandidates(3))))
	crashes := 0
	for trial := range 40 {
		frozen := goptuna.FrozenTrial{State: goptuna.TrialStateComplete, InternalParams: map[string]float64{"x": 0}, Distributions: map[string]any{"x": categories}}
		if trial >= 10 {
			asked, err := goptunaTrial(study)
			if err != nil {
				t.Fatal(err)
			}
			choice, err := asked.SuggestCategorical("x", categories.Choices)
			if err != nil {
				t.Fatal(err)
			}
			if choice == "crash" {
				crashes++
				frozen.State, frozen.InternalParams = goptuna.TrialStateFail, map[string]float64{"x": 1}
			}
		}
		if _, err := study.Storage.CloneTrial(study.ID, frozen); err != nil {
			t.Fatal(err)
		}
	}
	if crashes < 25 {
		t.Errorf("%d of 30 trials take the category that always crashes: goptuna has mended it", crashes)
	}
}

// TestTPEIsRepeatable with knobs that have as many levels as goptuna has candidates,
// and more: it would draw from the global random source. Its first trials follow
// the seed.
func TestTPEIsRepeatable(t *testing.T) {
	var knobs []search.Knob
	for _, n := range []int64{24, 100} {
		levels, err := search.Range(1, n, 1)
		if err != nil {
			t.Fatal(err)
		}
		knobs = append(knobs, search.Knob{ID: fmt.Sprintf("x%d", n), Kind: search.Integer, Levels: levels, Default: search.Int(1)})
	}
	// The first is the baseline.
	run := func(seed uint64) (configurations []string) {
		proposals := climb(t, "tpe", search.Request{Space: newSpace(t, knobs), Seed: seed}, 30, func(v search.Values) float64 {
			return 100 + number(v["x24"]) - math.Abs(number(v["x100"])-50)
		})
		for n, proposal := range proposals {
			configurations = append(configurations, proposal.Values.String())
			if n > 0 && strings.Contains(proposal.Reason, "estimator starts") != (n < startupTrials) {
				t.Errorf("trial %d: %s", n, proposal.Reason)
			}
		}
		return configurations
	}
	first := run(1)
	if again := run(1); !slices.Equal(first, again) {
		t.Errorf("one seed gives\n%q\nand\n%q", first, again)
	}
	if other := run(2); slices.Equal(first[1:5], other[1:5]) {
		t.Errorf("two seeds both begin with %q", first[:5])
	}
}

// TestTPEWeighsEveryTrial: category a is in 9 of the 10 best trials and in 88 of
// the other 90, b in 1 and 2, so b has the better odds. goptuna's weights, which
// are meant to fade old trials, are taken by category and flatten the 90.
func TestTPEWeighsEveryTrial(t *testing.T) {
	const trials = 100
	category := func(n int) (string, float64) {
		return map[bool]string{true: "a", false: "b"}[n < 9 || n >= 12], float64(trials - n)
	}
	levels, err := search.Range(1, trials, 1)
	if err != nil {
		t.Fatal(err)
	}
	request := search.Request{Space: newSpace(t, []search.Knob{
		{ID: "c", Kind: search.Categorical, Levels: search.Choices("a", "b"), Default: search.Text("a")},
		{ID: "x", Kind: search.Integer, Levels: levels, Default: search.Int(1)},
	})}
	study := plainStudy(t)
	categories := goptuna.CategoricalDistribution{Choices: []string{"a", "b"}}
	for n := range trials {
		name, value := category(n)
		request.History = append(request.History, search.Observation{
			Trial: n, Value: value, Values: search.Values{"c": search.Text(name), "x": search.Int(int64(n + 1))},
		})
		_, err := study.Storage.CloneTrial(study.ID, goptuna.FrozenTrial{
			State: goptuna.TrialStateComplete, Value: -value, Distributions: map[string]any{"c": categories},
			InternalParams: map[string]float64{"c": float64(strings.Index("ab", name))},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	proposal, err := search.NewTPE().Ask(context.Background(), request)
	if err != nil || proposal.Values["c"] != search.Text("b") || strings.HasPrefix(proposal.Reason, "nearest") {
		t.Errorf("proposed %v (%v), want b as the estimator's choice", proposal, err)
	}
	sampler := tpe.NewSampler(tpe.SamplerOptionNumberOfEICandidates(3))
	if x, err := sampler.Sample(study, goptuna.FrozenTrial{}, "c", categories); err != nil || x != 0 {
		t.Errorf("goptuna's own proposes category %v (%v): it has mended it", x, err)
	}
}

// TestTPETellsCrashesAsTheWorst: a level that ran once and crashed ten times is no
// suspect, but must not look as good as the baseline, the best there is.
func TestTPETellsCrashesAsTheWorst(t *testing.T) {
	levels, err := search.Range(1, 60, 1)
	if err != nil {
		t.Fatal(err)
	}
	request := search.Request{Space: newSpace(t, []search.Knob{
		{ID: "c", Kind: search.Categorical, Levels: search.Choices("a", "b", "crash"), Default: search.Text("a")},
		{ID: "x", Kind: search.Integer, Levels: levels, Default: search.Int(1)},
	})}
	add := func(c string, outcome search.Outcome, value float64) {
		n := len(request.History)
		request.History = append(request.History, search.Observation{
			Trial: n, Values: search.Values{"c": search.Text(c), "x": search.Int(int64(n + 1))}, Outcome: outcome, Value: value,
		})
	}
	for n := range 20 {
		add([]string{"a", "b"}[n%2], search.Measured, float64(100-2*n))
	}
	add("crash", search.Measured, 90)
	for range 10 {
		add("crash", search.Infeasible, 0)
	}
	proposal, err := search.NewTPE().Ask(context.Background(), request)
	if err != nil || proposal.Values["c"] == search.Text("crash") {
		t.Errorf("proposed %v (%v), want another category", proposal, err)
	}
}

// TestTPEReachesTheBottomAndTheTop of a knob that goptuna's integer ranges cut off.
func TestTPEReachesTheBottomAndTheTop(t *testing.T) {
	seen := make(map[float64]bool)
	space := integers(t, 1)
	for _, proposal := range climb(t, "tpe", search.Request{Space: space, Seed: 1}, 21, func(v search.Values) float64 { return 100 + number(v["x0"]) }) {
		seen[number(proposal.Values["x0"])] = true
	}
	if !seen[0] || !seen[20] || len(seen) != 21 {
		t.Errorf("21 trials of 21 levels tried %d of them", len(seen))
	}
}
