package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"nocturne/runners"
)

func journalHost(t *testing.T) *Host {
	t.Helper()
	host, err := New(Options{LockDirectory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func journalFiles(t *testing.T, host *Host) []string {
	t.Helper()
	directory, err := host.journalDirectory()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(directory, "*"+journalSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLaunchIsInTheJournalWhileItsLockIsHeld(t *testing.T) {
	host := journalHost(t)
	release, err := host.Lock(t.Context(), runners.GPUSelection{All: true}, "test")
	if err != nil {
		t.Fatal(err)
	}
	forget, err := host.record(runners.Launch{Marker: "M1"})
	if err != nil {
		t.Fatal(err)
	}
	if files := journalFiles(t, host); len(files) != 1 {
		t.Fatalf("journal holds %v, want one launch", files)
	}
	forget()
	release()
	if files := journalFiles(t, host); len(files) != 0 {
		t.Errorf("journal still holds %v", files)
	}
}

// The next campaign on the same GPUs ends what the journal names, whatever
// store its tuner used; launches on other GPUs belong to the living.
func TestLockEndsWhatAKilledTunerLeft(t *testing.T) {
	host := journalHost(t)
	directory, err := host.journalDirectory()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content any) string {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(directory, name+journalSuffix)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	resources, err := host.resources(t.Context(), runners.GPUSelection{All: true})
	if err != nil {
		t.Fatal(err)
	}
	// Of an earlier boot, so that there is nothing to wait for.
	ours := write("ours", journalEntry{Resources: resources, Launch: runners.Launch{Marker: "ours", BootID: "earlier", SupervisorPID: 1}})
	others := write("others", journalEntry{Resources: []string{"GPU-of-somebody-else"}, Launch: runners.Launch{Marker: "others", BootID: "earlier"}})
	torn := filepath.Join(directory, "torn"+journalSuffix)
	if err := os.WriteFile(torn, []byte(`{"resources": ["ho`), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := host.Lock(t.Context(), runners.GPUSelection{All: true}, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for path, want := range map[string]bool{ours: false, torn: false, others: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there %t, want %t", filepath.Base(path), err == nil, want)
		}
	}
}

// What the journal says is killed, so nobody else may write it.
func TestJournalOfSomebodyElseIsRefused(t *testing.T) {
	host := journalHost(t)
	directory, err := host.journalDirectory()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Lock(t.Context(), runners.GPUSelection{All: true}, "test"); err == nil {
		t.Error("a journal that everybody may write was trusted")
	}
}
