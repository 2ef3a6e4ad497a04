package search_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"nocturne/search"
)

// TestImportances: of three knobs one matters most, one a little, one not.
func TestImportances(t *testing.T) {
	levels, err := search.Range(0, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	space := newSpace(t, []search.Knob{
		{ID: "inert", Kind: search.Integer, Levels: levels, Default: search.Int(0)},
		{ID: "major", Kind: search.Categorical, Levels: search.Choices("a", "b", "c"), Default: search.Text("a")},
		{ID: "minor", Kind: search.Integer, Levels: levels, Default: search.Int(0)},
		{ID: "fixed", Kind: search.Integer, Levels: levels, Default: search.Int(0)},
	})
	random := rand.New(rand.NewPCG(1, 1))
	var history []search.Observation
	for trial := range 40 {
		major, minor := random.IntN(3), random.IntN(5)
		history = append(history, search.Observation{
			Trial: trial,
			Values: search.Values{
				"inert": levels[random.IntN(5)], "minor": levels[minor], "fixed": levels[0],
				"major": search.Choices("a", "b", "c")[major],
			},
			Value: 100 * math.Pow(1.2, float64(major)) * (1 + 0.02*float64(minor)) * (1 + 0.01*random.NormFloat64()),
		})
	}
	list, err := search.Importances(search.Request{Space: space, History: history})
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Knob != "major" || list[1].Knob != "minor" {
		t.Fatalf("the order is %v, want major, minor first", list)
	}
	total := 0.0
	for _, importance := range list {
		total += importance.Share
		if importance.Share < importance.Interval[0]-1e-9 || importance.Share > importance.Interval[1]+1e-9 {
			t.Errorf("%s: share %v outside %v", importance.Knob, importance.Share, importance.Interval)
		}
		if importance.Knob == "fixed" && (importance.Share != 0 || importance.Curve != nil) {
			t.Errorf("a knob with one measured level has %v", importance)
		}
	}
	if math.Abs(total-1) > 1e-9 {
		t.Errorf("shares add up to %v", total)
	}
	if list[0].Share < 0.8 {
		t.Errorf("major has a share of %v, want most", list[0].Share)
	}
	ratio := list[0].Curve[2].Effect / list[0].Curve[0].Effect
	if math.Abs(ratio-1.44) > 0.05 {
		t.Errorf("c is %v times a, want 1.44", ratio)
	}
}

func TestImportancesNeedMeasurements(t *testing.T) {
	space := newSpace(t, serverKnobs(t))
	_, err := search.Importances(search.Request{Space: space, History: []search.Observation{{Trial: 1, Values: space.Default(), Value: 1}}})
	if !errors.Is(err, search.ErrTooLittle) {
		t.Errorf("got %v, want ErrTooLittle", err)
	}
}
