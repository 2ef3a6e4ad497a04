package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/store"
	"nocturne/store/internal/sqlstore"
	"nocturne/store/sqlite"
	"nocturne/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Worker()
	os.Exit(m.Run())
}

func place(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "nocturne.db")
}

func TestConformance(t *testing.T) { storetest.Run(t, place) }

func Benchmark(b *testing.B) { storetest.Benchmark(b, place) }

func openFile(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
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

func TestFilesAreThePersonsOwn(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "share", "nocturne")
	s := openFile(t, filepath.Join(folder, "nocturne.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(folder), folder} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, %v; want 0700", path, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 3 {
		t.Fatalf("files %v, %v: want the database, its log and its shared memory", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode() != fs.FileMode(0o600) {
			t.Errorf("%s has mode %v, %v; want 0600", entry.Name(), info.Mode(), err)
		}
	}
}

func TestUnusualPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "50%.db", "what?.db", "a#b.db", "ä&=;.db", "file:x.db"} {
		path := filepath.Join(t.TempDir(), name)
		s := openFile(t, path)
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if status, err := s.Status(t.Context()); err != nil || status.Location != path || !strings.HasPrefix(status.Engine, "sqlite 3.") {
			t.Errorf("%q: status %+v, %v", name, status, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not where the database is: %v", name, err)
		}
	}
}

func TestOpenFailures(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(folder, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ path, want string }{
		"a text file":    {text, "is not a SQLite database"},
		"a folder":       {folder, "cannot be opened"},
		"below a file":   {filepath.Join(text, "nocturne.db"), "make the folder"},
		"a kernel table": {"/proc/nocturne/nocturne.db", "make the folder"},
		"a broken link":  {loop, "cannot be opened"},
	}
	for name, test := range tests {
		if _, err := sqlite.Open(t.Context(), test.path); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.Dir(test.path)) {
			t.Errorf("%s: %v, want an error with the path that says %q", name, err, test.want)
		}
	}
}

// writer returns the connection that writes.
func writer(t *testing.T, s store.Store) *sql.DB {
	t.Helper()
	implementation, ok := s.(*sqlstore.Store)
	if !ok {
		t.Fatalf("the store is a %T", s)
	}
	return implementation.Write
}

func TestF34_LockedFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nocturne.db")
	s, other := openFile(t, path), openFile(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := writer(t, other).BeginTx(t.Context(), nil) // another process's long change
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was changed
	if _, err := writer(t, s).ExecContext(t.Context(), "pragma busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	campaign := store.Campaign{Name: "night", State: store.CampaignRunning, Objective: store.Objective{Metric: "m", Direction: "maximize"}}
	_, err = s.CreateCampaign(t.Context(), campaign)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "locked by another process") || !strings.Contains(err.Error(), path) {
		t.Errorf("a change while another process changes: %v, want the file and the cause", err)
	}
	if _, err := s.Campaigns(t.Context(), store.CampaignFilter{}); err != nil {
		t.Errorf("reading while another process changes: %v", err)
	}
}

func TestCancelledWaitForLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nocturne.db")
	s, other := openFile(t, path), openFile(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := writer(t, other).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was changed
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.AcquireLease(ctx, "01JD0000000000000000000001", "x", 1e9)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
}

// TestDurability makes sure that a report does not leave the connection in the
// mode in which a change may be lost with the power.
func TestDurability(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "nocturne.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	pragma := func(name string) (value string) {
		t.Helper()
		if err := writer(t, s).QueryRowContext(t.Context(), "pragma "+name).Scan(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	const full = "2"
	synchronous := func(after string) {
		t.Helper()
		if got := pragma("synchronous"); got != full {
			t.Errorf("after %s synchronous is %s, want %s", after, got, full)
		}
	}
	synchronous("opening")
	campaign, err := s.CreateCampaign(t.Context(), store.Campaign{Name: "night", State: store.CampaignRunning,
		Objective: store.Objective{Metric: "m", Direction: "maximize"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEvent(t.Context(), campaign.ID, "x", campaign.Created, nil); err != nil {
		t.Fatal(err)
	}
	synchronous("an event")
	if _, err := s.AppendEvent(t.Context(), "no campaign", "x", campaign.Created, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an event of no campaign: %v", err)
	}
	synchronous("a refused event")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.AppendEvent(ctx, campaign.ID, "x", campaign.Created, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled event: %v", err)
	}
	synchronous("a cancelled event")
	if mode, keys := pragma("journal_mode"), pragma("foreign_keys"); mode != "wal" || keys != "1" {
		t.Errorf("journal mode %s, foreign keys %s; want wal, 1", mode, keys)
	}
}
