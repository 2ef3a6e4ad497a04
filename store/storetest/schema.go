package storetest

import (
	"errors"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"nocturne/store"
)

func testMigrateConcurrently(t *testing.T, place Place) {
	url := place(t)
	var group errgroup.Group
	for range 4 {
		s := openAt(t, url)
		group.Go(func() error { return s.Migrate(limit(t)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	status, err := openAt(t, url).Status(t.Context())
	if err != nil || status.Version != status.Known || status.Known == 0 {
		t.Errorf("status %+v, %v: want the known version", status, err)
	}
}

func testNewerSchema(t *testing.T, place Place) {
	url := place(t)
	s := openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, url).Exec("insert into schema_version (version_id, is_applied) values (9999, true)"); err != nil {
		t.Fatal(err)
	}
	newer := (*store.SchemaError)(nil)
	if err := s.Migrate(t.Context()); !errors.As(err, &newer) || newer.Present != 9999 {
		t.Errorf("migrate a newer database: %v, want a SchemaError", err)
	}
	if status, err := s.Status(t.Context()); err != nil || status.Version != 9999 {
		t.Errorf("status of a newer database: %+v, %v", status, err)
	}
}

func testNotMigrated(t *testing.T, place Place) {
	s := openAt(t, place(t))
	if _, err := s.Campaigns(t.Context(), store.CampaignFilter{}); !errors.Is(err, store.ErrNotMigrated) {
		t.Errorf("list campaigns: %v, want ErrNotMigrated", err)
	}
	if status, err := s.Status(t.Context()); err != nil || status.Version != 0 || status.Engine == "" || status.Location == "" {
		t.Errorf("status %+v, %v", status, err)
	}
}

// documentedColumns reads the columns of each view from docs/sql-views.md.
func documentedColumns(t testing.TB) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/sql-views.md")
	if err != nil {
		t.Fatal(err)
	}
	columns := make(map[string][]string)
	view := ""
	heading, row := regexp.MustCompile("^## `?(v1_\\w+)`?"), regexp.MustCompile("^\\| `(\\w+)` \\|")
	for line := range strings.Lines(string(text)) {
		if match := heading.FindStringSubmatch(line); match != nil {
			view = match[1]
		} else if match := row.FindStringSubmatch(line); match != nil {
			columns[view] = append(columns[view], match[1])
		}
	}
	return columns
}

func testViews(t *testing.T, place Place) {
	url := place(t)
	if err := openAt(t, url).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	documented := documentedColumns(t)
	for _, view := range []string{"v1_campaigns", "v1_trials", "v1_best"} {
		rows, err := raw(t, url).Query("select * from " + view)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err := errors.Join(err, rows.Close()); err != nil {
			t.Fatal(err)
		}
		if diff := differences(documented[view], columns); diff != "" {
			t.Errorf("%s: columns differ from docs/sql-views.md (-documented +present):\n%s", view, diff)
		}
	}
}

// testViewRows asks as an outside reader would; the answers are the same in
// every database.
func testViewRows(t *testing.T, place Place) {
	url := place(t)
	s := openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, lease := create(t, s, campaignOf("night"))
	for name, value := range map[string]float64{"LL": 88.8, "Simple": 62.9} {
		trial := trialOf(name, value)
		trial.Stack = []byte(`{"driver":"580.82","nccl":"2.28.9"}`)
		measure(t, s, lease, trial)
	}
	add(t, s, lease, "LL128", store.RoleSearch)
	conclude(t, s, lease, "LL", 88.5, true)
	queries := map[string][]string{
		"select campaign, run, state, hardware, workload, metric, trials, complete_trials from v1_campaigns": {"night|1|running|8 x GPU|chat|output_throughput|3|2"},
		// An unmeasured trial comes last only if NULLs do.
		"select configuration_hash, state, value, driver, nccl, failure_reason from v1_trials order by value desc nulls last": {
			"c1:LL|complete|88.8|580.82|2.28.9|", "c1:Simple|complete|62.9|580.82|2.28.9|", "c1:LL128|pending||||"},
		"select place, campaign, configuration_hash, value, launches, claim from v1_best":        {"1|night|c1:LL|88.5|3|improved"},
		"select count(*) from v1_trials where created > '2020-01-01' and created < '2200-01-01'": {"3"},
		"select knobs ->> 'NCCL_PROTO' from v1_trials where configuration_hash = 'c1:LL'":        {"LL"},
		"select count(*) from v1_campaigns where ended is null and created <= updated":           {"1"},
	}
	for query, want := range queries {
		if diff := differences(want, texts(t, url, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// texts returns the rows of a query, values joined by "|", NULL empty.
func texts(t testing.TB, url, query string) (lines []string) {
	t.Helper()
	rows, err := raw(t, url).Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]*string, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		parts := make([]string, len(columns))
		for i, value := range values {
			if value != nil {
				parts[i] = *value
			}
		}
		lines = append(lines, strings.Join(parts, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// testColumnChecks makes sure that the database itself refuses a value that is
// not finite, whoever writes it.
func testColumnChecks(t *testing.T, place Place) {
	url := place(t)
	s := openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, lease := create(t, s, campaignOf("night"))
	measure(t, s, lease, trialOf("a", 1))
	db := raw(t, url)
	for _, column := range []string{"value", "score", "standard_error", "loading_s", "measuring_s", "overhead_s"} {
		for _, value := range []float64{math.Inf(1), math.Inf(-1)} {
			if _, err := db.Exec("update trials set "+column+" = $1", value); err == nil {
				t.Errorf("trials.%s took %v", column, value)
			}
		}
		// SQLite turns NaN into NULL before any check; PostgreSQL must refuse it.
		if _, err := db.Exec("update trials set "+column+" = $1", math.NaN()); err == nil {
			if got := texts(t, url, "select "+column+" from trials"); !slices.Equal(got, []string{""}) {
				t.Errorf("trials.%s took NaN as %v", column, got)
			}
		}
	}
}
