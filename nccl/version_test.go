package nccl_test

import (
	"testing"

	"nocturne/nccl"
)

func version(t testing.TB, text string) nccl.Version {
	t.Helper()
	v, err := nccl.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"2.28.9":                     "2.28.9",
		"2.28":                       "2.28.0",
		"2.28.9-1":                   "2.28.9",
		"2.28.9+cuda13.0":            "2.28.9",
		"NCCL version 2.28.9+cuda13": "2.28.9",
		"nccl==2.27.3":               "2.27.3",
		" 22809 ":                    "2.28.9",
		"22304":                      "2.23.4",
		"2804":                       "2.8.4",
		"(2, 28, 9)":                 "2.28.9",
		"libnccl.so.2.30.7":          "2.30.7",
	} {
		got, err := nccl.ParseVersion(text)
		if err != nil || got.String() != want {
			t.Errorf("ParseVersion(%q) = %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "two", "2", "0.0.0", "1.2.3.4", "228", "2280999"} {
		if got, err := nccl.ParseVersion(text); err == nil {
			t.Errorf("ParseVersion(%q) = %v, want an error", text, got)
		}
	}
}

func TestVersionOrder(t *testing.T) {
	old, now := version(t, "2.9.9"), version(t, "2.28.3")
	if old.Compare(now) != -1 || now.Compare(old) != 1 || now.Compare(now) != 0 {
		t.Error("2.9.9 must come before 2.28.3")
	}
	if !now.AtLeast(old) || now.Before(old) || !old.Before(now) {
		t.Error("AtLeast and Before must agree with Compare")
	}
	var unknown nccl.Version
	if unknown.AtLeast(old) || unknown.Before(old) || unknown.Known() || unknown.String() != "unknown" {
		t.Error("an unknown version is neither before nor after any")
	}
}

func TestRangeCovers(t *testing.T) {
	middle := nccl.Range{Since: version(t, "2.19"), Until: version(t, "2.22")}
	for text, want := range map[string]nccl.Tri{"2.18.6": nccl.No, "2.19.0": nccl.Yes, "2.21.5": nccl.Yes, "2.22.0": nccl.No} {
		if got := middle.Covers(version(t, text)); got != want {
			t.Errorf("%v covers %s = %v, want %v", middle, text, got, want)
		}
	}
	if got := middle.Covers(nccl.Version{}); got != nccl.Unknown {
		t.Errorf("a bounded range covers an unknown version = %v, want unknown", got)
	}
	if got := (nccl.Range{}).Covers(nccl.Version{}); got != nccl.Yes {
		t.Errorf("the open range covers an unknown version = %v, want yes", got)
	}
	for want, r := range map[string]nccl.Range{
		"2.19.0 to before 2.22.0": middle, "all versions": {}, "2.19.0 and later": {Since: middle.Since}, "before 2.22.0": {Until: middle.Until},
	} {
		if got := r.String(); got != want {
			t.Errorf("range prints as %q, want %q", got, want)
		}
	}
	if got := nccl.TriOf(true).String() + nccl.TriOf(false).String() + nccl.Unknown.String(); got != "yesnounknown" {
		t.Errorf("facts print as %q", got)
	}
}
