package search_test

import (
	"testing"

	"nocturne/search"
)

// A launch that the model itself expects to crash with 100 % is chosen although
// others are left, because expected improvements far below the noise are compared.
func TestModelCertainCrashIsNotProposed(t *testing.T) {
	space := spaceOf(t, []search.Knob{
		ordinal("a", 10),
		{ID: "b", Kind: search.Categorical, Levels: search.Choices("x", "y", "z", "crash"), Default: search.Text("x")},
		ordinal("steps", 7),
	}, nil)
	measure := func(v search.Values, n int) search.Observation {
		a, _ := v["a"].Number()
		s, _ := v["steps"].Number()
		o := search.Observation{Trial: n, Values: v, Value: 100 + 3*a - 0.4*a*a}
		if v["b"] == search.Text("y") {
			o.Value += 6
		}
		o.Value *= 1 + 0.1*s
		if s > 4 {
			o.Value *= 0.7
		}
		if v["b"] == search.Text("crash") {
			o.Outcome, o.Value, o.Failure = search.Infeasible, 0, "command_failed"
		}
		return o
	}
	var related []search.Related
	for night := range 4 {
		request := search.Request{Space: space, Seed: 1, Related: related}
		if night > 0 {
			request.Starts = []search.Start{{Values: search.Values{"a": search.Int(4), "b": search.Text("y"), "steps": search.Int(4)}}}
		}
		for n := range 20 {
			proposal, err := askModel(t, request)
			if err != nil {
				t.Fatal(err)
			}
			if e := proposal.Expected; e != nil && e.Crash > 0.9 {
				t.Errorf("night %d trial %d: proposed %v: %s", night, n+1, proposal.Values, proposal.Reason)
			}
			request.History = append(request.History, measure(proposal.Values, n+1))
		}
		related = append([]search.Related{{Name: "earlier", History: request.History}}, related...)
		related = related[:min(len(related), 3)]
	}
}
