package output_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"nocturne/search"
	"nocturne/store"
	"nocturne/store/open"
	"nocturne/tuner/output"
)

// measuredCampaign stores a campaign whose trials were measured with a function of
// their two knobs, the baseline (0, 0) first.
func measuredCampaign(t *testing.T, levels int, value func(a, b int) float64) (store.Store, store.Campaign) {
	t.Helper()
	s, err := open.Store(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "nocturne.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	campaign, err := s.CreateCampaign(t.Context(), store.Campaign{Name: "c", State: store.CampaignRunning, Seed: 1, Created: time.Now().UTC(),
		HardwareKey: "hw1:a", Instance: "in1:a", Objective: store.Objective{Metric: "m", Direction: "maximize"}})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := s.AcquireLease(t.Context(), campaign.ID, "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for a := range levels {
		for b := range levels {
			role := store.RoleSearch
			if a == 0 && b == 0 {
				role = store.RoleBaseline
			}
			if _, err := s.AddTrial(t.Context(), lease, store.Trial{CampaignID: campaign.ID, State: store.TrialPending, Role: role, Configuration: store.Configuration{
				Hash: fmt.Sprintf("c1:%d%d", a, b), Values: search.Values{"a": search.Int(int64(a)), "b": search.Int(int64(b))}}}); err != nil {
				t.Fatal(err)
			}
			trial, attempt, err := s.ClaimTrial(t.Context(), lease, "local")
			if err != nil {
				t.Fatal(err)
			}
			measured, spread := value(a, b), 0.001
			trial.State, trial.Value, trial.StandardError = store.TrialComplete, &measured, &spread
			if err := s.FinishTrial(t.Context(), lease, trial, attempt.Number); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, campaign
}

// Knobs that only help together are told, and of the configurations that do as well
// as the best the simplest is marked.
func TestShowTellsWhatTheModelLearned(t *testing.T) {
	s, campaign := measuredCampaign(t, 3, func(a, b int) float64 {
		if a == 2 && b > 0 {
			return 120 // b = 2 is as good as b = 1
		}
		return 100
	})
	show, err := output.ShowOf(t.Context(), s, campaign)
	if err != nil {
		t.Fatal(err)
	}
	if len(show.Interactions) != 1 || show.Interactions[0].Knobs != [2]string{"a", "b"} || show.Interactions[0].Spread < 0.02 || show.Interactions[0].Interval[0] <= 0 {
		t.Errorf("interactions %+v", show.Interactions)
	}
	simplest := 0
	for i, tied := range show.Tied {
		if tied.Configuration.Hash != "c1:21" && tied.Configuration.Hash != "c1:22" || math.Abs(tied.Ratio-1) > 0.02 || tied.Launches != 1 || tied.Changes != 2 {
			t.Errorf("tied %d: %+v", i, tied)
		}
		if tied.Simplest {
			simplest++
		}
	}
	if len(show.Tied) != 2 || simplest != 1 {
		t.Errorf("%d are tied, %d of them the simplest: want 2 and 1", len(show.Tied), simplest)
	}
}

// Too few trials teach nothing, which is said with empty lists.
func TestShowOfLittle(t *testing.T) {
	s, campaign := measuredCampaign(t, 1, func(int, int) float64 { return 100 })
	show, err := output.ShowOf(t.Context(), s, campaign)
	if err != nil {
		t.Fatal(err)
	}
	if show.Interactions == nil || show.Tied == nil || len(show.Interactions)+len(show.Tied) > 0 {
		t.Errorf("interactions %v, tied %v: want empty lists", show.Interactions, show.Tied)
	}
}
