// Package architecture holds the test of the one way in which packages may
// know each other: cmd -> tuner -> search, runners, store; never back.
package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// forbidden lists, for the packages below a folder, what they must not import.
// Test files are free, except that nothing may import cmd.
var forbidden = []struct {
	below   string
	imports []string
	why     string
}{
	{"search", []string{"tuner", "runners", "store", "nccl", "cmd", "internal", "migrations"}, "search is a pure function of its request"},
	{"nccl", []string{"tuner", "runners", "store", "search", "cmd", "internal", "migrations"}, "nccl is a leaf"},
	{"runners", []string{"tuner", "store", "search", "cmd", "migrations"}, "a runner carries out one trial and knows nobody above it"},
	{"runners/sim", []string{"nccl"}, "the simulator is the independent adversary"},
	{"store", []string{"tuner", "cmd", "nccl", "runners/local", "runners/load", "runners/servers", "runners/supervise", "runners/sim", "runners/fingerprint"}, "the store knows plain result types only"},
	{"migrations", []string{"tuner", "runners", "store", "search", "nccl", "cmd"}, "migrations are SQL"},
	{"tuner", []string{"cmd"}, "nothing imports the command line"},
}

func TestImportsGoOneWay(t *testing.T) {
	root := "../.."
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, rule := range forbidden {
			if under(folder, rule.below) && !strings.HasSuffix(path, "_test.go") {
				seen[rule.below] = true
				check(t, path, rule.imports, rule.why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range forbidden {
		if !seen[rule.below] {
			t.Errorf("no file below %s was looked at: the rule protects nothing", rule.below)
		}
	}
}

func check(t *testing.T, path string, imports []string, why string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		ours, found := strings.CutPrefix(imported, "nocturne/")
		for _, banned := range imports {
			if found && under(ours, banned) {
				t.Errorf("%s imports %s: %s", path, imported, why)
			}
		}
	}
}

func under(folder, root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }
