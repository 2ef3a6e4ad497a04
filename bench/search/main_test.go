package main

import (
	"context"
	"strings"
	"testing"
)

func TestTableHasARowForEachSampler(t *testing.T) {
	o, err := parse([]string{"-seeds", "2", "-trials", "6", "-families", "small", "-samplers", "random,auto"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### small: 2 problems", "| sampler | 5 trials | 6 trials |", "| random |", "| auto |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestUnknownFamilyIsRefused(t *testing.T) {
	if _, err := parse([]string{"-families", "servers"}); err == nil || !strings.Contains(err.Error(), "want flat, inert") {
		t.Errorf("got %v, want the known families named", err)
	}
}
