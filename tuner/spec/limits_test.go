package spec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nocturne/tuner/spec"
)

// Texts of the largest size that make a parser work hard are refused, or read,
// in no time.
func TestHostileTexts(t *testing.T) {
	const size = 64 << 10
	keys := &strings.Builder{}
	for i := range 6000 {
		fmt.Fprintf(keys, "a%d: 1, ", i)
	}
	texts := map[string]string{
		"brackets":          strings.Repeat("[", size),
		"balanced brackets": strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"braces":            strings.Repeat("{", size),
		"dashes":            strings.Repeat("- ", size/2),
		"question marks":    strings.Repeat("? ", size/2),
		"anchors":           strings.Repeat("&a ", size/3),
		"list":              "gpus: [" + strings.Repeat("1,", size/2-8) + "]",
		"choices":           "space:\n  flags:\n    --a: {choices: [" + strings.Repeat("x, ", size/3-20) + "]}",
		"placeholders":      "model: \"" + strings.Repeat("${x}", size/4-4) + "\"",
		"keys":              "vars: {" + keys.String() + "}",
		"digits":            "seed: " + strings.Repeat("9", size-10),
		"folded":            "model: " + strings.Repeat("a\n  ", size/4-8),
		"too long":          strings.Repeat("#\n", size),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			_, _, err := spec.Parse("hostile.yaml", []byte(text), spec.Options{})
			var faults spec.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			for _, fault := range faults {
				checkPosition(t, text, fault)
			}
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if len(faults) > 500 || len(faults.Error()) > 4<<20 {
				t.Errorf("%d faults in %d bytes", len(faults), len(faults.Error()))
			}
		})
	}
}
