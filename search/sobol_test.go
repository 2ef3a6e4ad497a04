package search_test

import (
	"math"
	"strings"
	"testing"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/sobol"

	"nocturne/search"
)

// sequence draws from goptuna's Sobol sampler itself.
func sequence(t *testing.T, space map[string]any, points int) (drawn []map[string]float64, err error) {
	t.Helper()
	sampler := sobol.NewSampler()
	recorder := relay(func(study *goptuna.Study, trial goptuna.FrozenTrial, space map[string]any) (map[string]float64, error) {
		params, err := sampler.SampleRelative(study, trial, space)
		drawn = append(drawn, params)
		return params, err
	})
	study := plainStudy(t, goptuna.StudyOptionDefineSearchSpace(space), goptuna.StudyOptionRelativeSampler(recorder))
	for range points {
		if _, err := goptunaTrial(study); err != nil {
			return drawn, err
		}
	}
	return drawn, nil
}

type relay func(*goptuna.Study, goptuna.FrozenTrial, map[string]any) (map[string]float64, error)

func (r relay) SampleRelative(study *goptuna.Study, trial goptuna.FrozenTrial, space map[string]any) (map[string]float64, error) {
	return r(study, trial, space)
}

// TestGoptunaSobolMissesTheTop is why knobs are numbers from 0 to 1.
func TestGoptunaSobolMissesTheTop(t *testing.T) {
	drawn, err := sequence(t, map[string]any{"x": goptuna.IntUniformDistribution{Low: 0, High: 10}, "y": goptuna.StepIntUniformDistribution{Low: 2, High: 32, Step: 2}}, 500)
	if err != nil {
		t.Fatal(err)
	}
	x, y := 0.0, 0.0
	for _, params := range drawn {
		x, y = max(x, params["x"]), max(y, params["y"])
	}
	if x == 10 || y == 32 {
		t.Errorf("500 points reach %v of 10 and %v of 32: goptuna has mended it", x, y)
	}
}

// TestGoptunaSobolHasNoSeed is why the sequence is shifted.
func TestGoptunaSobolHasNoSeed(t *testing.T) {
	space := map[string]any{"x": unitRange(), "y": unitRange()}
	drawn, err := sequence(t, space, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sequence(t, space, 1)
	if err != nil {
		t.Fatal(err)
	}
	if drawn[0]["x"] != again[0]["x"] || drawn[0]["y"] != again[0]["y"] {
		t.Errorf("two samplers draw %v and %v: goptuna has mended it", drawn, again)
	}
}

// TestSobolCoversTheSpace: every level of every knob comes equally often, the tops
// included, and two seeds give other configurations.
func TestSobolCoversTheSpace(t *testing.T) {
	space := integers(t, 2, search.Knob{ID: "p", Kind: search.Categorical, Levels: search.Choices("a", "b", "c"), Default: search.Text("a")})
	counts := make(map[string]int)
	proposals := climb(t, "sobol", search.Request{Space: space, Seed: 1}, 211, func(search.Values) float64 { return 1 })
	for _, proposal := range proposals[1:] {
		if strings.Contains(proposal.Reason, "random") {
			t.Error(proposal.Reason)
		}
		for id, value := range proposal.Values {
			counts[id+"="+value.String()]++
		}
	}
	if len(counts) != 21+21+3 {
		t.Errorf("%d of 45 levels were proposed", len(counts))
	}
	for level, n := range counts {
		want := 10.0
		if strings.HasPrefix(level, "p") {
			want = 70
		}
		if math.Abs(float64(n)-want) > 4 {
			t.Errorf("%s was proposed %d times in 210, want %.0f", level, n, want)
		}
	}
	other := climb(t, "sobol", search.Request{Space: space, Seed: 2}, 3, func(search.Values) float64 { return 1 })
	if other[1].Values.String() == proposals[1].Values.String() && other[2].Values.String() == proposals[2].Values.String() {
		t.Error("two seeds give the same sequence")
	}
}
