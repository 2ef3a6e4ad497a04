package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/store"
)

func testCampaignRuns(t *testing.T, place Place) {
	s := New(t, place)
	other := campaignOf("night")
	other.Instance = "box-b"
	for i, campaign := range []store.Campaign{campaignOf("night"), campaignOf("night"), other, campaignOf("day")} {
		campaign.Seed = 1<<63 + 7 // beyond a signed integer
		created, err := s.CreateCampaign(t.Context(), campaign)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 2, 1, 1}[i]; created.Run != want {
			t.Errorf("campaign %d has run %d, want %d", i, created.Run, want)
		}
		if created.ID == "" || created.Created.IsZero() || created.Updated.IsZero() || created.Seed != campaign.Seed {
			t.Errorf("campaign %d as stored lacks something: %+v", i, created)
		}
		if found, err := s.Campaign(t.Context(), created.ID); err != nil || differences(created, found) != "" {
			t.Errorf("campaign %d is not found as created: %v\n%s", i, err, differences(created, found))
		}
	}
}

func testCampaignReferences(t *testing.T, place Place) {
	s := New(t, place)
	add := func(id, name, instance string, day int) {
		t.Helper()
		campaign := campaignOf(name)
		campaign.ID, campaign.Instance, campaign.Created = id, instance, time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC)
		if _, err := s.CreateCampaign(t.Context(), campaign); err != nil {
			t.Fatal(err)
		}
	}
	const first, second, third, elsewhere, named = "01JD0000000000000000000001", "01JD0000000000000000000002",
		"01JE0000000000000000000003", "01JF0000000000000000000004", "01JG0000000000000000000005"
	add(first, "night", "box-a", 1)
	add(second, "night", "box-a", 2)
	add(third, "day", "box-a", 3)
	add(elsewhere, "night", "box-b", 1)
	add(named, "01JD", "box-a", 1)

	found := map[string]string{
		"night":                second, // the one created last
		"night@2":              second,
		"day":                  third,
		"day@1":                third,
		first:                  first,
		strings.ToLower(first): first,
		"01JE":                 third,
		"01je00":               third,
		"01JD":                 named, // a name comes before a prefix
	}
	for reference, want := range found {
		if campaign, err := s.Campaign(t.Context(), reference); err != nil || campaign.ID != want {
			t.Errorf("%q is %s, %v; want %s", reference, campaign.ID, err, want)
		}
	}
	for _, reference := range []string{"night@3", "01J", "", "evening", "night@", "night@x", "01JZ", "day@0", "%", "0\x001", "\xff\xfe\xfd\xfc"} {
		if campaign, err := s.Campaign(t.Context(), reference); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q is %s, %v; want ErrNotFound", reference, campaign.ID, err)
		}
	}
	for reference, want := range map[string][]string{"01JD0": {first, second}, "night@1": {elsewhere, first}} {
		_, err := s.Campaign(t.Context(), reference)
		ambiguous := (*store.AmbiguousError)(nil)
		if !errors.Is(err, store.ErrAmbiguous) || !errors.As(err, &ambiguous) {
			t.Errorf("%q: %v, want ErrAmbiguous", reference, err)
		} else if diff := differences(want, ambiguous.IDs); diff != "" {
			t.Errorf("%q could be (-want +got):\n%s", reference, diff)
		}
	}
}

// testClockPutBack tells the latest run by its number: a machine whose clock was
// put back creates it before the earlier ones.
func testClockPutBack(t *testing.T, place Place) {
	s := New(t, place)
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	add := func(name, instance string, created time.Time) string {
		t.Helper()
		campaign := campaignOf(name)
		campaign.Instance, campaign.Created = instance, created
		stored, err := s.CreateCampaign(t.Context(), campaign)
		if err != nil {
			t.Fatal(err)
		}
		return stored.ID
	}
	add("night", "box-a", noon)
	add("night", "box-a", noon.Add(-2*time.Hour))
	latest := add("night", "box-a", noon.Add(-time.Hour))
	if found, err := s.Campaign(t.Context(), "night"); err != nil || found.ID != latest || found.Run != 3 {
		t.Errorf("the latest run is %d, %v; want 3", found.Run, err)
	}
	var runs []int
	listed, err := s.Campaigns(t.Context(), store.CampaignFilter{Name: "night", Instance: "box-a"})
	for _, campaign := range listed {
		runs = append(runs, campaign.Run)
	}
	if diff := differences([]int{3, 2, 1}, runs); err != nil || diff != "" {
		t.Errorf("the runs of one campaign on one machine (-want +got, %v):\n%s", err, diff)
	}
	// Run numbers of several machines do not compare; the latest runs' times do.
	elsewhere := add("night", "box-b", noon.Add(-30*time.Minute))
	if found, err := s.Campaign(t.Context(), "night"); err != nil || found.ID != elsewhere {
		t.Errorf("of the latest runs of two machines it is run %d on %s, %v; want the one created later", found.Run, found.Instance, err)
	}
}

func testCampaignFilters(t *testing.T, place Place) {
	s := New(t, place)
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range []string{"a", "b", "a"} {
		campaign := campaignOf(name)
		campaign.State = []store.CampaignState{store.CampaignComplete, store.CampaignPaused, store.CampaignRunning}[i]
		campaign.HardwareKey, campaign.Instance = "hw1:"+name, "box-"+name
		campaign.Created = day.AddDate(0, 0, i)
		if _, err := s.CreateCampaign(t.Context(), campaign); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		filter store.CampaignFilter
		want   string
	}{
		"all":      {store.CampaignFilter{}, "a@2 b@1 a@1"},
		"name":     {store.CampaignFilter{Name: "a"}, "a@2 a@1"},
		"states":   {store.CampaignFilter{States: []store.CampaignState{store.CampaignPaused, store.CampaignComplete}}, "b@1 a@1"},
		"hardware": {store.CampaignFilter{HardwareKey: "hw1:b"}, "b@1"},
		"instance": {store.CampaignFilter{Instance: "box-a"}, "a@2 a@1"},
		"limit":    {store.CampaignFilter{Limit: 1}, "a@2"},
		"together": {store.CampaignFilter{Name: "a", States: []store.CampaignState{store.CampaignRunning}, Limit: 5}, "a@2"},
		"none":     {store.CampaignFilter{Name: "c"}, ""},
	}
	for name, test := range tests {
		campaigns, err := s.Campaigns(t.Context(), test.filter)
		var got []string
		for _, campaign := range campaigns {
			got = append(got, campaign.Name+"@"+string(rune('0'+campaign.Run)))
		}
		if text := strings.Join(got, " "); err != nil || text != test.want {
			t.Errorf("%s: %q, %v; want %q", name, text, err, test.want)
		}
	}
}

func testUpdateCampaign(t *testing.T, place Place) {
	s := New(t, place)
	before, lease := create(t, s, campaignOf("night"))
	update := func(change store.CampaignChange) store.Campaign {
		t.Helper()
		if err := s.UpdateCampaign(t.Context(), lease, change); err != nil {
			t.Fatal(err)
		}
		after, err := s.Campaign(t.Context(), before.ID)
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	after := update(store.CampaignChange{
		State: pointer(store.CampaignComplete), Cause: pointer("done"), File: pointer("campaign: night"), Spec: json.RawMessage(`{"b":1,"a":[1.5]}`),
		Host: pointer("ssh://gpu-1"), HardwareKey: pointer("hw1:b"), Hardware: json.RawMessage(`{"name":"b"}`), Verdict: json.RawMessage(`{"claim":"tie"}`),
	})
	want := before
	want.State, want.Cause, want.File, want.Spec = store.CampaignComplete, "done", "campaign: night", json.RawMessage(`{"a":[1.5],"b":1}`)
	want.Host, want.HardwareKey, want.Hardware, want.Verdict = "ssh://gpu-1", "hw1:b", json.RawMessage(`{"name":"b"}`), json.RawMessage(`{"claim":"tie"}`)
	want.Updated, want.Ended = after.Updated, after.Ended
	if diff := differences(want, after); diff != "" {
		t.Errorf("changed fields (-want +got):\n%s", diff)
	}
	if after.Ended == nil || after.Updated.Before(before.Updated) {
		t.Errorf("a complete campaign has ended %v, updated %v", after.Ended, after.Updated)
	}
	if again := update(store.CampaignChange{State: pointer(store.CampaignRunning)}); again.Ended != nil || again.Cause != "done" {
		t.Errorf("a campaign that goes on has ended %v, cause %q", again.Ended, again.Cause)
	}
	if reset := update(store.CampaignChange{Verdict: json.RawMessage("null")}); reset.Verdict != nil {
		t.Errorf("a verdict of null is stored as %s", reset.Verdict)
	}
}

func testInvalidRecords(t *testing.T, place Place) {
	s := New(t, place)
	_, lease := create(t, s, campaignOf("night"))
	campaign := func(change func(*store.Campaign)) func() error {
		return func() error {
			c := campaignOf("other")
			change(&c)
			_, err := s.CreateCampaign(t.Context(), c)
			return err
		}
	}
	tests := map[string]struct {
		call  func() error
		field string
	}{
		"no name":        {campaign(func(c *store.Campaign) { c.Name = "" }), "name"},
		"no state":       {campaign(func(c *store.Campaign) { c.State = "" }), "state"},
		"id":             {campaign(func(c *store.Campaign) { c.ID = "01jd0000000000000000000001" }), "id"},
		"direction":      {campaign(func(c *store.Campaign) { c.Objective.Direction = "up" }), "objective.direction"},
		"metric":         {campaign(func(c *store.Campaign) { c.Objective.Metric = "" }), "objective.metric"},
		"long label":     {campaign(func(c *store.Campaign) { c.Model = strings.Repeat("m", 300) }), "model"},
		"not JSON":       {campaign(func(c *store.Campaign) { c.Spec = json.RawMessage(`{"a":`) }), "spec"},
		"two documents":  {campaign(func(c *store.Campaign) { c.Spec = json.RawMessage(`{} {}`) }), "spec"},
		"beyond a float": {campaign(func(c *store.Campaign) { c.Spec = json.RawMessage(`[1e999]`) }), "spec"},
		"lease owner":    {func() error { _, err := s.AcquireLease(t.Context(), lease.CampaignID, "", time.Hour); return err }, "owner"},
		"lease ttl":      {func() error { _, err := s.AcquireLease(t.Context(), lease.CampaignID, "x", 0); return err }, "ttl"},
		"renewal ttl":    {func() error { _, err := s.RenewLease(t.Context(), lease, -time.Second); return err }, "ttl"},
		"no hash": {func() error {
			_, err := s.AddTrial(t.Context(), lease, store.Trial{Role: store.RoleSearch})
			return err
		}, "configuration.hash"},
		"no role": {func() error {
			_, err := s.AddTrial(t.Context(), lease, store.Trial{Configuration: configurationOf("a")})
			return err
		}, "role"},
		"unfinished":   {func() error { return s.FinishTrial(t.Context(), lease, store.Trial{State: store.TrialRunning}, 1) }, "state"},
		"requeued how": {func() error { return s.RequeueTrial(t.Context(), lease, "x", 1, store.AttemptComplete, nil) }, "state"},
		"event name":   {func() error { _, err := s.AppendEvent(t.Context(), lease.CampaignID, "", time.Time{}, nil); return err }, "name"},
		"event payload": {func() error {
			_, err := s.AppendEvent(t.Context(), lease.CampaignID, "x", time.Time{}, []byte("NaN"))
			return err
		}, "payload"},
		"conclusion hash": {func() error {
			return s.Conclude(t.Context(), lease, store.Conclusion{Claim: "tie", Objective: campaignOf("").Objective})
		}, "configuration.hash"},
	}
	for name, test := range tests {
		invalid := (*store.InvalidError)(nil)
		if err := test.call(); !errors.As(err, &invalid) || invalid.Field != test.field {
			t.Errorf("%s: %v, want an InvalidError of %s", name, err, test.field)
		}
	}
	if campaigns, err := s.Campaigns(t.Context(), store.CampaignFilter{}); err != nil || len(campaigns) != 1 {
		t.Errorf("%d campaigns are stored, %v; want the valid one", len(campaigns), err)
	}
}

// testUnstorableText stores what PostgreSQL cannot hold: server logs have NUL
// characters and broken UTF-8, and a trial must not be lost for that.
func testUnstorableText(t *testing.T, place Place) {
	s := New(t, place)
	_, lease := create(t, s, campaignOf("night"))
	add(t, s, lease, "a", store.RoleSearch)
	trial, attempt := claim(t, s, lease)
	trial.State = store.TrialFailed
	trial.LogPath = "/var/log/\xffx"
	trial.Effective = map[string]string{"k\x00": "a\\u0000b\x00\xff<&>"}
	trial.Failure = &runners.Failure{Class: runners.ClassInfeasible, Reason: "exited_early", Message: "log: \x00\xfe\x1b[31m"}
	if err := s.FinishTrial(t.Context(), lease, trial, attempt.Number); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Trials(t.Context(), lease.CampaignID, store.TrialFilter{})
	if err != nil {
		t.Fatal(err)
	}
	want := trial
	want.LogPath = "/var/log/\uFFFDx"
	want.Effective = map[string]string{"k\uFFFD": "a\\u0000b\uFFFD\uFFFD<&>"}
	want.Failure = &runners.Failure{Class: runners.ClassInfeasible, Reason: "exited_early", Message: "log: \uFFFD\uFFFD\x1b[31m"}
	want.Ended = stored[0].Ended
	if diff := differences([]store.Trial{want}, stored); diff != "" {
		t.Errorf("stored trial (-want +got):\n%s", diff)
	}
	event, err := s.AppendEvent(t.Context(), lease.CampaignID, "warning", time.Time{}, json.RawMessage(`{"text":"a\u0000\ud800"}`))
	if want := `{"text":"a` + "\uFFFD\uFFFD" + `"}`; err != nil || normalJSON(t, event.Payload) != want {
		t.Errorf("stored payload %s, %v; want %s", event.Payload, err, want)
	}
}

func pointer[T any](value T) *T { return &value }
