package storetest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nocturne/store"
)

// Line returns an archive as a line of an export.
func Line(t testing.TB, archive store.Archive) string {
	t.Helper()
	line, err := json.Marshal(archive)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// testArchiveRoundTrip imports random campaigns, exports them, and imports the
// exported line into a second store, which must export the same line.
func testArchiveRoundTrip(t *testing.T, place Place) {
	first, second := New(t, place), New(t, place)
	rapid.Check(t, func(rt *rapid.T) {
		archive := Archives().Draw(rt, "archive")
		CheckRoundTrip(rt, t, archive, first, second)
	})
}

// CheckRoundTrip imports the archive into the first store, and carries its
// export on from each store to the next.
func CheckRoundTrip(rt *rapid.T, t testing.TB, archive store.Archive, stores ...store.Store) {
	previous := ""
	for _, s := range stores {
		for _, want := range []bool{true, false} { // the second time changes nothing
			if added, err := s.Import(t.Context(), archive); err != nil || added != want {
				rt.Fatalf("import: added %v, %v; want %v", added, err, want)
			}
		}
		exported, err := s.Export(t.Context(), archive.Campaign.ID)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := differences(archive, exported); diff != "" {
			rt.Fatalf("the export differs (-imported +exported):\n%s", diff)
		}
		line := Line(t, exported)
		if previous != "" && line != previous {
			rt.Fatalf("the stores export different lines:\n%s", differences(previous, line))
		}
		previous = line
		archive = store.Archive{}
		if err := json.Unmarshal([]byte(line), &archive); err != nil {
			rt.Fatal(err)
		}
	}
}

func testArchiveRefused(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("night"))
	measure(t, s, lease, trialOf("a", 1))
	conclude(t, s, lease, "a", 1, true)
	if _, err := s.AppendEvent(t.Context(), campaign.ID, "x", time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Export(t.Context(), "01JD0000000000000000000001"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("export of no campaign: %v, want ErrNotFound", err)
	}
	empty := New(t, place)
	tests := map[string]func(*store.Archive){
		"schema":                   func(a *store.Archive) { a.Schema = 2 },
		"run":                      func(a *store.Archive) { a.Campaign.Run = 0 },
		"id":                       func(a *store.Archive) { a.Campaign.ID = "" },
		"trials[0].campaign_id":    func(a *store.Archive) { a.Trials[0].CampaignID = "x" },
		"attempts[0].campaign_id":  func(a *store.Archive) { a.Attempts[0].CampaignID = "x" },
		"events[0].campaign_id":    func(a *store.Archive) { a.Events[0].CampaignID = "x" },
		"conclusion.campaign_id":   func(a *store.Archive) { a.Conclusion.CampaignID = "x" },
		"repeat_of":                func(a *store.Archive) { a.Trials[0].RepeatOf = 1 },
		"claim":                    func(a *store.Archive) { a.Conclusion.Claim = "" },
		"conclusion.trial of none": func(a *store.Archive) { a.Attempts[0].TrialID = "01JD0000000000000000000001" },
		"two trials of one number": func(a *store.Archive) { a.Trials = append(a.Trials, a.Trials[0]) },
	}
	for field, breaks := range tests {
		archive, err := s.Export(t.Context(), campaign.ID)
		if err != nil {
			t.Fatal(err)
		}
		breaks(&archive)
		if added, err := empty.Import(t.Context(), archive); err == nil || added {
			t.Errorf("an archive with a broken %s: added %v, %v", field, added, err)
		}
	}
	if campaigns, err := empty.Campaigns(t.Context(), store.CampaignFilter{}); err != nil || len(campaigns) != 0 {
		t.Errorf("a refused archive left %d campaigns, %v", len(campaigns), err)
	}
}

// testImportRunNumber imports into a store that has a run of that name already.
func testImportRunNumber(t *testing.T, place Place) {
	from, to := New(t, place), New(t, place)
	create(t, from, campaignOf("night")) // takes run 1
	exported, lease := create(t, from, campaignOf("night"))
	measure(t, from, lease, trialOf("a", 1))
	conclude(t, from, lease, "a", 1, true)
	archive, err := from.Export(t.Context(), exported.ID)
	if err != nil || archive.Campaign.Run != 2 || archive.Conclusion.Run != 2 {
		t.Fatalf("exported %+v, %v", archive, err)
	}
	for range 3 {
		create(t, to, campaignOf("night"))
	}
	if added, err := to.Import(t.Context(), archive); err != nil || !added {
		t.Fatalf("import: added %v, %v", added, err)
	}
	again, err := to.Export(t.Context(), exported.ID)
	if err != nil || again.Campaign.Run != 4 || again.Conclusion.Run != 4 {
		t.Errorf("imported as run %d, its conclusion %d, %v; want 4", again.Campaign.Run, again.Conclusion.Run, err)
	}
	archive.Campaign.Run, archive.Conclusion.Run = 4, 4
	if diff := differences(archive, again); diff != "" {
		t.Errorf("more than the run number changed:\n%s", diff)
	}
	// An imported campaign is free, whoever had it in the other store.
	if _, err := to.AcquireLease(t.Context(), exported.ID, "x", time.Hour); err != nil {
		t.Error(err)
	}
}
