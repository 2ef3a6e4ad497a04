package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/internal/testpg"
)

// volatile are the fields that differ between two runs of one campaign.
var volatile = map[string]bool{
	"id": true, "campaign_id": true, "time": true, "started": true, "ended": true, "created": true,
	"loading_s": true, "measuring_s": true, "overhead_s": true, "log_path": true,
}

// The same campaign gives the same answers on SQLite, on PostgreSQL, and in a
// store that it was copied or imported into.
func TestAnswersDoNotDependOnTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	file := w.bowl("seed: 7", "seed: 7\ncurrent: {--a: 2}",
		"objective: {maximize: score}", "objective: {maximize: score, limits: {score: {min: 61}}}")
	// A second campaign, in another space, learns from the first.
	again := w.write("again.yaml", strings.NewReplacer("campaign: bowl", "campaign: again", "[1, 4]", "[2, 4]", "default: 1", "default: 2", "seed: 7", "seed: 9", "current: {--a: 2}", "").Replace(read(t, file)))
	sqlite, postgres := w.db, testpg.Empty(t)
	copied, imported := "sqlite:"+filepath.Join(w.folder, "copied.db"), testpg.Empty(t)
	for _, db := range []string{sqlite, postgres} {
		for _, file := range []string{file, again} {
			if _, stderr, status := w.run("tune", file, "--db", db); status != 0 {
				t.Fatalf("tune %s on %s: exit status %d: %s", file, db, status, stderr)
			}
		}
	}
	if _, stderr, status := w.run("db", "copy", copied, "--db", postgres); status != 0 {
		t.Fatalf("db copy: exit status %d: %s", status, stderr)
	}
	archive, stderr, status := w.run("export", "--db", sqlite)
	if status != 0 {
		t.Fatalf("export: exit status %d: %s", status, stderr)
	}
	if _, stderr, status := w.run("import", w.write("archive.jsonl", archive), "--db", imported); status != 0 {
		t.Fatalf("import: exit status %d: %s", status, stderr)
	}
	for _, command := range [][]string{{"show", "bowl"}, {"trials", "bowl"}, {"show", "again"}, {"trials", "again"}, {"best"}, {"best", "--campaign", "bowl@1"}, {"campaigns"}, {"compare", "bowl", "bowl@1"}} {
		want := stable(t, w, sqlite, command)
		for _, db := range []string{postgres, copied, imported} {
			if difference := cmp.Diff(want, stable(t, w, db, command)); difference != "" {
				t.Errorf("nocturne %s differs between %s and %s (-want +got):\n%s", strings.Join(command, " "), sqlite, db, difference)
			}
		}
	}
}

// stable is an answer without its volatile fields.
func stable(t *testing.T, w *world, db string, command []string) any {
	t.Helper()
	stdout, stderr, status := w.run(append(slices.Clone(command), "--json", "--db", db)...)
	var document any
	if err := json.Unmarshal([]byte(stdout), &document); err != nil || status != 0 {
		t.Fatalf("nocturne %s on %s: exit status %d, %v: %s", strings.Join(command, " "), db, status, err, stderr)
	}
	return withoutVolatile(document)
}

func withoutVolatile(value any) any {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(name string, _ any) bool { return volatile[name] })
		for name, inner := range value {
			value[name] = withoutVolatile(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = withoutVolatile(inner)
		}
	}
	return value
}
