package migrations_test

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/migrations"
)

func TestDialectsHaveTheSameVersions(t *testing.T) {
	names := func(files fs.FS) []string {
		t.Helper()
		list, err := fs.Glob(files, "*.sql")
		if err != nil || len(list) == 0 {
			t.Fatalf("no migrations: %v", err)
		}
		return list
	}
	if diff := cmp.Diff(names(migrations.SQLite()), names(migrations.Postgres())); diff != "" {
		t.Errorf("versions differ (-sqlite +postgres):\n%s", diff)
	}
}
