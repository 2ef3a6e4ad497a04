package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/store"
)

func testLease(t *testing.T, place Place) {
	s := New(t, place)
	campaign, err := s.CreateCampaign(t.Context(), campaignOf("night"))
	if err != nil {
		t.Fatal(err)
	}
	lease, err := s.AcquireLease(t.Context(), campaign.ID, "host-1 pid 7", time.Hour)
	if err != nil || lease.Owner != "host-1 pid 7" || lease.Token != 1 || lease.CampaignID != campaign.ID {
		t.Fatalf("lease %+v, %v", lease, err)
	}
	for _, owner := range []string{"host-2 pid 8", "host-1 pid 7"} {
		_, err := s.AcquireLease(t.Context(), campaign.ID, owner, time.Hour)
		leased := (*store.LeasedError)(nil)
		if !errors.As(err, &leased) {
			t.Fatalf("%s takes a lease that lasts: %v, want a LeasedError", owner, err)
		}
		want := store.LeasedError{CampaignID: campaign.ID, Owner: lease.Owner, Token: lease.Token, Expires: lease.Expires}
		if diff := differences(want, *leased); diff != "" {
			t.Errorf("the error (-want +got):\n%s", diff)
		}
		if !strings.Contains(err.Error(), lease.Owner) {
			t.Errorf("%q does not name the holder", err)
		}
	}
	renewed, err := s.RenewLease(t.Context(), lease, 2*time.Hour)
	if err != nil || renewed.Token != lease.Token || !renewed.Expires.After(lease.Expires) {
		t.Errorf("renewed lease %+v, %v", renewed, err)
	}
	if err := s.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := s.ReleaseLease(t.Context(), lease); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("release twice: %v, want ErrLeaseLost", err)
	}
	if _, err := s.RenewLease(t.Context(), lease, time.Hour); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("renew a released lease: %v, want ErrLeaseLost", err)
	}
	if next, err := s.AcquireLease(t.Context(), campaign.ID, "host-2 pid 8", time.Hour); err != nil || next.Token <= lease.Token {
		t.Errorf("lease after the release %+v, %v", next, err)
	}
	if _, err := s.AcquireLease(t.Context(), "01JD0000000000000000000001", "x", time.Hour); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("lease of no campaign: %v, want ErrNotFound", err)
	}
}

// acquireExpired takes a lease as soon as the earlier one has expired.
func acquireExpired(ctx context.Context, t testing.TB, s store.Store, campaignID, owner string) store.Lease {
	t.Helper()
	for {
		lease, err := s.AcquireLease(ctx, campaignID, owner, time.Hour)
		if leased := (*store.LeasedError)(nil); errors.As(err, &leased) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
}

func testLeaseExpiry(t *testing.T, place Place) {
	s := New(t, place)
	campaign, err := s.CreateCampaign(t.Context(), campaignOf("night"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.AcquireLease(t.Context(), campaign.ID, "first", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody has taken it, so it is still the holder's, however late.
	renewed, err := s.RenewLease(t.Context(), first, 2*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	second := acquireExpired(limit(t), t, s, campaign.ID, "second")
	if second.Token <= renewed.Token {
		t.Errorf("token %d follows %d", second.Token, renewed.Token)
	}
	if _, err := s.RenewLease(t.Context(), renewed, time.Hour); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("renew a lost lease: %v, want ErrLeaseLost", err)
	}
}

// testUnattended finds the campaigns that nobody goes on with although their
// state says so.
func testUnattended(t *testing.T, place Place) {
	s := New(t, place)
	lease := map[string]store.Lease{}
	add := func(name string, state store.CampaignState, ttl time.Duration) string {
		t.Helper()
		campaign := campaignOf(name)
		campaign.State = state
		stored, err := s.CreateCampaign(t.Context(), campaign)
		if err != nil {
			t.Fatal(err)
		}
		if ttl > 0 {
			if lease[name], err = s.AcquireLease(t.Context(), stored.ID, "host-1 pid 7", ttl); err != nil {
				t.Fatal(err)
			}
		}
		return stored.ID
	}
	add("at work", store.CampaignRunning, time.Hour)
	add("waiting", store.CampaignWaiting, time.Hour)
	add("done", store.CampaignComplete, 0)
	add("paused", store.CampaignPaused, 0)
	killed := add("killed", store.CampaignRunning, time.Microsecond)
	asleep := add("killed while it waited", store.CampaignWaiting, time.Microsecond)
	restoring := add("killed while it restored", store.CampaignRestoring, time.Microsecond)
	released := add("gone without a word", store.CampaignRunning, time.Hour)
	if err := s.ReleaseLease(t.Context(), lease["gone without a word"]); err != nil {
		t.Fatal(err)
	}
	imported := add("imported", store.CampaignRunning, 0)
	want := []string{killed, asleep, restoring, released, imported}
	slices.Sort(want)
	var found []string
	for ctx := limit(t); len(found) < len(want) && ctx.Err() == nil; { // until the short leases have ended
		var err error
		if found, err = s.Unattended(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differences(want, found); diff != "" {
		t.Errorf("nobody has (-want +got):\n%s", diff)
	}
	if _, err := s.AcquireLease(t.Context(), killed, "host-1 pid 8", time.Hour); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Unattended(t.Context()); err != nil || slices.Contains(found, killed) {
		t.Errorf("a campaign that was taken up again counts as left alone: %v, %v", found, err)
	}
}

// testForceLease takes a campaign over from a tuner that died a moment ago: its
// lease would block the next one for long.
func testForceLease(t *testing.T, place Place) {
	s := New(t, place)
	campaign, dead := create(t, s, campaignOf("night"))
	taken, err := s.ForceLease(t.Context(), campaign.ID, dead.Token, "next", time.Hour)
	if err != nil || taken.Token <= dead.Token || taken.Owner != "next" {
		t.Fatalf("lease %+v, %v", taken, err)
	}
	_, err = s.ForceLease(t.Context(), campaign.ID, dead.Token, "too late", time.Hour)
	if leased := (*store.LeasedError)(nil); !errors.As(err, &leased) || leased.Owner != "next" || leased.Token != taken.Token {
		t.Errorf("a second takeover: %v, want a LeasedError that names the first", err)
	}
	if err := s.UpdateCampaign(t.Context(), dead, store.CampaignChange{}); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a change by the dead: %v, want ErrLeaseLost", err)
	}
	if err := s.UpdateCampaign(t.Context(), taken, store.CampaignChange{}); err != nil {
		t.Error(err)
	}
}

// testLostLeaseChangesNothing tries every change with a lease that another
// tuner has taken over.
func testLostLeaseChangesNothing(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lost := create(t, s, campaignOf("night"))
	add(t, s, lost, "a", store.RoleSearch)
	trial, attempt := claim(t, s, lost)
	add(t, s, lost, "b", store.RoleSearch)
	if _, err := s.ForceLease(t.Context(), campaign.ID, lost.Token, "next", time.Hour); err != nil {
		t.Fatal(err)
	}
	before, err := s.Export(t.Context(), campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	changes := map[string]func(store.Lease) error{
		"update": func(l store.Lease) error { return s.UpdateCampaign(ctx, l, store.CampaignChange{Cause: pointer("x")}) },
		"add":    func(l store.Lease) error { _, err := s.AddTrial(ctx, l, trialOf("c", 1)); return err },
		"claim":  func(l store.Lease) error { _, _, err := s.ClaimTrial(ctx, l, "x"); return err },
		"launch": func(l store.Lease) error { return s.RecordLaunch(ctx, l, trial.ID, attempt.Number, launchOf(1)) },
		"stage":  func(l store.Lease) error { return s.RecordStage(ctx, l, trial.ID, attempt.Number, runners.Loading) },
		"requeue": func(l store.Lease) error {
			return s.RequeueTrial(ctx, l, trial.ID, attempt.Number, store.AttemptLost, nil)
		},
		"conclude": func(l store.Lease) error { return s.Conclude(ctx, l, conclusionOf("a", 1, true)) },
		"release":  func(l store.Lease) error { return s.ReleaseLease(ctx, l) },
		"finish": func(l store.Lease) error {
			done := trial
			done.State = store.TrialComplete
			return s.FinishTrial(ctx, l, done, attempt.Number)
		},
	}
	unknown := store.Lease{CampaignID: "01JD0000000000000000000001", Token: 1}
	for name, change := range changes {
		if err := change(lost); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("%s with a lost lease: %v, want ErrLeaseLost", name, err)
		}
		if err := change(unknown); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of no campaign: %v, want ErrNotFound", name, err)
		}
	}
	after, err := s.Export(ctx, campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := differences(before, after); diff != "" {
		t.Errorf("something changed:\n%s", diff)
	}
}

// testLostHost is a host that loses power while it measures a trial.
func testLostHost(t *testing.T, place Place) {
	s := New(t, place)
	campaign, err := s.CreateCampaign(t.Context(), campaignOf("night"))
	if err != nil {
		t.Fatal(err)
	}
	dead, err := s.AcquireLease(t.Context(), campaign.ID, "host-1", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, dead, "a", store.RoleSearch)
	trial, first := claim(t, s, dead)
	if err := s.RecordLaunch(t.Context(), dead, trial.ID, first.Number, launchOf(4711)); err != nil {
		t.Fatal(err)
	}

	lease := acquireExpired(limit(t), t, s, campaign.ID, "host-2")
	running, err := s.RunningAttempts(t.Context(), campaign.Instance)
	if err != nil || len(running) != 1 || running[0].Launch.SupervisorPID != 4711 {
		t.Fatalf("running attempts %+v, %v: want the lost one, to clean up", running, err)
	}
	failure := &runners.Failure{Class: runners.ClassTransient, Reason: "host_lost", Message: "no heartbeat"}
	if err := s.RequeueTrial(t.Context(), lease, trial.ID, first.Number, store.AttemptLost, failure); err != nil {
		t.Fatal(err)
	}
	again, second := claim(t, s, lease)
	if again.ID != trial.ID || second.Number != 2 || again.Attempt != 2 {
		t.Fatalf("the trial is claimed as %d, attempt %d, want the same trial in attempt 2", again.Number, second.Number)
	}
	// The first host comes back and reports.
	late := trial
	late.State, late.Value = store.TrialComplete, pointer(1.0)
	if err := s.FinishTrial(t.Context(), dead, late, first.Number); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a report with the old lease: %v, want ErrLeaseLost", err)
	}
	if err := s.FinishTrial(t.Context(), lease, late, first.Number); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a report of the old attempt: %v, want ErrFenced", err)
	}
	again.State, again.Value = store.TrialComplete, pointer(2.0)
	if err := s.FinishTrial(t.Context(), lease, again, second.Number); err != nil {
		t.Fatal(err)
	}

	attempts, err := s.Attempts(t.Context(), campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, attempt := range attempts {
		states = append(states, fmt.Sprintf("%d %s", attempt.Number, attempt.State))
	}
	if diff := differences([]string{"1 lost", "2 complete"}, states); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if diff := differences(failure, attempts[0].Failure); diff != "" {
		t.Errorf("failure of the lost attempt (-want +got):\n%s", diff)
	}
	trials, err := s.Trials(t.Context(), campaign.ID, store.TrialFilter{States: []store.TrialState{store.TrialComplete}})
	if err != nil || len(trials) != 1 || *trials[0].Value != 2 {
		t.Errorf("finished trials %+v, %v: want one, with the value of attempt 2", trials, err)
	}
}
