package main

import (
	"os"
	"path/filepath"
	"strings"
)

// campaign copies a campaign of testdata into the world, with its programs
// marked as the world's, and with changes as pairs of old and new text.
func (w *world) campaign(name string, changes ...string) string {
	w.t.Helper()
	files, err := filepath.Glob("testdata/campaigns/*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		if filepath.Base(file) != name {
			w.write(filepath.Base(file), string(text))
			continue
		}
		changes = append(changes, "MARK: none", worldVariable+`: "`+w.folder+`"`)
		for i := 0; i < len(changes); i += 2 {
			if !strings.Contains(string(text), changes[i]) {
				w.t.Fatalf("%s has no %q to change", file, changes[i])
			}
		}
		w.write(name, strings.NewReplacer(changes...).Replace(string(text)))
	}
	return filepath.Join(w.folder, name)
}

func (w *world) bowl(changes ...string) string {
	w.t.Helper()
	return w.campaign("bowl.yaml", changes...)
}

func (w *world) simulated() string {
	w.t.Helper()
	return w.campaign("simulated.yaml")
}
