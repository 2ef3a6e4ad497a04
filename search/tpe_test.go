package search_test

import (
	"context"
	"fmt"
	"testing"

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
