// Package architecture holds the test of the one way in which packages may
// know each other: cmd -> tuner -> search, runners, store; never back.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
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
	// except are folders below that may, and below them the rule does not look.
	except []exception
}{
	{"search", []string{"tuner", "runners", "store", "nccl", "cmd", "internal", "migrations"}, "search is a pure function of its request", []exception{
		{"search/problems", "nccl", "problems for tests and benchmarks, which no search imports: the rules of NCCL make one of them"},
	}},
	{"nccl", []string{"tuner", "runners", "store", "search", "cmd", "internal", "migrations"}, "nccl is a leaf", nil},
	{"runners", []string{"tuner", "store", "search", "cmd", "migrations"}, "a runner carries out one trial and knows nobody above it", nil},
	{"runners/sim", []string{"nccl"}, "the simulator is the independent adversary", nil},
	{"store", []string{"tuner", "cmd", "nccl", "runners/local", "runners/load", "runners/servers", "runners/supervise", "runners/sim", "runners/fingerprint"}, "the store knows plain result types only", nil},
	{"migrations", []string{"tuner", "runners", "store", "search", "nccl", "cmd"}, "migrations are SQL", nil},
	{"tuner", []string{"cmd"}, "nothing imports the command line", nil},
}

// exception allows packages below a folder one import, for a reason.
type exception struct{ below, imports, why string }

func TestImportsGoOneWay(t *testing.T) {
	root := "../.."
	seen, used := map[string]bool{}, map[exception]bool{}
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
				banned := slices.Clone(rule.imports)
				for _, allowed := range rule.except {
					if under(folder, allowed.below) && imports(t, path, allowed.imports) {
						used[allowed] = true
						banned = slices.DeleteFunc(banned, func(name string) bool { return name == allowed.imports })
					}
				}
				for _, name := range banned {
					if imports(t, path, name) {
						t.Errorf("%s imports %s: %s", path, name, rule.why)
					}
				}
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
		for _, allowed := range rule.except {
			if !used[allowed] {
				t.Errorf("nothing below %s imports %s: the exception (%s) can go", allowed.below, allowed.imports, allowed.why)
			}
		}
	}
}

// imports tells whether a file imports a package of ours, or one below it.
func imports(t *testing.T, path, name string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		ours, found := strings.CutPrefix(imported, "nocturne/")
		return found && under(ours, name)
	})
}

// Nothing that searches may import what is made for its tests.
func TestProblemsAreForTests(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder, err := filepath.Rel("../..", filepath.Dir(path))
		if err != nil {
			return err
		}
		if !under(folder, "search/problems") && !under(folder, "bench") && imports(t, path, "search/problems") {
			t.Errorf("%s imports search/problems, which is for tests and benchmarks", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func under(folder, root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }
