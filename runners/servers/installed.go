package servers

import (
	"path/filepath"
	"strings"
)

// VersionSource says how to ask a program for its version without launching it.
type VersionSource struct {
	// Package is the Python package whose metadata holds the version. Reading the
	// metadata takes a moment; importing the package would take many seconds.
	Package string
	// Flag makes the program print its version and end.
	Flag string
}

// VersionCommand returns the command that prints the version of the server which
// a command line would start; nil when it cannot be told. A program that is not
// Python itself is a script: interpreter returns the program of its first line,
// "" when it has none.
func (k *Kind) VersionCommand(args []string, interpreter func(program string) string) []string {
	switch {
	case len(args) == 0:
		return nil
	case k.Installed.Flag != "":
		return []string{args[0], k.Installed.Flag}
	case k.Installed.Package == "":
		return nil
	}
	python := args[0]
	if !strings.HasPrefix(filepath.Base(python), "python") {
		if python = interpreter(args[0]); python == "" {
			return nil
		}
	}
	return []string{python, "-c", "import importlib.metadata as m; print(m.version('" + k.Installed.Package + "'))"}
}

// Interpreter is the program that the first line of a script names; "" when the
// text does not begin like a script of Python.
func Interpreter(head string) string {
	line, _, _ := strings.Cut(head, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" && len(words) > 1 {
		words = words[1:]
	}
	if !strings.HasPrefix(filepath.Base(words[0]), "python") {
		return ""
	}
	return words[0]
}

// InstalledVersion reads the answer to a VersionCommand: the first line that is a
// version.
func InstalledVersion(output string) (Version, bool) {
	for line := range strings.Lines(output) {
		if version, ok := ParseVersion(line); ok {
			return version, true
		}
	}
	return Version{}, false
}
