package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"nocturne/nccl"
	"nocturne/tuner/spec"
)

// FuzzParse feeds texts that people would not write. Nothing may panic, every
// fault lies in the file, and what is accepted can be launched and read again.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml", "presets/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		campaign, warnings, err := spec.Parse("testdata/good/fuzz.yaml", []byte(text), spec.Options{})
		for _, warning := range warnings {
			checkPosition(t, text, warning)
		}
		if err != nil {
			var faults spec.Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error is %T %v, want faults", err, err)
			}
			for _, fault := range faults {
				checkPosition(t, text, fault)
			}
			return
		}
		for _, facts := range []nccl.Context{{}, pcie} {
			if _, err := campaign.Job(campaign.Baseline, facts); err != nil {
				t.Errorf("the baseline has no job: %v", err)
			}
			if _, err := campaign.Configuration(campaign.Baseline, facts); err != nil {
				t.Errorf("the baseline has no configuration: %v", err)
			}
		}
		again, _, err := spec.Parse("testdata/good/fuzz.yaml", []byte(campaign.File), spec.Options{})
		if err != nil || again.Digest() != campaign.Digest() {
			t.Errorf("read again it is another campaign: %v", err)
		}
	})
}
