package spec_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/tuner/spec"
)

var update = flag.Bool("update", false, "write golden files")

// golden compares a text with a file, or writes the file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", path, lineDifferences(string(want), string(got)))
	}
}

// lineDifferences lists the lines that only one of the texts has.
func lineDifferences(want, got string) string {
	var out strings.Builder
	wanted, found := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, side := range []struct {
		sign       string
		lines, not []string
	}{{"-", wanted, found}, {"+", found, wanted}} {
		seen := map[string]bool{}
		for _, line := range side.not {
			seen[line] = true
		}
		for _, line := range side.lines {
			if !seen[line] {
				out.WriteString(side.sign + " " + line + "\n")
			}
		}
	}
	return out.String()
}

func files(t *testing.T, pattern string, least int) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < least {
		t.Fatalf("%s matches %d files, want at least %d", pattern, len(paths), least)
	}
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// neutral replaces the folder of the test data, which is another one on every
// machine.
func neutral(t *testing.T, text string) string {
	t.Helper()
	directory, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, directory, "$PACKAGE")
}

// TestBadFiles compares what is said of each bad file, faults and warnings,
// word by word.
func TestBadFiles(t *testing.T) {
	for _, path := range files(t, "testdata/bad/*.yaml", 60) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			text := read(t, path)
			campaign, warnings, err := spec.Parse(path, text, spec.Options{})
			if err == nil || campaign != nil {
				t.Fatal("the file was accepted")
			}
			var faults spec.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("the error is %T, want Faults", err)
			}
			var out strings.Builder
			for _, fault := range faults {
				checkPosition(t, string(text), fault)
				out.WriteString(strings.TrimPrefix(fault.String(), "testdata/bad/") + "\n")
			}
			for _, warning := range warnings {
				checkPosition(t, string(text), warning)
				out.WriteString("warning: " + strings.TrimPrefix(warning.String(), "testdata/bad/") + "\n")
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", []byte(neutral(t, out.String())))
		})
	}
}

// checkPosition makes sure that a fault lies in the file.
func checkPosition(t testing.TB, text string, fault spec.Fault) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if fault.Line < 1 || fault.Line > len(lines) {
		t.Errorf("%s: there are %d lines", fault, len(lines))
		return
	}
	if columns := len([]rune(strings.TrimSuffix(lines[fault.Line-1], "\r"))); fault.Column < 1 || fault.Column > columns+1 {
		t.Errorf("%s: line %d has %d columns", fault, fault.Line, columns)
	}
	if fault.Message == "" {
		t.Errorf("%s: no message", fault)
	}
}
