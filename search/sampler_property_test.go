package search_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/search"
)

// drawKnob draws a knob of any kind, sometimes with one level only.
func drawKnob(t *rapid.T, id string) search.Knob {
	kind := rapid.SampledFrom([]search.KnobKind{
		search.Categorical, search.Ordinal, search.Integer, search.Log2, search.Switch, search.Group,
	}).Draw(t, "kind")
	n := rapid.IntRange(1, 6).Draw(t, "levels")
	knob := search.Knob{ID: id, Kind: kind}
	for i := range n {
		switch kind {
		case search.Categorical, search.Group:
			knob.Levels = append(knob.Levels, search.Text(string(rune('a'+i))))
		case search.Ordinal:
			knob.Levels = append(knob.Levels, search.Float(float64(i)+0.5))
		case search.Log2:
			knob.Levels = append(knob.Levels, search.Int(1<<i))
		default:
			knob.Levels = append(knob.Levels, search.Int(int64(i)))
		}
	}
	if kind == search.Switch {
		return search.SwitchKnob(id)
	}
	if rapid.Bool().Draw(t, "unset") {
		knob.Levels = search.WithUnset(knob.Levels)
	}
	knob.Default = rapid.SampledFrom(knob.Levels).Draw(t, "default")
	return knob
}

// drawKnobs draws up to six knobs, some of which depend on an earlier one.
func drawKnobs(t *rapid.T) []search.Knob {
	knobs := make([]search.Knob, rapid.IntRange(1, 6).Draw(t, "knobs"))
	for i := range knobs {
		knobs[i] = drawKnob(t, fmt.Sprintf("knob.k%d", i))
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			parent := knobs[rapid.IntRange(0, i-1).Draw(t, "parent")]
			knobs[i].When = search.Condition{
				Knob: parent.ID, Not: rapid.Bool().Draw(t, "not"),
				In: []search.Value{rapid.SampledFrom(parent.Levels).Draw(t, "in")},
			}
		}
	}
	return knobs
}

// drawConstraints draws rules that forbid a pair of levels.
func drawConstraints(t *rapid.T, knobs []search.Knob) []search.Constraint {
	var constraints []search.Constraint
	for range rapid.IntRange(0, 2).Draw(t, "constraints") {
		a := rapid.SampledFrom(knobs).Draw(t, "a")
		b := rapid.SampledFrom(knobs).Draw(t, "b")
		constraints = append(constraints, search.Constraint{Source: fmt.Sprintf("!(%s == %s && %s == %s)",
			a.ID, literal(rapid.SampledFrom(a.Levels).Draw(t, "level")), b.ID, literal(rapid.SampledFrom(b.Levels).Draw(t, "level")))})
	}
	return constraints
}

func literal(v search.Value) string {
	if text, ok := v.Any().(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return v.String()
}

// firstKnobInert is a canonicalize function: the first knob never matters.
func firstKnobInert(values search.Values) search.Values {
	delete(values, "knob.k0")
	return values
}

func drawSpace(t *rapid.T) *search.Space {
	knobs := drawKnobs(t)
	var canonicalize func(search.Values) search.Values
	if rapid.Bool().Draw(t, "canonicalize") {
		canonicalize = firstKnobInert
	}
	space, err := search.NewSpace(knobs, drawConstraints(t, knobs), canonicalize)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// drawRequest draws a request of any kind over the space: histories of all lengths,
// outcomes and scales, and everything else that a request may hold.
func drawRequest(t *rapid.T, space *search.Space) search.Request {
	var configurations []search.Values
	for values := range space.Enumerate() {
		if configurations = append(configurations, values); len(configurations) == 200 {
			break
		}
	}
	request := search.Request{Space: space, Minimize: rapid.Bool().Draw(t, "minimize"), Seed: rapid.Uint64().Draw(t, "seed")}
	if len(configurations) == 0 {
		return request
	}
	drawValues := rapid.SampledFrom(configurations)
	request.Factors = drawFactors(t, space)
	request.History = drawHistory(t, configurations, request.Factors)
	for range rapid.IntRange(0, 3).Draw(t, "pending") {
		request.Pending = append(request.Pending, drawValues.Draw(t, "values"))
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "hints") {
		request.Hints = append(request.Hints, drawValues.Draw(t, "values"))
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "starts") {
		start := search.Start{Values: drawValues.Draw(t, "values"), Reason: rapid.SampledFrom([]string{"", "a recipe"}).Draw(t, "reason")}
		if rapid.IntRange(0, 3).Draw(t, "nonsense") == 0 {
			start.Values = search.Values{"nonsense": search.Int(1)}
		}
		request.Starts = append(request.Starts, start)
	}
	for n := range rapid.IntRange(0, 2).Draw(t, "related") {
		request.Related = append(request.Related, search.Related{
			Name: fmt.Sprintf("campaign %d", n), Minimize: rapid.Bool().Draw(t, "minimize"), History: drawHistory(t, configurations, request.Factors),
		})
	}
	request.Remaining = rapid.IntRange(0, 40).Draw(t, "remaining")
	return request
}

// drawFactors draws up to two factors, of which one may name a knob that is not
// there.
func drawFactors(t *rapid.T, space *search.Space) []search.Factor {
	ids := []string{"nonsense"}
	for _, knob := range space.Knobs() {
		ids = append(ids, knob.ID)
	}
	factors := make([]search.Factor, rapid.IntRange(0, 2).Draw(t, "factors"))
	for n := range factors {
		factors[n] = search.Factor{
			Name: fmt.Sprintf("factor %d", n), Power: rapid.SampledFrom([]float64{1, -1, 0}).Draw(t, "power"),
			Knobs: rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, len(ids), rapid.ID).Draw(t, "knobs of the factor"),
		}
	}
	return factors
}

// drawHistory draws trials; their numbers come from a generator of their own, for
// long histories take rapid too long.
func drawHistory(t *rapid.T, configurations []search.Values, factors []search.Factor) []search.Observation {
	lengths := []int{0, 1, 3, 12, 40}
	if rapid.IntRange(0, 49).Draw(t, "long") == 0 {
		lengths = []int{1000}
	}
	objective := rapid.SampledFrom(slices.Sorted(maps.Keys(objectives))).Draw(t, "objective")
	outcomes := rapid.SampledFrom([][]search.Outcome{
		{search.Measured}, {search.Infeasible}, {search.Pruned}, {search.Measured, search.Pruned, search.Infeasible},
		{search.Measured, search.Measured, search.Measured, search.Infeasible},
	}).Draw(t, "outcomes")
	few := rapid.IntRange(1, len(configurations)).Draw(t, "configurations")
	random := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "numbers")))
	history := make([]search.Observation, rapid.SampledFrom(lengths).Draw(t, "trials"))
	for n := range history {
		o := search.Observation{Trial: n + 1, Values: configurations[random.IntN(few)], Outcome: outcomes[random.IntN(len(outcomes))]}
		o.Value = objectives[objective](random)
		switch random.IntN(4) {
		case 0:
			o.StandardError = math.Abs(o.Value) / 100
		case 1:
			o.StandardError = objectives["wild"](random)
		}
		for _, factor := range factors {
			if random.IntN(3) > 0 {
				o.Factors = map[string]float64{factor.Name: objectives[objective](random)}
			}
		}
		if random.IntN(3) == 0 {
			o.Margins = map[string]float64{"ttft_p99": objectives[objective](random), "tpot_p99": random.NormFloat64()}
		}
		history[n] = o
	}
	return history
}

// objectives are kinds of values that a server never has, and those it has.
var objectives = map[string]func(*rand.Rand) float64{
	"ordinary": func(r *rand.Rand) float64 { return 50 + 150*r.Float64() },
	"constant": func(*rand.Rand) float64 { return 7 },
	"zero":     func(*rand.Rand) float64 { return 0 },
	"tiny":     func(r *rand.Rand) float64 { return (0.5 + r.Float64()) * 1e-300 },
	"smallest": func(r *rand.Rand) float64 { return float64(r.IntN(3)) * math.SmallestNonzeroFloat64 },
	"huge":     func(r *rand.Rand) float64 { return (0.5 + r.Float64()) * 8e307 },
	"negative": func(r *rand.Rand) float64 { return -(0.5 + r.Float64()) * 1e9 },
	"mixed":    func(r *rand.Rand) float64 { return (r.Float64() - 0.5) * math.MaxFloat64 },
	"spread":   func(r *rand.Rand) float64 { return math.Pow(10, 600*r.Float64()-300) },
	"wild": func(r *rand.Rand) float64 {
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 100, 1e300, -1e300, 1e-300}[r.IntN(10)]
	},
}

// TestProposalsAreLegalAndNew: any space and any history yield a legal, new
// proposal, or ErrExhausted when there is none.
func TestProposalsAreLegalAndNew(t *testing.T) {
	for _, name := range search.Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				space := drawSpace(t)
				request := drawRequest(t, space)
				sampler, err := search.New(name)
				if err != nil {
					t.Fatal(err)
				}
				checkAsk(t, sampler, request)
			})
		})
	}
}

func checkAsk(t *rapid.T, sampler search.Sampler, request search.Request) {
	taken := make(map[string]bool)
	for _, o := range request.History {
		taken[request.Space.Key(o.Values)] = true
	}
	for _, values := range request.Pending {
		taken[request.Space.Key(values)] = true
	}
	left := false
	for values := range request.Space.Enumerate() {
		left = left || !taken[request.Space.Key(values)]
	}
	proposal, err := sampler.Ask(context.Background(), request)
	if !left {
		if !errors.Is(err, search.ErrExhausted) {
			t.Fatalf("nothing is left, got %v %v, want ErrExhausted", proposal, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("something is left, got %v", err)
	}
	if err := request.Space.Check(proposal.Values); err != nil {
		t.Fatalf("proposed %v: %v", proposal.Values, err)
	}
	if taken[request.Space.Key(proposal.Values)] {
		t.Fatalf("proposed %v again", proposal.Values)
	}
	if proposal.Reason == "" {
		t.Fatal("the proposal has no reason")
	}
	if given, reason, ok := firstGiven(request, taken); ok && (request.Space.Key(given) != request.Space.Key(proposal.Values) || reason != proposal.Reason) {
		t.Fatalf("proposed %v (%s), want %v (%s)", proposal.Values, proposal.Reason, given, reason)
	}
	again, err := sampler.Ask(context.Background(), request)
	if diff := gocmp.Diff(proposal.Values.String(), again.Values.String()); err != nil || diff != "" {
		t.Fatalf("the same request gave another proposal (%v):\n%s", err, diff)
	}
}

// firstGiven is the first of the hints, and after them of the starts, that is legal
// and new.
func firstGiven(request search.Request, taken map[string]bool) (values search.Values, reason string, ok bool) {
	fits := func(partial search.Values) bool {
		whole, err := request.Space.Complete(partial)
		return err == nil && request.Space.Check(whole) == nil && !taken[request.Space.Key(whole)]
	}
	for n, hint := range request.Hints {
		if fits(hint) {
			return hint, fmt.Sprintf("hint %d of %d", n+1, len(request.Hints)), true
		}
	}
	for n, start := range request.Starts {
		if fits(start.Values) {
			return start.Values, cmp.Or(start.Reason, fmt.Sprintf("start %d of %d", n+1, len(request.Starts))), true
		}
	}
	return nil, "", false
}

// TestOrderOfKnobsChangesOnlyTies: with the knobs of the file in another order
// the proposals are the same. Coordinate descent takes ties in the order of the
// file, and so is left out.
func TestOrderOfKnobsChangesOnlyTies(t *testing.T) {
	for _, name := range []string{"auto", "tpe", "cmaes", "sobol", "random", "grid"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				knobs := drawKnobs(t)
				constraints := drawConstraints(t, knobs)
				space, err := search.NewSpace(knobs, constraints, nil)
				if err != nil {
					t.Fatal(err)
				}
				request := drawRequest(t, space)
				permuted := permute(t, knobs)
				slices.Reverse(constraints)
				other, err := search.NewSpace(permuted, constraints, nil)
				if err != nil {
					t.Fatal(err)
				}
				sampler, err := search.New(name)
				if err != nil {
					t.Fatal(err)
				}
				first, firstErr := sampler.Ask(context.Background(), request)
				request.Space = other
				second, secondErr := sampler.Ask(context.Background(), request)
				if !errors.Is(secondErr, firstErr) {
					t.Fatalf("got %v and %v", firstErr, secondErr)
				}
				if diff := gocmp.Diff(first.Values.String(), second.Values.String()); diff != "" {
					t.Fatalf("(-one order +another):\n%s", diff)
				}
			})
		})
	}
}

// permute reorders knobs, keeping parents before children.
func permute(t *rapid.T, knobs []search.Knob) []search.Knob {
	rest := rapid.Permutation(knobs).Draw(t, "order")
	var sorted []search.Knob
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(k search.Knob) bool {
			return k.When.Knob == "" || slices.ContainsFunc(sorted, func(p search.Knob) bool { return p.ID == k.When.Knob })
		})
		sorted = append(sorted, rest[i])
		rest = slices.Delete(slices.Clone(rest), i, i+1)
	}
	return sorted
}

func TestCompleteIsIdempotentAndChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := drawSpace(t)
		partial := search.Values{}
		for _, knob := range space.Knobs() {
			if rapid.Bool().Draw(t, "given") {
				partial[knob.ID] = rapid.SampledFrom(knob.Levels).Draw(t, "level")
			}
		}
		once, err := space.Complete(partial)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := space.Complete(once)
		if err != nil || once.String() != twice.String() {
			t.Fatalf("completed %v to %v (%v)", once, twice, err)
		}
		if space.Key(partial) != space.Key(once) {
			t.Fatalf("keys differ: %s and %s", space.Key(partial), space.Key(once))
		}
		var rejected *search.RejectedError
		if err := space.Check(once); err != nil && !errors.As(err, &rejected) {
			t.Fatalf("a completed configuration has another fault than a constraint: %v", err)
		}
		active := space.Active(once)
		if len(active) != len(once) {
			t.Fatalf("active are %v, values are %v", active, once)
		}
	})
}

// TestCountAgreesWithEnumerate also pins AnyLegal and the keys to it.
func TestCountAgreesWithEnumerate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := drawSpace(t)
		keys := make(map[string]bool)
		for values := range space.Enumerate() {
			if err := space.Check(values); err != nil {
				t.Fatalf("enumerated %v: %v", values, err)
			}
			key := space.Key(values)
			if keys[key] {
				t.Fatalf("enumerated %v twice", values)
			}
			keys[key] = true
		}
		if n, exact := space.Count(context.Background()); !exact || n != float64(len(keys)) {
			t.Fatalf("count is %v (exact %v), enumerated %d", n, exact, len(keys))
		}
		values, ok := space.AnyLegal(context.Background())
		if ok != (len(keys) > 0) {
			t.Fatalf("AnyLegal says %v of %d configurations", ok, len(keys))
		}
		if ok && !keys[space.Key(values)] {
			t.Fatalf("AnyLegal gave %v, which is not in the space", values)
		}
	})
}
