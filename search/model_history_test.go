package search_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"nocturne/search"
)

func spaceOf(t *testing.T, knobs []search.Knob, canon func(search.Values) search.Values) *search.Space {
	t.Helper()
	s, err := search.NewSpace(knobs, nil, canon)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ordinal(id string, n int) search.Knob {
	k := search.Knob{ID: id, Kind: search.Ordinal, Default: search.Int(0)}
	for i := range n {
		k.Levels = append(k.Levels, search.Int(int64(i)))
	}
	return k
}

func askModel(t *testing.T, r search.Request) (p search.Proposal, err error) {
	t.Helper()
	s, e := search.New("auto")
	if e != nil {
		t.Fatal(e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	if p, err = s.Ask(ctx, r); strings.Contains(p.Reason, "by descent") {
		t.Errorf("the model gave up: %s", p.Reason)
	}
	return p, err
}

// many pruned trials with good bounds push the measured ones out of thin().
func TestModelPrunedBoundsHideTheMeasured(t *testing.T) {
	space := spaceOf(t, []search.Knob{ordinal("a", 40), ordinal("b", 40)}, nil)
	r := search.Request{Space: space}
	for n := range 300 {
		o := search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(n % 40)), "b": search.Int(int64(n / 40))}, Outcome: search.Pruned, Value: 100 + float64(n%7)}
		if n == 1 {
			o.Outcome, o.Value = search.Measured, 90
		}
		r.History = append(r.History, o)
	}
	p, err := askModel(t, r)
	t.Log(p.Reason, err)
	if err != nil {
		t.Error(err)
	}
	defer func() {
		if x := recover(); x != nil {
			t.Errorf("Leaders panics: %v", x)
		}
	}()
	_, err = search.Leaders(r)
	t.Log(err)
}

// limit keepers slower than the others fall out of thin().
func TestModelLimitKeepersForgotten(t *testing.T) {
	space := spaceOf(t, []search.Knob{ordinal("a", 40), ordinal("b", 40)}, nil)
	r := search.Request{Space: space}
	for n := range 300 {
		o := search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(n % 40)), "b": search.Int(int64(n / 40))}, Value: 100 + float64(n%7), Margins: map[string]float64{"ttft": -0.1}}
		if n == 1 || n == 3 {
			o.Value, o.Margins = 80, map[string]float64{"ttft": 0.1}
		}
		r.History = append(r.History, o)
	}
	list, err := search.Leaders(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if l.Values["a"] != search.Int(1) && l.Values["a"] != search.Int(3) || l.Values["b"] != search.Int(0) {
			t.Fatalf("leader %v breaks the limit although two configurations keep it", l.Values)
		}
	}
}

// a limit reported once, factor reported twice, in a long history.
func TestModelRareLimit(t *testing.T) {
	space := spaceOf(t, []search.Knob{ordinal("a", 40), ordinal("b", 40)}, nil)
	r := search.Request{Space: space}
	for n := range 300 {
		o := search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(n % 40)), "b": search.Int(int64(n / 40))}, Value: 100 + float64(n%7)}
		if n == 1 {
			o.Value, o.Margins = 80, map[string]float64{"ttft": 0.1}
		}
		r.History = append(r.History, o)
	}
	p, err := askModel(t, r)
	t.Log(p.Reason, err)
	if err != nil || p.Expected == nil {
		t.Errorf("%q %v", p.Reason, err)
	}
}

func TestModelRareFactor(t *testing.T) {
	space := spaceOf(t, []search.Knob{ordinal("a", 40), ordinal("b", 40)}, nil)
	r := search.Request{Space: space, Factors: []search.Factor{{Name: "f", Knobs: []string{"a"}, Power: 1}}}
	for n := range 300 {
		o := search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(1 + n%39)), "b": search.Int(int64(n / 39))}, Value: 100 + float64(n%7)}
		if n == 1 || n == 3 {
			o.Value, o.Factors = 80, map[string]float64{"f": 2}
		}
		r.History = append(r.History, o)
	}
	p, err := askModel(t, r)
	t.Log(p.Reason, err)
	if err != nil || p.Expected == nil {
		t.Errorf("%q %v", p.Reason, err)
	}
}

// conditional knobs rarely active in a long history
func TestModelRareGroup(t *testing.T) {
	c := ordinal("c", 4)
	c.When = search.Condition{Knob: "s", In: []search.Value{search.Int(1)}}
	space := spaceOf(t, []search.Knob{ordinal("a", 20), ordinal("b", 20), ordinal("s", 2), c}, nil)
	for _, at := range []int{5} {
		r := search.Request{Space: space}
		for n := range 120 {
			o := search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(n % 20)), "b": search.Int(int64(n / 20)), "s": search.Int(0)}, Value: 100 + float64(n%7)}
			if n >= at && n < at+3 {
				o.Values["s"], o.Values["c"], o.Value = search.Int(1), search.Int(int64(n%4)), 60
			}
			r.History = append(r.History, o)
		}
		p, err := askModel(t, r)
		t.Log(at, p.Reason, err)
		if err != nil || p.Expected == nil {
			t.Errorf("%d %q %v", at, p.Reason, err)
		}
		if _, err := search.Leaders(r); err != nil {
			t.Error("leaders", err)
		}
		if _, err := search.Importances(r); err != nil {
			t.Error("importances", err)
		}
	}
}

// canonicalize deletes conditional knob: noise group missing
func TestModelGroupDeletedByCanonicalize(t *testing.T) {
	c := ordinal("c", 4)
	c.When = search.Condition{Knob: "s", In: []search.Value{search.Int(1)}}
	space := spaceOf(t, []search.Knob{ordinal("a", 20), ordinal("b", 20), ordinal("s", 2), c}, func(v search.Values) search.Values { delete(v, "c"); return v })
	r := search.Request{Space: space}
	for n := range 12 {
		o := search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(n)), "b": search.Int(int64(n * 7 % 20)), "s": search.Int(int64(n % 2))}, Value: 100 + float64(n%7)}
		if n%2 == 1 {
			o.Values["c"] = search.Int(1)
			o.Value += 30
		}
		r.History = append(r.History, o)
	}
	p, err := askModel(t, r)
	t.Log(p.Reason, err)
	if err != nil || p.Expected == nil {
		t.Errorf("%q %v", p.Reason, err)
	}
}

// canonicalize collapses a large space to a few launches
func TestModelCollapsedSpaceHangs(t *testing.T) {
	var knobs []search.Knob
	for i := range 14 {
		knobs = append(knobs, ordinal(fmt.Sprintf("k%02d", i), 8))
	}
	knobs = append(knobs, ordinal("live", 2))
	space := spaceOf(t, knobs, func(v search.Values) search.Values { return search.Values{"live": v["live"]} })
	r := search.Request{Space: space}
	v := space.Default()
	r.History = append(r.History, search.Observation{Trial: 1, Values: v, Value: 100})
	w := space.Default()
	w["live"] = search.Int(1)
	r.History = append(r.History, search.Observation{Trial: 2, Values: w, Value: 101})
	start := time.Now()
	_, err := askModel(t, r)
	if !errors.Is(err, search.ErrExhausted) {
		t.Errorf("after %v: %v, want exhausted", time.Since(start), err)
	}
}

// baseline breaks limit and everything that keeps it is far slower
func TestModelCompressedLeaders(t *testing.T) {
	space := spaceOf(t, []search.Knob{ordinal("a", 12)}, nil)
	r := search.Request{Space: space}
	r.History = append(r.History, search.Observation{Trial: 1, Values: search.Values{"a": search.Int(0)}, Value: 100, StandardError: 0.3, Margins: map[string]float64{"ttft": -1}})
	for n := 1; n <= 10; n++ {
		r.History = append(r.History, search.Observation{Trial: n + 1, Values: search.Values{"a": search.Int(int64(n))}, Value: 25 + 2*float64(n), StandardError: 0.1, Margins: map[string]float64{"ttft": 0.5}})
	}
	list, err := search.Leaders(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		n, _ := l.Values["a"].Integer()
		want := (25 + 2*float64(n)) / 45
		t.Log(n, l.Ratio, want)
		if math.Abs(l.Ratio-want) > 0.05 {
			t.Errorf("leader a=%d: ratio %.3f, measured %.3f of the best", n, l.Ratio, want)
		}
	}
	p, err := askModel(t, r)
	t.Log(p.Values, p.Reason, p.Expected, err)
}

// related of crashes only is trusted
func TestModelTrustInCrashesOnly(t *testing.T) {
	var knobs []search.Knob
	for i := range 6 {
		knobs = append(knobs, ordinal(fmt.Sprintf("k%d", i), 5))
	}
	space := spaceOf(t, knobs, nil)
	r := search.Request{Space: space, History: []search.Observation{{Trial: 1, Values: space.Default(), Value: 100}}}
	plain, _ := askModel(t, r)
	w := space.Default()
	w["k0"] = search.Int(4)
	r.Related = []search.Related{{Name: "broken night", History: []search.Observation{{Trial: 1, Values: w, Outcome: search.Infeasible}}}}
	p, err := askModel(t, r)
	t.Log(plain.Values, plain.Reason)
	if err != nil || strings.Contains(p.Reason, "by broken night") {
		t.Errorf("%s (%v): a set of crashes says nothing of what is good", p.Reason, err)
	}
}
