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

// TestF01_EqualityOfNumbers: one number is one value however it was written,
// and no digit of it is lost.
func TestF01_EqualityOfNumbers(t *testing.T) {
	var values []search.Value
	for _, text := range []string{"16777216", "1.6777216e+07", "16777216.0"} {
		var v search.Value
		if err := v.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	for _, v := range values {
		if v != search.Int(16777216) || v.String() != "16777216" {
			t.Errorf("got %s, want the integer 16777216", v)
		}
	}
	_, err := search.NewSpace([]search.Knob{{ID: "NCCL_BUFFSIZE", Kind: search.Ordinal, Levels: values, Default: values[0]}}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "listed twice") {
		t.Errorf("got %v, want the duplicate to be refused", err)
	}
	var huge search.Value
	if err := huge.UnmarshalJSON([]byte("18446744073709551615")); err == nil {
		t.Errorf("an integer beyond 64 bits became %s", huge)
	}
}

// TestF08_ThreadsAndBuffers: the helpers give the documented sets and no
// others: threads 64 to 512 and buffers that are powers of two.
func TestF08_ThreadsAndBuffers(t *testing.T) {
	threads, err := search.PowersOfTwo(64, 640)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[64 128 256 512]", texts(threads)); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	buffers, err := search.PowersOfTwo(1000000, 16777216)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[1048576 2097152 4194304 8388608 16777216]", texts(buffers)); diff != "" {
		t.Errorf("buffers (-want +got):\n%s", diff)
	}
	if _, err := search.PowersOfTwo(1000000, 1000001); err == nil {
		t.Error("a range without a power of two was accepted")
	}
}

func texts(levels []search.Value) string {
	words := make([]string, len(levels))
	for i, level := range levels {
		words[i] = level.String()
	}
	return "[" + strings.Join(words, " ") + "]"
}

func TestRange(t *testing.T) {
	const maxInt, minInt = 1<<63 - 1, -1 << 63
	tests := []struct {
		lo, hi, step int64
		want         string
	}{
		{2, 32, 2, "[2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32]"},
		{0, 10, 4, "[0 4 8]"},
		{5, 5, 1, "[5]"},
		{maxInt - 1, maxInt, 1, "[9223372036854775806 9223372036854775807]"},
		{5, 4, 1, "reversed"},
		{1, 4, 0, "want a step above 0"},
		{minInt, maxInt, 1, "more than 4096"},
	}
	for _, test := range tests {
		levels, err := search.Range(test.lo, test.hi, test.step)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("Range(%d, %d, %d): got %v, want %q", test.lo, test.hi, test.step, err, test.want)
			}
			continue
		}
		if texts(levels) != test.want {
			t.Errorf("Range(%d, %d, %d) = %s, want %s", test.lo, test.hi, test.step, texts(levels), test.want)
		}
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
