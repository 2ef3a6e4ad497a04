package search_test

import (
	"context"
	"errors"
	"testing"

	"nocturne/search"
)

// TestDescentPairsKnobsThatMatter: with all changes of one knob known, the change
// that makes a knob idle is not paired with a level of that knob.
func TestDescentPairsKnobsThatMatter(t *testing.T) {
	space := newSpace(t, []search.Knob{
		{ID: "backend", Kind: search.Categorical, Levels: search.Choices("a", "b"), Default: search.Text("a")},
		{
			ID: "depth", Kind: search.Integer, Levels: []search.Value{search.Int(1), search.Int(2)}, Default: search.Int(1),
			When: search.Condition{Knob: "backend", In: []search.Value{search.Text("a")}},
		},
	})
	request := search.Request{Space: space}
	for values := range space.Enumerate() {
		request.History = append(request.History, search.Observation{Trial: len(request.History), Values: values, Value: 100 - 0.1*float64(len(request.History))})
	}
	if proposal, err := search.NewDescent().Ask(context.Background(), request); !errors.Is(err, search.ErrExhausted) {
		t.Errorf("all %d configurations are known, got %v %v", len(request.History), proposal, err)
	}
}
