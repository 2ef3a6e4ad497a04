package spec_test

import (
	"testing"

	"nocturne/tuner/spec"
)

// BenchmarkParse reads the campaign file of the design.
func BenchmarkParse(b *testing.B) {
	text := read(b, "testdata/good/design.yaml")
	for b.Loop() {
		if _, _, err := spec.Parse("testdata/good/design.yaml", text, spec.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkKey makes the key of a configuration, which a sampler does for every
// candidate.
func BenchmarkKey(b *testing.B) {
	campaign, _, err := spec.Parse("testdata/good/design.yaml", read(b, "testdata/good/design.yaml"), spec.Options{Facts: pcie})
	if err != nil {
		b.Fatal(err)
	}
	values := campaign.Hints[0]
	for b.Loop() {
		_ = campaign.Space.Key(values)
	}
}
