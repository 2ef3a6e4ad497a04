package tuner_test

import (
	"context"
	"testing"
	"time"

	"nocturne/store"
	"nocturne/tuner"
)

// interrupted runs a campaign whose tuner is stopped at its n-th launch.
func interrupted(t *testing.T, s store.Store, n int, options tuner.Options) tuner.Outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	host := &fakeHost{value: bowl, before: func(number int) {
		if number == n {
			cancel()
		}
	}}
	outcome, err := newTuner(t, s, host, nil).Run(ctx, campaign(t, 6, ""), options)
	if err != nil || outcome.State != store.CampaignInterrupted {
		t.Fatalf("ended %s, %v", outcome.State, err)
	}
	return outcome
}

// The latest run is the one with the highest number, also when the clock was
// put back after an earlier run began.
func TestD05_LatestRunByItsNumber(t *testing.T) {
	s := openStore(t)
	first := interrupted(t, s, 3, tuner.Options{})
	future := first.Campaign
	future.ID, future.Created, future.State = "", time.Now().Add(24*time.Hour), store.CampaignComplete
	if _, err := s.CreateCampaign(t.Context(), future); err != nil {
		t.Fatal(err)
	}
	third := interrupted(t, s, 3, tuner.Options{NewRun: true})
	if third.Campaign.Run != 3 {
		t.Fatalf("a new run has the number %d, want 3", third.Campaign.Run)
	}
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaign(t, 6, ""), tuner.Options{})
	if outcome.Campaign.ID != third.Campaign.ID || outcome.State != store.CampaignComplete {
		t.Errorf("went on with run %d (%s), want run 3", outcome.Campaign.Run, outcome.State)
	}
}
