package search_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/search"
)

// TestF01_EqualityOfNumbers: one number is one value however it was written,
// and no digit of it is lost.
func TestF01_EqualityOfNumbers(t *testing.T) {
	var values []search.Value
	for _, text := range []string{"16777216", "1.6777216e+07", "16777216.0"} {
		var v search.Value
		if err := v.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	for _, v := range values {
		if v != search.Int(16777216) || v.String() != "16777216" {
			t.Errorf("got %s, want the integer 16777216", v)
		}
	}
	_, err := search.NewSpace([]search.Knob{{ID: "NCCL_BUFFSIZE", Kind: search.Ordinal, Levels: values, Default: values[0]}}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "listed twice") {
		t.Errorf("got %v, want the duplicate to be refused", err)
	}
	var huge search.Value
	if err := huge.UnmarshalJSON([]byte("18446744073709551615")); err == nil {
		t.Errorf("an integer beyond 64 bits became %s", huge)
	}
}

// TestF08_ThreadsAndBuffers: the helpers give the documented sets and no
// others: threads 64 to 512 and buffers that are powers of two.
func TestF08_ThreadsAndBuffers(t *testing.T) {
	threads, err := search.PowersOfTwo(64, 640)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[64 128 256 512]", texts(threads)); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	buffers, err := search.PowersOfTwo(1000000, 16777216)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[1048576 2097152 4194304 8388608 16777216]", texts(buffers)); diff != "" {
		t.Errorf("buffers (-want +got):\n%s", diff)
	}
	if _, err := search.PowersOfTwo(1000000, 1000001); err == nil {
		t.Error("a range without a power of two was accepted")
	}
}

func texts(levels []search.Value) string {
	words := make([]string, len(levels))
	for i, level := range levels {
		words[i] = level.String()
	}
	return "[" + strings.Join(words, " ") + "]"
}

func TestRange(t *testing.T) {
	const maxInt, minInt = 1<<63 - 1, -1 << 63
	tests := []struct {
		lo, hi, step int64
		want         string
	}{
		{2, 32, 2, "[2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32]"},
		{0, 10, 4, "[0 4 8]"},
		{5, 5, 1, "[5]"},
		{maxInt - 1, maxInt, 1, "[9223372036854775806 9223372036854775807]"},
		{5, 4, 1, "reversed"},
		{1, 4, 0, "want a step above 0"},
		{minInt, maxInt, 1, "more than 4096"},
	}
	for _, test := range tests {
		levels, err := search.Range(test.lo, test.hi, test.step)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("Range(%d, %d, %d): got %v, want %q", test.lo, test.hi, test.step, err, test.want)
			}
			continue
		}
		if texts(levels) != test.want {
			t.Errorf("Range(%d, %d, %d) = %s, want %s", test.lo, test.hi, test.step, texts(levels), test.want)
		}
	}
}
