package search_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/c-bata/goptuna"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/search"
	"nocturne/search/problems"
)

// scripted is a sampler that does as told.
type scripted func(search.Request) (search.Proposal, error)

func (scripted) Name() string { return "scripted" }

func (s scripted) Ask(_ context.Context, request search.Request) (search.Proposal, error) {
	return s(request)
}

// TestProposalsSurviveTheFrame: every level of every knob, the reason and the
// expectation come back from goptuna as they went in.
func TestProposalsSurviveTheFrame(t *testing.T) {
	space := newSpace(t, append(serverKnobs(t), search.Knob{
		ID: "alike", Kind: search.Categorical, Default: search.Text("4"),
		Levels: []search.Value{search.Unset, search.Text("unset"), search.Text("4"), search.Int(4)},
	}))
	values := space.Default()
	sampler := search.InFrame(scripted(func(search.Request) (search.Proposal, error) {
		return search.Proposal{Values: values, Reason: "why not", Expected: &search.Expected{Ratio: 1.5}}, nil
	}))
	check := func(want search.Values) {
		values = want
		proposal, err := sampler.Ask(context.Background(), search.Request{Space: space})
		expected := search.Proposal{Values: want, Reason: "why not", Expected: &search.Expected{Ratio: 1.5}}
		if diff := cmp.Diff(fmt.Sprintf("%+v %+v", expected.Values, *expected.Expected), fmt.Sprintf("%+v %+v", proposal.Values, *proposal.Expected)); err != nil || diff != "" {
			t.Errorf("%v (-sent +came back):\n%s", err, diff)
		}
		if proposal.Reason != expected.Reason {
			t.Errorf("the reason came back as %q", proposal.Reason)
		}
	}
	check(values)
	for neighbour := range space.Neighbours(space.Default()) {
		check(neighbour)
	}
}

// TestTheFrameMakesPanicsErrors also pins that the sampler's own errors come out
// as they are.
func TestTheFrameMakesPanicsErrors(t *testing.T) {
	space := newSpace(t, serverKnobs(t))
	sampler := search.InFrame(scripted(func(search.Request) (search.Proposal, error) { panic("out of luck") }))
	_, err := sampler.Ask(context.Background(), search.Request{Space: space})
	var failed *search.SamplerError
	if !errors.As(err, &failed) || failed.Sampler != "scripted" || len(failed.Stack) == 0 {
		t.Errorf("got %v, want a SamplerError of the sampler scripted with a stack", err)
	}
	sampler = search.InFrame(scripted(func(search.Request) (search.Proposal, error) { return search.Proposal{}, search.ErrExhausted }))
	if _, err := sampler.Ask(context.Background(), search.Request{Space: space}); err != search.ErrExhausted { //nolint:errorlint // unwrapped on purpose
		t.Errorf("got %v, want ErrExhausted itself", err)
	}
}

// TestStudiesHoldRequests: what is written into a study is read back from it, for
// any request.
func TestStudiesHoldRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := drawSpace(t)
		request := drawRequest(t, space)
		study, err := search.NewStudy(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		read, err := search.ReadStudy(study, space)
		if err != nil {
			t.Fatal(err)
		}
		if read.Minimize != request.Minimize || len(read.History) != len(request.History) || len(read.Pending) != len(request.Pending) {
			t.Fatalf("wrote %d trials and %d pending, read %d and %d", len(request.History), len(request.Pending), len(read.History), len(read.Pending))
		}
		for n, want := range request.History {
			if math.IsNaN(want.Value) || math.IsInf(want.Value, 0) {
				want.Outcome = search.Infeasible
			}
			if want.Outcome == search.Infeasible {
				want.Value = 0
			}
			got := read.History[n]
			if space.Key(got.Values) != space.Key(want.Values) || got.Outcome != want.Outcome || got.Value != want.Value {
				t.Fatalf("wrote %+v, read %+v", want, got)
			}
		}
		for n, want := range request.Pending {
			if got := read.Pending[n]; space.Key(got) != space.Key(want) {
				t.Fatalf("wrote %v, read %v", want, got)
			}
		}
	})
}

// TestStudiesOfConstants: a trial without parameters counts where there are none.
func TestStudiesOfConstants(t *testing.T) {
	space := newSpace(t, []search.Knob{{ID: "x", Kind: search.Integer, Levels: []search.Value{search.Int(7)}, Default: search.Int(7)}})
	request := search.Request{Space: space, History: []search.Observation{{Values: space.Default(), Value: 1}}}
	study, err := search.NewStudy(context.Background(), request, goptuna.StudyOptionRelativeSampler(search.NewRelativeSampler(space, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := goptunaTrial(study); !errors.Is(err, search.ErrExhausted) {
		t.Errorf("got %v, want ErrExhausted: the only configuration has been measured", err)
	}
}

// TestStudiesFindTheirBest although the first value is not a number.
func TestStudiesFindTheirBest(t *testing.T) {
	space := newSpace(t, serverKnobs(t))
	request := search.Request{Space: space, History: []search.Observation{
		{Values: space.Default(), Value: math.NaN()}, {Values: space.Default(), Value: 1}, {Values: space.Default(), Value: 3}, {Values: space.Default(), Value: 2},
	}}
	study, err := search.NewStudy(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if best, err := study.GetBestValue(); err != nil || best != 3 {
		t.Errorf("the best is %v (%v), want 3", best, err)
	}
	trial, err := goptunaTrial(study)
	if err != nil {
		t.Fatal(err)
	}
	if values, err := search.Suggest(&trial, space); err == nil {
		t.Errorf("a study without a sampler suggests %v", values)
	}
}

// TestDistributions: every knob is declared with all its levels, constants are not.
func TestDistributions(t *testing.T) {
	space := newSpace(t, append(serverKnobs(t), search.Knob{
		ID: "constant", Kind: search.Integer, Levels: []search.Value{search.Int(7)}, Default: search.Int(7),
	}))
	distributions := search.Distributions(space)
	for _, knob := range space.Knobs() {
		if knob.ID == "constant" {
			if distribution, ok := distributions[knob.ID]; ok {
				t.Errorf("the constant is declared as %#v", distribution)
			}
			continue
		}
		categories, ok := distributions[knob.ID].(goptuna.CategoricalDistribution)
		if !ok || len(categories.Choices) != len(knob.Levels) || !categories.Contains(float64(len(knob.Levels)-1)) {
			t.Errorf("%s is declared as %#v", knob.ID, distributions[knob.ID])
		}
	}
}

// BenchmarkFrame is what goptuna's frame adds to a proposal.
func BenchmarkFrame(b *testing.B) {
	problem := problems.Server(1)
	sampler := search.InFrame(scripted(func(request search.Request) (search.Proposal, error) {
		return search.Proposal{Values: request.Space.Default()}, nil
	}))
	for _, n := range []int{40, 1000, 10000} {
		b.Run(fmt.Sprintf("history=%d", n), func(b *testing.B) {
			request := search.Request{Space: problem.Space, History: longHistory(b, problem, n)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sampler.Ask(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// goptunaTrial asks goptuna itself for one trial.
func goptunaTrial(study *goptuna.Study) (trial goptuna.Trial, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	id, err := study.Storage.CreateNewTrial(study.ID)
	if err != nil {
		return goptuna.Trial{}, err
	}
	trial = goptuna.Trial{Study: study, ID: id}
	return trial, trial.CallRelativeSampler()
}

// plainStudy is a study of goptuna without any guard.
func plainStudy(t *testing.T, options ...goptuna.StudyOption) *goptuna.Study {
	t.Helper()
	study, err := goptuna.CreateStudy("plain", append([]goptuna.StudyOption{goptuna.StudyOptionLogger(nil)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return study
}

// TestGoptunaInfersNoSpaceWithCategories is why spaces are always declared.
func TestGoptunaInfersNoSpaceWithCategories(t *testing.T) {
	study := plainStudy(t, goptuna.StudyOptionRelativeSampler(search.NewRelativeSampler(problems.Server(1).Space, 1)))
	for range 2 {
		trial, err := study.Storage.CreateNewTrial(study.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := study.Storage.SetTrialParam(trial, "x", 0, goptuna.CategoricalDistribution{Choices: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
		if err := study.Storage.SetTrialState(trial, goptuna.TrialStateComplete); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := goptunaTrial(study); err == nil {
		t.Error("goptuna no longer panics when it compares categories: the declaration of the space may be left to it")
	}
}

// TestGoptunaKeepsNaNAsBest is why values that are not finite are told as
// failures.
func TestGoptunaKeepsNaNAsBest(t *testing.T) {
	study := plainStudy(t)
	for _, value := range []float64{math.NaN(), 1} {
		if _, err := study.Storage.CloneTrial(study.ID, goptuna.FrozenTrial{State: goptuna.TrialStateComplete, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if best, err := study.GetBestValue(); err != nil || !math.IsNaN(best) {
		t.Errorf("the best of NaN and 1 is %v (%v): goptuna has mended it", best, err)
	}
}

// TestGoptunaStorageIsOneStudy is why every ask has a storage of its own.
func TestGoptunaStorageIsOneStudy(t *testing.T) {
	storage := goptuna.NewInMemoryStorage()
	first := plainStudy(t, goptuna.StudyOptionStorage(storage))
	if _, err := goptunaTrial(first); err != nil {
		t.Fatal(err)
	}
	trials, err := plainStudy(t, goptuna.StudyOptionStorage(storage)).GetTrials()
	if err != nil || len(trials) == 0 {
		t.Errorf("a second study sees %d trials of the first (%v): goptuna has mended it", len(trials), err)
	}
}
