package open_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nocturne/internal/testpg"
	"nocturne/store"
	"nocturne/store/open"
	"nocturne/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }

func TestStore(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Chdir(folder)
	tests := map[string]string{
		"sqlite:" + folder + "/a.db":   folder + "/a.db",
		"sqlite://" + folder + "/b.db": folder + "/b.db", // three slashes
		"sqlite:c.db":                  folder + "/c.db",
		"sqlite:./d/../e.db":           folder + "/e.db",
		"sqlite:~/f.db":                folder + "/f.db",
	}
	for text, want := range tests {
		s, err := open.Store(t.Context(), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if status, err := s.Status(t.Context()); err != nil || status.Location != want {
			t.Errorf("%s is at %s, %v; want %s", text, status.Location, err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := open.Store(t.Context(), testpg.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	if status, err := s.Status(t.Context()); err != nil || !strings.HasPrefix(status.Engine, "postgresql ") {
		t.Errorf("status %+v, %v", status, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestRefusedURLs(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := map[string]string{
		"":                          "is empty",
		"nocturne.db":               "sqlite:nocturne.db",
		"/var/lib/nocturne.db":      "sqlite:/var/lib/nocturne.db",
		"./nocturne.db":             "sqlite:./nocturne.db",
		"file:///var/nocturne.db":   "sqlite:/var/nocturne.db",
		"mysql://root@db/nocturne":  open.Forms,
		"sqlite3:nocturne.db":       open.Forms,
		"sqlite:":                   "sqlite:PATH",
		"sqlite://nocturne.db":      "sqlite:nocturne.db",
		"sqlite::memory:":           "in memory",
		"sqlite:a.db?mode=ro":       "without parameters",
		"postgres:nocturne":         "postgres://",
		"host=db dbname=nocturne":   "has no scheme",
		"mysql://u:hunter2@db/name": open.Forms,
	}
	for text, want := range tests {
		_, err := open.Store(t.Context(), text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a hint of %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v has the password", text, err)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("refused URLs left %v, %v", entries, err)
	}
}

func TestDefault(t *testing.T) {
	tests := map[string]struct{ home, data, want string }{
		"root":          {"/root", "", "sqlite:/root/.local/share/nocturne/nocturne.db"},
		"data folder":   {"/root", "/data", "sqlite:/data/nocturne/nocturne.db"},
		"relative data": {"/home/a", "data", "sqlite:/home/a/.local/share/nocturne/nocturne.db"},
	}
	for name, test := range tests {
		t.Setenv("HOME", test.home)
		t.Setenv("XDG_DATA_HOME", test.data)
		if got, err := open.Default(); err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
	// A service without HOME still has a user.
	t.Setenv("HOME", "")
	if got, err := open.Default(); err != nil || !filepath.IsAbs(strings.TrimPrefix(got, "sqlite:")) {
		t.Errorf("without HOME: %s, %v", got, err)
	}
}

// TestArchivesMoveBetweenDatabases carries campaigns from SQLite to PostgreSQL
// and back; each exports the same line.
func TestArchivesMoveBetweenDatabases(t *testing.T) {
	file := func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "nocturne.db") }
	stores := []store.Store{storetest.New(t, file), storetest.New(t, testpg.URL), storetest.New(t, file)}
	rapid.Check(t, func(rt *rapid.T) {
		storetest.CheckRoundTrip(rt, t, storetest.Archives().Draw(rt, "archive"), stores...)
	})
}
