package knowledge_test

import (
	"testing"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
)

func TestFailureReasonReachesTheSampler(t *testing.T) {
	trial := store.Trial{Number: 2, State: store.TrialFailed, Failure: &runners.Failure{Class: runners.ClassInfeasible, Reason: "out_of_memory"}}
	o, told := knowledge.Observe(&trial)
	if !told || o.Outcome != search.Infeasible || o.Failure != "out_of_memory" {
		t.Errorf("observation %+v, want the failure out_of_memory", o)
	}
}

func TestRecordedKnowsTheLimits(t *testing.T) {
	most := 80.0
	campaign := store.Campaign{Objective: store.Objective{Metric: "throughput", Direction: "maximize", Limits: map[string]store.Limit{"ttft": {Max: &most}}}}
	var trials []store.Trial
	for a := range 8 {
		value := 100 + 5*float64(a)
		trials = append(trials, store.Trial{
			Number: a + 1, State: store.TrialComplete, Value: &value,
			Configuration: store.Configuration{Values: search.Values{"A": search.Int(int64(a))}},
			Points:        []runners.PointResult{{Metrics: map[string]float64{"throughput": value, "ttft": 50 + 20*float64(a)}}},
		})
	}
	request, err := knowledge.Recorded(campaign, trials)
	if err != nil {
		t.Fatal(err)
	}
	leaders, err := search.Leaders(request)
	if err != nil {
		t.Fatal(err)
	}
	for _, leader := range leaders {
		if a, _ := leader.Values["A"].Integer(); a > 1 {
			t.Errorf("A=%d is called tied with the best: it breaks the limit (ttft %d, at most 80)", a, 50+20*a)
		}
	}
}
