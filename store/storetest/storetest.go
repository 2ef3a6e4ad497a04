// Package storetest is the conformance suite of store.Store. Each database runs
// it from a small test file:
//
//	func TestMain(m *testing.M) { storetest.Worker(); os.Exit(m.Run()) }
//	func TestConformance(t *testing.T) { storetest.Run(t, place) }
//
// where place returns the URL of a new, empty database.
package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/store/open"
)

// Place makes a new, empty database and returns its URL.
type Place func(t testing.TB) string

// Run runs the suite.
func Run(t *testing.T, place Place) {
	tests := []struct {
		name string
		run  func(*testing.T, Place)
	}{
		{"MigrateConcurrently", testMigrateConcurrently},
		{"NewerSchema", testNewerSchema},
		{"NotMigrated", testNotMigrated},
		{"Views", testViews},
		{"ViewRows", testViewRows},
		{"F30_ColumnChecks", testColumnChecks},
		{"F30_NonFinite", testNonFinite},
		{"CampaignRuns", testCampaignRuns},
		{"CampaignReferences", testCampaignReferences},
		{"ClockPutBack", testClockPutBack},
		{"CampaignFilters", testCampaignFilters},
		{"UpdateCampaign", testUpdateCampaign},
		{"InvalidRecords", testInvalidRecords},
		{"UnstorableText", testUnstorableText},
		{"Lease", testLease},
		{"LeaseExpiry", testLeaseExpiry},
		{"ForceLease", testForceLease},
		{"Unattended", testUnattended},
		{"LostLeaseChangesNothing", testLostLeaseChangesNothing},
		{"TrialLifecycle", testTrialLifecycle},
		{"Fencing", testFencing},
		{"F12_Repeats", testRepeats},
		{"F32_LostHost", testLostHost},
		{"TrialFilters", testTrialFilters},
		{"RunningAttempts", testRunningAttempts},
		{"Events", testEvents},
		{"Restart", testRestart},
		{"F34_Goroutines", testConcurrentGoroutines},
		{"F34_Processes", testConcurrentProcesses},
		{"F34_ConcurrentRuns", testConcurrentRuns},
		{"Kill", testKill},
		{"BestOrder", testBestOrder},
		{"BestFilters", testBestFilters},
		{"BestUnconfirmed", testBestUnconfirmed},
		{"ArchiveRoundTrip", testArchiveRoundTrip},
		{"ArchiveRefused", testArchiveRefused},
		{"ImportRunNumber", testImportRunNumber},
		{"TrialRoundTrip", testTrialRoundTrip},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, place) })
	}
}

// timeout bounds what a test waits for; nothing takes as long when it works.
const timeout = 2 * time.Minute

// limit returns a context that ends when a test has waited too long.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// openAt opens the store at a URL until the test ends.
func openAt(t testing.TB, url string) store.Store {
	t.Helper()
	s, err := open.Store(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New opens and migrates a store at a new place.
func New(t testing.TB, place Place) store.Store {
	t.Helper()
	s := openAt(t, place(t))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// raw opens the database itself, for what a Store does not let through.
func raw(t testing.TB, location string) *sql.DB {
	t.Helper()
	driver, name := "pgx", location
	if path, is := strings.CutPrefix(location, "sqlite:"); is {
		driver, name = "sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// campaignOf returns a small valid campaign.
func campaignOf(name string) store.Campaign {
	return store.Campaign{
		Name: name, State: store.CampaignRunning, HardwareKey: "hw1:a", Instance: "box-a", Model: "m", ModelKey: "m1:m",
		Hardware: json.RawMessage(`{"name":"8 x GPU"}`), Workload: json.RawMessage(`{"name":"chat"}`), WorkloadKey: "wl1:w",
		Objective: store.Objective{Metric: "output_throughput", Direction: "maximize"},
	}
}

// configurationOf returns a configuration with a hash of its own.
func configurationOf(name string) store.Configuration {
	return store.Configuration{
		Hash: "c1:" + name, Values: search.Values{"NCCL_PROTO": search.Text(name)},
		Env: map[string]string{"NCCL_PROTO": name}, Unset: []string{}, Args: []string{"serve"},
	}
}

// create adds a campaign and takes its lease.
func create(t testing.TB, s store.Store, campaign store.Campaign) (store.Campaign, store.Lease) {
	t.Helper()
	created, err := s.CreateCampaign(t.Context(), campaign)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := s.AcquireLease(t.Context(), created.ID, "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return created, lease
}

// add appends a trial of a configuration with that name.
func add(t testing.TB, s store.Store, lease store.Lease, configuration string, role store.Role) store.Trial {
	t.Helper()
	trial, err := s.AddTrial(t.Context(), lease, store.Trial{Role: role, Configuration: configurationOf(configuration)})
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

// claim starts the next pending trial.
func claim(t testing.TB, s store.Store, lease store.Lease) (store.Trial, store.Attempt) {
	t.Helper()
	trial, attempt, err := s.ClaimTrial(t.Context(), lease, "local")
	if err != nil {
		t.Fatal(err)
	}
	return trial, attempt
}

// measure adds, claims and completes a trial with a value.
func measure(t testing.TB, s store.Store, lease store.Lease, trial store.Trial) store.Trial {
	t.Helper()
	added, err := s.AddTrial(t.Context(), lease, trial)
	if err != nil {
		t.Fatal(err)
	}
	claimed, attempt := claim(t, s, lease)
	if claimed.ID != added.ID {
		t.Fatalf("claimed trial %d, added trial %d", claimed.Number, added.Number)
	}
	claimed.State, claimed.Value, claimed.Stack, claimed.BrokenLimits = store.TrialComplete, trial.Value, trial.Stack, trial.BrokenLimits
	if err := s.FinishTrial(t.Context(), lease, claimed, attempt.Number); err != nil {
		t.Fatal(err)
	}
	return claimed
}

// trialOf returns a trial of a configuration with a value to measure.
func trialOf(configuration string, value float64) store.Trial {
	return store.Trial{Role: store.RoleSearch, Configuration: configurationOf(configuration), Value: &value}
}

// launchOf returns a launch record.
func launchOf(pid int) runners.Launch {
	return runners.Launch{Host: "local", SupervisorPID: pid, SupervisorStart: 12345, BootID: "boot", Marker: "marker",
		LogPath: "/var/log/trial.log", Started: time.Date(2026, 12, 1, 22, 0, 0, 0, time.UTC)}
}

// differences compares records: opaque documents by their meaning.
func differences(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateComparable(search.Value{}),
		cmp.Transformer("JSON", func(document json.RawMessage) (value any) {
			if len(document) > 0 && json.Unmarshal(document, &value) != nil {
				return string(document)
			}
			return value
		}))
}
