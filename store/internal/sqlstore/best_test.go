package sqlstore

import (
	"database/sql"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"nocturne/migrations"
	"nocturne/store"
)

var wholeTable = regexp.MustCompile(`^(SCAN|SEARCH) [a-z]\b`)

// TestBestUsesIndexes reads SQLite's plans: no question about the best reads
// whole tables.
func TestBestUsesIndexes(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "plans.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over
	schema, err := fs.ReadFile(migrations.SQLite(), "00001_schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(schema)); err != nil {
		t.Fatal(err)
	}
	filters := map[string]store.BestFilter{
		"all":         {},
		"unconfirmed": {Unconfirmed: true, PerGroup: 1, Limit: 5},
		"machine":     {HardwareKeys: []string{"hw1:a", "hw1:b"}, Instance: "box", Unconfirmed: true},
		"everything":  {HardwareKeys: []string{"hw1:a"}, Model: "m", Workload: "w", Driver: "d", CampaignID: "c", Unconfirmed: true, PerGroup: 1, Limit: 1},
	}
	for name, filter := range filters {
		query, values := candidates(filter)
		for _, step := range plan(t, db, query, values) {
			// Tables have aliases of one letter; the rest is made on the way.
			if wholeTable.MatchString(step) && !strings.Contains(step, "INDEX") {
				t.Errorf("%s: %q reads a whole table", name, step)
			}
		}
	}
}

func plan(t *testing.T, db *sql.DB, query string, values parameters) (steps []string) {
	t.Helper()
	rows, err := db.Query("explain query plan "+query, values...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	if err := rows.Err(); err != nil || len(steps) == 0 {
		t.Fatalf("plan %q, %v", steps, err)
	}
	return steps
}
