package testpg_test

import (
	"database/sql"
	"os"
	"testing"

	"nocturne/internal/testpg"
)

func TestMain(m *testing.M) { os.Exit(testpg.Run(m)) }

func TestDatabasesAreApart(t *testing.T) {
	count := func(url string) (tables int) {
		t.Helper()
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // nothing is lost with the connection
		if err := db.QueryRow("select count(*) from pg_tables where schemaname = 'public'").Scan(&tables); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("create table only_here (id int)"); err != nil {
			t.Fatal(err)
		}
		return tables
	}
	if first, second := count(testpg.URL(t)), count(testpg.URL(t)); first == 0 || first != second {
		t.Errorf("migrated databases have %d and %d tables, want the same, not 0", first, second)
	}
	if tables := count(testpg.Empty(t)); tables != 0 {
		t.Errorf("an empty database has %d tables", tables)
	}
}
