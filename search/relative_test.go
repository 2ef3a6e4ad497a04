package search_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/c-bata/goptuna"
	"github.com/google/go-cmp/cmp"

	"nocturne/search"
	"nocturne/search/problems"
)

// goptunaStudy is a plain study with the auto sampler in it.
func goptunaStudy(t testing.TB, space *search.Space, options ...goptuna.StudyOption) *goptuna.Study {
	t.Helper()
	study, err := goptuna.CreateStudy("server", append([]goptuna.StudyOption{
		goptuna.StudyOptionLogger(nil),
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMaximize),
		goptuna.StudyOptionDefineSearchSpace(search.Distributions(space)),
		goptuna.StudyOptionRelativeSampler(search.NewRelativeSampler(space, 1)),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return study
}

// ExampleNewRelativeSampler tunes with goptuna's own Optimize.
func ExampleNewRelativeSampler() {
	space, err := search.NewSpace([]search.Knob{
		{ID: "protocol", Kind: search.Categorical, Levels: search.Choices("LL", "LL128", "Simple"), Default: search.Text("Simple")},
		{ID: "channels", Kind: search.Log2, Levels: []search.Value{search.Int(2), search.Int(4), search.Int(8), search.Int(16)}, Default: search.Int(2)},
	}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	study, err := goptuna.CreateStudy("server",
		goptuna.StudyOptionLogger(nil),
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMaximize),
		goptuna.StudyOptionDefineSearchSpace(search.Distributions(space)),
		goptuna.StudyOptionRelativeSampler(search.NewRelativeSampler(space, 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = study.Optimize(func(trial goptuna.Trial) (float64, error) {
		values, err := search.Suggest(&trial, space)
		if err != nil {
			return 0, err
		}
		channels, _ := values["channels"].Number()
		throughput := 60 + channels
		if values["protocol"] == search.Text("LL") {
			throughput += 10
		}
		return throughput, nil
	}, 12)
	if err != nil {
		fmt.Println(err)
		return
	}
	best, err := study.GetBestParams()
	fmt.Println(best["protocol"], best["channels"], err)
	err = study.Optimize(func(goptuna.Trial) (float64, error) { return 0, nil }, 1)
	fmt.Println(err)
	// Output:
	// LL 16 <nil>
	// search space exhausted
}

// TestRelativeSamplerLearnsInGoptuna: in a plain study auto comes as near to the
// optimum as in a campaign, crashing configurations included.
func TestRelativeSamplerLearnsInGoptuna(t *testing.T) {
	problem := problems.Server(2)
	study := goptunaStudy(t, problem.Space, goptuna.StudyOptionIgnoreError(true))
	seen := make(map[string]bool)
	best, regret := math.Inf(-1), 1.0
	err := study.Optimize(func(trial goptuna.Trial) (float64, error) {
		values, err := search.Suggest(&trial, problem.Space)
		if err != nil {
			t.Error(err)
		}
		if err := problem.Space.Check(values); err != nil {
			t.Error(err)
		}
		if key := problem.Space.Key(values); seen[key] {
			t.Errorf("trial %d repeats %s", trial.ID, key)
		} else {
			seen[key] = true
		}
		o := problem.Observe(values, 1, trial.ID)
		if o.Outcome == search.Infeasible {
			return 0, errors.New("crashed")
		}
		if o.Value > best {
			best, regret = o.Value, problem.Regret(values)
		}
		return o.Value, nil
	}, 25)
	if err != nil {
		t.Fatal(err)
	}
	if regret > 0.2 {
		t.Errorf("after 25 trials the best is %.0f %% from the optimum, want at most 20 %%", 100*regret)
	}
	trials, err := study.GetTrials()
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials {
		if trial.UserAttrs[search.ReasonAttribute] == "" {
			t.Errorf("trial %d has no reason", trial.Number)
		}
	}
}

// TestRelativeSamplerFollowsTheDirection: the sign of the objective and the
// direction together change nothing.
func TestRelativeSamplerFollowsTheDirection(t *testing.T) {
	problem := problems.Server(3)
	run := func(direction goptuna.StudyDirection, value func(float64) float64) []string {
		study := goptunaStudy(t, problem.Space, goptuna.StudyOptionIgnoreError(true), goptuna.StudyOptionDirection(direction))
		var configurations []string
		err := study.Optimize(func(trial goptuna.Trial) (float64, error) {
			values, err := search.Suggest(&trial, problem.Space)
			configurations = append(configurations, values.String())
			o := problem.Observe(values, 1, trial.ID)
			if o.Outcome == search.Infeasible {
				return 0, errors.Join(err, errors.New("crashed"))
			}
			return value(o.Value), err
		}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return configurations
	}
	up := run(goptuna.StudyDirectionMaximize, func(v float64) float64 { return v })
	down := run(goptuna.StudyDirectionMinimize, func(v float64) float64 { return 10000 / v })
	if a, b := strings.Join(up, "\n"), strings.Join(down, "\n"); a != b {
		t.Errorf("maximizing:\n%s\nminimizing:\n%s", a, b)
	}
}

// TestRelativeSamplerInSeveralGoroutines: what is being measured is not proposed
// again, although its parameters are not yet in the study.
func TestRelativeSamplerInSeveralGoroutines(t *testing.T) {
	problem := problems.Server(4)
	study := goptunaStudy(t, problem.Space)
	var mu sync.Mutex
	seen := make(map[string]bool)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			err := study.Optimize(func(trial goptuna.Trial) (float64, error) {
				values, err := search.Suggest(&trial, problem.Space)
				mu.Lock()
				defer mu.Unlock()
				if key := problem.Space.Key(values); seen[key] {
					t.Errorf("%s is measured twice", key)
				} else {
					seen[key] = true
				}
				return problem.Observe(values, 1, trial.ID).Value, err
			}, 5)
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if len(seen) != 20 {
		t.Errorf("%d configurations in 20 trials", len(seen))
	}
}

// TestReadStudy: trials of any making count for what they are.
func TestReadStudy(t *testing.T) {
	space := newSpace(t, []search.Knob{
		{ID: "a", Kind: search.Categorical, Levels: search.Choices("x", "y"), Default: search.Text("x")},
		{ID: "b", Kind: search.Integer, Levels: []search.Value{search.Int(1), search.Int(2)}, Default: search.Int(1)},
		{ID: "constant", Kind: search.Integer, Levels: []search.Value{search.Int(7)}, Default: search.Int(7)},
	})
	study := goptunaStudy(t, space)
	for _, trial := range []goptuna.FrozenTrial{
		{State: goptuna.TrialStateComplete, Value: 1, Params: map[string]any{"a": "x", "b": "2"}},
		{State: goptuna.TrialStateComplete, Value: 2, Params: map[string]any{"a": "y", "b": 1, "other": 3.5}}, // suggested as an integer
		{State: goptuna.TrialStatePruned, IntermediateValues: map[int]float64{1: 4, 2: 3}, Params: map[string]any{"a": "y", "b": "2"}},
		{State: goptuna.TrialStatePruned, Value: 5, Params: map[string]any{"a": "y", "b": "2"}},
		{State: goptuna.TrialStatePruned, Params: map[string]any{"a": "x", "b": "1"}}, // before any report
		{State: goptuna.TrialStateFail, Params: map[string]any{"a": "gone", "b": 0.5}},
		{State: goptuna.TrialStateFail},    // before any suggestion
		{State: goptuna.TrialStateRunning}, // another sampler's, before any suggestion
	} {
		if _, err := study.Storage.CloneTrial(study.ID, trial); err != nil {
			t.Fatal(err)
		}
	}
	if err := study.EnqueueTrial(map[string]float64{"a": 1}); err != nil {
		t.Fatal(err)
	}
	request, err := search.ReadStudy(study, space)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range request.History {
		got = append(got, fmt.Sprintf("trial %d: %v outcome %d value %v", o.Trial, o.Values, o.Outcome, o.Value))
	}
	for _, values := range request.Pending {
		got = append(got, fmt.Sprintf("pending: %v", values))
	}
	want := []string{
		`trial 0: a="x" b=2 outcome 0 value 1`,
		`trial 1: a="y" b=1 outcome 0 value 2`,
		`trial 2: a="y" b=2 outcome 1 value 3`,
		`trial 3: a="y" b=2 outcome 1 value 5`,
		`trial 5: a="gone" b=0.5 outcome 2 value 0`,
		`pending: a="x" b=1`,
		`pending: a="y" b=1 constant=7`,
	}
	if diff := cmp.Diff(want, got); diff != "" || request.Minimize {
		t.Errorf("minimize %v (-want +got):\n%s", request.Minimize, diff)
	}
}

// TestRelativeSamplerTakesEnqueuedTrials as far as they go, and ends when all
// configurations are known.
func TestRelativeSamplerTakesEnqueuedTrials(t *testing.T) {
	space := newSpace(t, []search.Knob{
		{ID: "a", Kind: search.Categorical, Levels: search.Choices("x", "y"), Default: search.Text("x")},
		{ID: "b", Kind: search.Integer, Levels: []search.Value{search.Int(1), search.Int(2)}, Default: search.Int(1)},
		{ID: "constant", Kind: search.Integer, Levels: []search.Value{search.Int(7)}, Default: search.Int(7)},
	})
	study := goptunaStudy(t, space)
	if err := study.EnqueueTrial(map[string]float64{"b": 1}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := study.Optimize(func(trial goptuna.Trial) (float64, error) {
		values, err := search.Suggest(&trial, space)
		got = append(got, values.String())
		return 1, err
	}, 5)
	if !errors.Is(err, search.ErrExhausted) || len(got) != 4 || got[0] != `a="x" b=2 constant=7` {
		t.Errorf("got %q %v, want the enqueued trial completed, the other three, and ErrExhausted", got, err)
	}
}

// TestRelativeSamplerLearnsWhatFails: the corner that crashes is left.
func TestRelativeSamplerLearnsWhatFails(t *testing.T) {
	levels, err := search.Range(80, 99, 1)
	if err != nil {
		t.Fatal(err)
	}
	space := newSpace(t, []search.Knob{
		{ID: "memory", Kind: search.Integer, Levels: levels, Default: search.Int(88)},
		{ID: "batch", Kind: search.Log2, Levels: []search.Value{search.Int(1), search.Int(2), search.Int(4), search.Int(8)}, Default: search.Int(4)},
		{ID: "attention", Kind: search.Categorical, Levels: search.Choices("fa3", "flashinfer", "triton"), Default: search.Text("fa3")},
	})
	study := goptunaStudy(t, space, goptuna.StudyOptionIgnoreError(true))
	crashes := 0
	err = study.Optimize(func(trial goptuna.Trial) (float64, error) {
		values, err := search.Suggest(&trial, space)
		if memory := number(values["memory"]); memory < 94 {
			return memory + number(values["batch"]), err
		}
		crashes++
		return 0, errors.Join(err, errors.New("out of memory"))
	}, 20)
	if err != nil {
		t.Fatal(err)
	}
	if crashes > 4 {
		t.Errorf("%d of 20 trials crashed, want at most 4", crashes)
	}
}

// TestRelativeSamplerWantsTheDeclaration: without it goptuna would pass the
// proposals by in silence, or panic.
func TestRelativeSamplerWantsTheDeclaration(t *testing.T) {
	problem := problems.Server(1)
	study := goptunaStudy(t, problem.Space, goptuna.StudyOptionDefineSearchSpace(map[string]any{
		"x": goptuna.CategoricalDistribution{Choices: []string{"a"}},
	}))
	err := study.Optimize(func(goptuna.Trial) (float64, error) { return 0, nil }, 1)
	if err == nil || !strings.Contains(err.Error(), "search.Distributions") {
		t.Errorf("got %v, want an error that names search.Distributions", err)
	}
}

// TestRelativeSamplerEndsWithTheContext: goptuna's interface has no context, the
// study has.
func TestRelativeSamplerEndsWithTheContext(t *testing.T) {
	levels, err := search.Range(0, 60, 1)
	if err != nil {
		t.Fatal(err)
	}
	var knobs []search.Knob
	for _, id := range []string{"a", "b", "c", "d"} {
		knobs = append(knobs, search.Knob{ID: id, Kind: search.Integer, Levels: levels, Default: search.Int(0)})
	}
	// No configuration is legal, and it takes for ever to find that out.
	space := newSpace(t, knobs, "a + b + c + d < 0")
	study := goptunaStudy(t, space)
	ctx, cancel := context.WithCancel(context.Background())
	study.WithContext(lateContext{ctx, cancel})
	err = study.Optimize(func(goptuna.Trial) (float64, error) { return 0, nil }, 1)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context was canceled", err)
	}
}

// lateContext is cancelled once somebody has looked at its error.
type lateContext struct {
	context.Context
	cancel context.CancelFunc
}

func (c lateContext) Err() error {
	defer c.cancel()
	return c.Context.Err()
}
