package search_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/search"
)

// serverKnobs is a space as a campaign file declares it.
func serverKnobs(t testing.TB) []search.Knob {
	t.Helper()
	steps, err := search.Range(0, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	threads, err := search.PowersOfTwo(64, 512)
	if err != nil {
		t.Fatal(err)
	}
	speculating := search.Condition{Knob: "speculative.steps", In: []search.Value{search.Int(0)}, Not: true}
	return []search.Knob{
		{ID: "NCCL_PROTO", Kind: search.Categorical, Levels: search.WithUnset(search.Choices("LL", "Simple")), Default: search.Unset},
		{ID: "NCCL_NTHREADS", Kind: search.Log2, Levels: search.WithUnset(threads), Default: search.Unset},
		{ID: "NCCL_P2P_LEVEL", Kind: search.Ordinal, Levels: search.WithUnset(search.Choices("PIX", "PHB", "SYS")), Default: search.Unset},
		search.SwitchKnob("flag.disable_custom_all_reduce"),
		search.GroupKnob("attention", "fa3", "fa3", "flashinfer"),
		{ID: "speculative.steps", Kind: search.Integer, Levels: steps, Default: search.Int(0)},
		{ID: "speculative.topk", Kind: search.Ordinal, Levels: []search.Value{search.Int(1), search.Int(4)}, Default: search.Int(1), When: speculating},
	}
}

func newSpace(t testing.TB, knobs []search.Knob, sources ...string) *search.Space {
	t.Helper()
	constraints := make([]search.Constraint, len(sources))
	for i, source := range sources {
		constraints[i] = search.Constraint{Source: source}
	}
	space, err := search.NewSpace(knobs, constraints, nil)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func TestNewSpaceRefusesWrongDefinitions(t *testing.T) {
	one, two := search.Int(1), search.Int(2)
	good := search.Knob{ID: "A", Kind: search.Integer, Levels: []search.Value{one, two}, Default: one}
	with := func(change func(*search.Knob)) []search.Knob {
		knob := good
		knob.Levels = slices.Clone(good.Levels)
		change(&knob)
		return []search.Knob{knob}
	}
	tests := map[string]struct {
		knobs []search.Knob
		want  string
	}{
		"no knobs":            {nil, "no knobs"},
		"no name":             {with(func(k *search.Knob) { k.ID = "" }), "has no name"},
		"no levels":           {with(func(k *search.Knob) { k.Levels = nil }), "has no levels"},
		"level twice":         {with(func(k *search.Knob) { k.Levels = []search.Value{one, search.Float(1)} }), "level 1 is listed twice"},
		"default no level":    {with(func(k *search.Knob) { k.Default = search.Int(3) }), "default 3 is not one of its levels 1, 2"},
		"same knob twice":     {[]search.Knob{good, good}, "knob A: is defined twice"},
		"unset in the middle": {with(func(k *search.Knob) { k.Levels = []search.Value{one, search.Unset} }), "unset must be the first level"},
		"descending":          {with(func(k *search.Knob) { k.Levels = []search.Value{two, one} }), "levels must ascend, 1 follows 2"},
		"text in integers":    {with(func(k *search.Knob) { k.Levels = append(k.Levels, search.Text("x")) }), `level "x" is not an integer`},
		"no power of two":     {with(func(k *search.Knob) { k.Kind, k.Levels = search.Log2, []search.Value{one, search.Int(3)} }), "level 3 is not a power of two"},
		"unknown kind":        {with(func(k *search.Knob) { k.Kind = "curve" }), `kind "curve" is unknown`},
		"switch of numbers":   {with(func(k *search.Knob) { k.Kind = search.Switch }), "neither unset nor a boolean"},
		"group of numbers":    {with(func(k *search.Knob) { k.Kind = search.Group }), "is not a name"},
		"condition on later knob": {append(with(func(k *search.Knob) {
			k.ID, k.When = "B", search.Condition{Knob: "A", In: []search.Value{one}}
		}), good), "depends on A, which is not a knob before it"},
		"condition on no level": {append([]search.Knob{good}, with(func(k *search.Knob) {
			k.ID, k.When = "B", search.Condition{Knob: "A", In: []search.Value{search.Int(7)}}
		})...), "depends on A being 7, which is not one of its levels 1, 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := search.NewSpace(test.knobs, nil, nil)
			var fault *search.KnobError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a KnobError with %q", err, test.want)
			}
		})
	}
}

func TestNewSpaceReportsAllFaults(t *testing.T) {
	_, err := search.NewSpace([]search.Knob{{ID: "A", Kind: search.Integer}, {ID: "B", Kind: search.Switch}}, nil, nil)
	for _, want := range []string{"knob A", "knob B"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

func TestComplete(t *testing.T) {
	space := newSpace(t, serverKnobs(t))
	got, err := space.Complete(search.Values{
		"NCCL_PROTO":       search.Text("LL"),
		"speculative.topk": search.Int(4), // does not matter at 0 steps
	})
	if err != nil {
		t.Fatal(err)
	}
	want := space.Default()
	want["NCCL_PROTO"] = search.Text("LL")
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("completed (-want +got):\n%s", diff)
	}
	if _, ok := got["speculative.topk"]; ok {
		t.Error("a knob that does not matter has a value")
	}
	speculating, err := space.Complete(search.Values{"speculative.steps": search.Int(2)})
	if err != nil {
		t.Fatal(err)
	}
	if speculating["speculative.topk"] != search.Int(1) {
		t.Errorf("topk under speculation is %s, want its default 1", speculating["speculative.topk"])
	}
}

func TestCompleteNamesEveryFault(t *testing.T) {
	space := newSpace(t, serverKnobs(t))
	_, err := space.Complete(search.Values{
		"NCCL_PROT0":     search.Text("LL"),
		"NCCL_NTHREADS":  search.Int(480),
		"NCCL_P2P_LEVEL": search.Text("sys"),
	})
	var unknown *search.UnknownKnobError
	if !errors.As(err, &unknown) || unknown.Nearest != "NCCL_PROTO" {
		t.Errorf("got %v, want an unknown knob near NCCL_PROTO", err)
	}
	for _, want := range []string{
		"knob NCCL_NTHREADS: 480 is not allowed, want one of unset, 64, 128, 256, 512 (did you mean 512?)",
		`knob NCCL_P2P_LEVEL: "sys" is not allowed, want one of unset, "PIX", "PHB", "SYS" (did you mean "SYS"?)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant it to contain %s", err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	space := newSpace(t, serverKnobs(t), `NCCL_PROTO != "LL" || NCCL_NTHREADS <= 256`)
	change := func(changes search.Values) search.Values {
		values := space.Default()
		for id, value := range changes {
			values[id] = value
		}
		return values
	}
	t.Run("baseline", func(t *testing.T) {
		if err := space.Check(space.Default()); err != nil {
			t.Errorf("the baseline is refused: %v", err)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		err := space.Check(change(search.Values{"NCCL_PROTO": search.Text("LL"), "NCCL_NTHREADS": search.Int(512)}))
		var rejected *search.RejectedError
		if !errors.As(err, &rejected) || rejected.Values.String() != `NCCL_NTHREADS=512 NCCL_PROTO="LL"` {
			t.Errorf("got %v, want a rejection that shows both values", err)
		}
	})
	t.Run("value that does not matter", func(t *testing.T) {
		err := space.Check(change(search.Values{"speculative.topk": search.Int(4)}))
		var fault *search.ActivityError
		if !errors.As(err, &fault) || fault.Active || !strings.Contains(err.Error(), "speculative.steps not in [0]") {
			t.Errorf("got %v, want an activity error with the condition", err)
		}
	})
	t.Run("missing value", func(t *testing.T) {
		err := space.Check(change(search.Values{"speculative.steps": search.Int(1)}))
		var fault *search.ActivityError
		if !errors.As(err, &fault) || !fault.Active || fault.Knob != "speculative.topk" {
			t.Errorf("got %v, want a missing topk", err)
		}
	})
}

func TestBaselineRejectedIsDetectable(t *testing.T) {
	space := newSpace(t, serverKnobs(t), "NCCL_NTHREADS != unset")
	var rejected *search.RejectedError
	if err := space.Check(space.Default()); !errors.As(err, &rejected) {
		t.Errorf("got %v, want a rejection", err)
	}
	values, ok := space.AnyLegal(context.Background())
	if !ok || space.Check(values) != nil {
		t.Errorf("got %v %v, want a legal configuration", values, ok)
	}
}

func TestConstraintsThatExcludeEverythingAreDetectable(t *testing.T) {
	space := newSpace(t, serverKnobs(t), "NCCL_NTHREADS in [64, 128]", "NCCL_NTHREADS > 128 && NCCL_NTHREADS != unset")
	if values, ok := space.AnyLegal(context.Background()); ok {
		t.Errorf("got %v, want none", values)
	}
	if n, exact := space.Count(context.Background()); n != 0 || !exact {
		t.Errorf("count is %v (exact %v), want exactly 0", n, exact)
	}
}

func TestNeighbours(t *testing.T) {
	space := newSpace(t, serverKnobs(t), "speculative.steps <= 2")
	count := 0
	for neighbour := range space.Neighbours(space.Default()) {
		if err := space.Check(neighbour); err != nil {
			t.Errorf("%v: %v", neighbour, err)
		}
		count++
	}
	// 2 protocols, 4 threads, 3 levels, 1 switch, 1 attention, 2 step counts
	if count != 13 {
		t.Errorf("the baseline has %d neighbours, want 13", count)
	}
}

func TestDescribe(t *testing.T) {
	space := newSpace(t, serverKnobs(t), "speculative.steps <= 2")
	want := `NCCL_PROTO  categorical: unset, "LL", "Simple", default unset
NCCL_NTHREADS  log2: unset, 64, 128, 256, 512, default unset
NCCL_P2P_LEVEL  ordinal: unset, "PIX", "PHB", "SYS", default unset
flag.disable_custom_all_reduce  switch: unset, true, default unset
attention  group: "fa3", "flashinfer", default "fa3"
speculative.steps  integer: 0, 1, 2, 3, 4, default 0
speculative.topk  ordinal: 1, 4, default 1, only when speculative.steps not in [0]
constraint  speculative.steps <= 2
`
	if diff := cmp.Diff(want, space.Describe()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
