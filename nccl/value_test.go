package nccl_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nocturne/nccl"
)

// accepted canonicalizes and fails the test on a refusal.
func accepted(t testing.TB, name, raw string) string {
	t.Helper()
	got, err := nccl.Canonicalize(name, raw, nccl.Reading{})
	if err != nil {
		t.Fatalf("Canonicalize(%s, %q): %v", name, raw, err)
	}
	return got
}

// refused returns the refusal and checks that it says all of the parts.
func refused(t testing.TB, name, raw string, reading nccl.Reading, parts ...string) *nccl.ValueError {
	t.Helper()
	got, err := nccl.Canonicalize(name, raw, reading)
	if err == nil {
		t.Fatalf("Canonicalize(%s, %q) = %q, want a refusal", name, raw, got)
	}
	var refusal *nccl.ValueError
	if !errors.As(err, &refusal) {
		t.Fatalf("Canonicalize(%s, %q) failed with %T, want *ValueError", name, raw, err)
	}
	if refusal.Name != name || refusal.Value != raw {
		t.Errorf("the refusal names %s=%q, want %s=%q", refusal.Name, refusal.Value, name, raw)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Canonicalize(%s, %q): %q does not say %q", name, raw, err, part)
		}
	}
	return refusal
}

func TestF01_ByteSizes(t *testing.T) {
	for _, raw := range []string{
		"16777216", "16M", "16m", "16MiB", "16Mi", "16 MiB", "16384K", "16384KiB", "0.015625GiB",
		"0x1000000", "0X1000000", "1.6777216e+07", "1.6777216E7", "16777216.0", "16_777_216", "+16777216", " 16777216 ", "0o100000000",
	} {
		if got := accepted(t, "NCCL_BUFFSIZE", raw); got != "16777216" {
			t.Errorf("NCCL_BUFFSIZE %q = %q, want 16777216", raw, got)
		}
	}
	if got := accepted(t, "NCCL_BUFFSIZE", "1_048_576"); got != "1048576" {
		t.Errorf(`"1_048_576" = %s, want 1048576`, got)
	}
	refused(t, "NCCL_BUFFSIZE", "010", nccl.Reading{}, "ambiguous", "8", "10", "write 10, or 8")
	refused(t, "NCCL_BUFFSIZE", "010", nccl.Reading{Quoted: true, Unsafe: true}, "ambiguous")
	refused(t, "NCCL_BUFFSIZE", "16MB", nccl.Reading{}, "ambiguous", "16MiB")
	refused(t, "NCCL_BUFFSIZE", "0o20", nccl.Reading{}, "powers of two from 65536", "unsafe")
	if got, err := nccl.Canonicalize("NCCL_BUFFSIZE", "0o20", nccl.Reading{Unsafe: true}); err != nil || got != "16" {
		t.Errorf(`unsafe "0o20" = %q, %v; want 16`, got, err)
	}
	for raw, part := range map[string]string{
		"":             "not set",
		"off":          "reads words as 0",
		"abc":          "no number",
		"16Q":          "no number",
		"1.5":          "no whole number",
		"1.5K":         "65536",
		"0.3K":         "no whole number",
		"--5":          "more than one sign",
		"-65536":       "out of range",
		"2147483648":   "out of range",
		"4GiB":         "out of range",
		"1e999":        "no number",
		"089":          "leading zero",
		"010.0":        "leading zero",
		"08.5K":        "leading zero",
		"010M":         "ambiguous",
		"1__0":         "no number",
		"_1":           "no number",
		"0x":           "no number",
		"0b101":        "no number",
		"unset":        "leave the variable out",
		"99999999e+99": "out of range",
	} {
		refused(t, "NCCL_BUFFSIZE", raw, nccl.Reading{}, part)
	}
	refused(t, "NCCL_BUFFSIZE", strings.Repeat("9", 100), nccl.Reading{}, "too long")
	// A suffix has no place on a number that is no size.
	refused(t, "NCCL_MAX_NCHANNELS", "4K", nccl.Reading{}, "no size in bytes")
	if got := accepted(t, "NCCL_MAX_NCHANNELS", "1.6e+01"); got != "16" {
		t.Errorf("NCCL_MAX_NCHANNELS 1.6e+01 = %s, want 16", got)
	}
}

func TestF03_WordsAreNoSwitches(t *testing.T) {
	for raw, digit := range map[string]string{"no": "0", "off": "0", "False": "0", "yes": "1", "on": "1", "TRUE": "1"} {
		refused(t, "NCCL_NVLS_ENABLE", raw, nccl.Reading{}, "reads words as 0", "write "+digit, "0, 1 or 2")
		refused(t, "NCCL_P2P_DISABLE", raw, nccl.Reading{Quoted: true}, "write "+digit)
		refused(t, "NCCL_NTHREADS", raw, nccl.Reading{}, "write a number")
	}
	refused(t, "NCCL_PROTO", "off", nccl.Reading{}, "LL, LL128 or Simple")
	refused(t, "NCCL_ALGO", "no", nccl.Reading{}, "Tree, Ring")
	// Text needs quotes for such a word, and then is kept.
	refused(t, "NCCL_NET", "off", nccl.Reading{}, "quotes")
	if got, err := nccl.Canonicalize("NCCL_NET", "off", nccl.Reading{Quoted: true}); err != nil || got != "off" {
		t.Errorf(`quoted "off" = %q, %v`, got, err)
	}
	refused(t, "NCCL_HOSTID", "007", nccl.Reading{}, "leading zero")
	if got := accepted(t, "NCCL_TUNER_PLUGIN", "none"); got != "none" {
		t.Errorf("NCCL_TUNER_PLUGIN none = %q", got)
	}
}

func TestF06_ValuesAreChecked(t *testing.T) {
	refusal := refused(t, "NCCL_P2P_LEVEL", "sys", nccl.Reading{}, "not upper case", "write SYS")
	if refusal.Suggestion != "write SYS" || !strings.Contains(refusal.Allowed, "PHB") {
		t.Errorf("the refusal offers %q of %q", refusal.Suggestion, refusal.Allowed)
	}
	refused(t, "NCCL_P2P_LEVEL", "NODE", nccl.Reading{}, "no distance")
	refused(t, "NCCL_P2P_LEVEL", "6", nccl.Reading{}, "no distance")
	refused(t, "NCCL_P2P_DISABLE", "true", nccl.Reading{Quoted: true}, "write 1")
	refused(t, "NCCL_P2P_DISABLE", "2", nccl.Reading{}, "0 or 1")
	for raw, want := range map[string]string{"SYS": "SYS", "0": "LOC", "1": "PIX", "2": "PXB", "3": "PHB", "4": "SYS", "5": "SYS"} {
		if got := accepted(t, "NCCL_P2P_LEVEL", raw); got != want {
			t.Errorf("NCCL_P2P_LEVEL %q = %q, want %q", raw, got, want)
		}
	}
	if got := accepted(t, "NCCL_P2P_DISABLE", "0x1"); got != "1" {
		t.Errorf("NCCL_P2P_DISABLE 0x1 = %q, want 1", got)
	}
}

func TestF08_SafeThreadsAndBuffers(t *testing.T) {
	for _, raw := range []string{"64", "128", "256", "512"} {
		accepted(t, "NCCL_NTHREADS", raw)
	}
	for _, raw := range []string{"480", "100", "640", "96", "0"} {
		refusal := refused(t, "NCCL_NTHREADS", raw, nccl.Reading{}, "64, 128, 256 or 512", "NVIDIA/nccl#698")
		if !refusal.NeedsUnsafe {
			t.Errorf("NCCL_NTHREADS %s must be open to an unsafe opt-in", raw)
		}
		if got, err := nccl.Canonicalize("NCCL_NTHREADS", raw, nccl.Reading{Unsafe: true}); err != nil || got != raw {
			t.Errorf("unsafe NCCL_NTHREADS %s = %q, %v", raw, got, err)
		}
	}
	for name, values := range map[string][]string{
		"NCCL_BUFFSIZE":       {"1000000", "32768", "65537", "196608"},
		"NCCL_LL_BUFFSIZE":    {"131074", "4096"},
		"NCCL_LL128_BUFFSIZE": {"131072", "123000", "240"},
		"NCCL_LL128_NTHREADS": {"128", "170", "672"},
	} {
		for _, raw := range values {
			if refusal := refused(t, name, raw, nccl.Reading{}); !refusal.NeedsUnsafe {
				t.Errorf("%s %s must be open to an unsafe opt-in", name, raw)
			}
		}
	}
	accepted(t, "NCCL_LL128_BUFFSIZE", "122880")
	accepted(t, "NCCL_LL128_BUFFSIZE", "4915200")
	accepted(t, "NCCL_LL128_NTHREADS", "160")
}

func TestF10_FunctionForms(t *testing.T) {
	for raw, want := range map[string]string{
		"tree":                       "Tree",
		"RING":                       "Ring",
		"ring, tree":                 "Tree,Ring",
		"Tree,tree":                  "Tree",
		"allreduce:Tree":             "Tree",
		"AllReduce:tree":             "Tree",
		"allreduce:ring":             "allreduce:Ring",
		"^ring":                      "^Ring",
		"nvls":                       "NVLS",
		"collnetdirect":              "CollNetDirect",
		"ring,tree;allreduce:tree":   "Tree,Ring;allreduce:Tree",
		"allreduce:^tree":            "allreduce:^Tree",
		"allreduce:tree;reduce:ring": "reduce:Ring;allreduce:Tree",
	} {
		if got := accepted(t, "NCCL_ALGO", raw); got != want {
			t.Errorf("NCCL_ALGO %q = %q, want %q", raw, got, want)
		}
	}
	for raw, want := range map[string]string{
		"ll": "LL", "simple": "Simple", "^ll128": "^LL128", "Simple,LL": "LL,Simple", "allreduce:ll": "allreduce:LL", "LL128": "LL128",
	} {
		if got := accepted(t, "NCCL_PROTO", raw); got != want {
			t.Errorf("NCCL_PROTO %q = %q, want %q", raw, got, want)
		}
	}
	for raw, part := range map[string]string{
		"Bogus":                         "unknown name",
		"CollNet":                       "CollNetDirect or CollNetChain",
		"ring,^tree":                    "stands first",
		"alltoall:ring":                 "unknown function",
		"ring;tree":                     "only the first entry",
		"allreduce:ring;allreduce:tree": "twice",
		"tree;broadcast:ring":           "without Ring",
		"":                              "is empty",
		"^":                             "unknown name",
		"ring,":                         "unknown name",
		"^tree,ring,collnetdirect,collnetchain,nvls,nvlstree,pat": "leaves nothing",
	} {
		refused(t, "NCCL_ALGO", raw, nccl.Reading{}, part)
	}
}

func TestCanonicalizeOtherKinds(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"NCCL_DEBUG", "info", "INFO"},
		{"NCCL_DEBUG_SUBSYS", "init,env,GRAPH", "INIT,ENV,GRAPH"},
		{"NCCL_DEBUG_SUBSYS", "^coll", "^COLL"},
		{"NCCL_LAUNCH_MODE", "group", "GROUP"},
		{"NCCL_CTA_POLICY", "default|efficiency", "DEFAULT|EFFICIENCY"},
		{"NCCL_CTA_POLICY", "1", "EFFICIENCY"},
		{"NCCL_CUMEM_ENABLE", "-2", "-2"},
		{"NCCL_THREAD_THRESHOLDS", "8  8 64 0x40 8 64", "8 8 64 64 8 64"},
		{"NCCL_IB_HCA", "=mlx5_0:1", "=mlx5_0:1"},
		{"NCCL_SOMETHING_NEW", "x", "x"},
	} {
		if got := accepted(t, c.name, c.raw); got != c.want {
			t.Errorf("%s %q = %q, want %q", c.name, c.raw, got, c.want)
		}
	}
	refused(t, "NCCL_DEBUG", "loud", nccl.Reading{}, "VERSION, WARN")
	refused(t, "NCCL_LAUNCH_MODE", "true", nccl.Reading{}, "PARALLEL or GROUP")
	refused(t, "NCCL_DEBUG_SUBSYS", "INIT,NOPE", nccl.Reading{}, `"NOPE"`)
	refused(t, "NCCL_THREAD_THRESHOLDS", "8 8 64", nccl.Reading{}, "3 numbers")
	refused(t, "NCCL_THREAD_THRESHOLDS", "8 8 64 x 8 64", nccl.Reading{}, `"x"`)
	refused(t, "NCCL_THREAD_THRESHOLDS", "8 8 64 0 8 64", nccl.Reading{}, "out of range")
	refused(t, "NCCL_IB_HCA", "mlx5_0\nNCCL_ALGO=Ring", nccl.Reading{Quoted: true}, "control character")
	refused(t, "NCCL_IB_HCA", " mlx5_0", nccl.Reading{Quoted: true}, "blank")
	refused(t, "NCCL_NET_PLUGIN", "", nccl.Reading{}, "is empty")
}

// A canonical value is its own canonical form, whatever was typed.
func TestCanonicalizeIsIdempotent(t *testing.T) {
	all := nccl.Variables()
	rapid.Check(t, func(t *rapid.T) {
		variable := rapid.SampledFrom(all).Draw(t, "variable")
		raw := rapid.OneOf(
			rapid.StringMatching(`[0-9]{1,9}`), rapid.StringMatching(`0[xX][0-9a-f]{1,7}`), rapid.StringMatching(`[0-9]{1,3}(K|M|KiB|MiB)`),
			rapid.StringMatching(`\^?(ring|Tree|NVLS|LL|simple|LL128)(,(ring|Tree|LL|Simple)){0,2}`),
			rapid.StringMatching(`allreduce:(tree|ring|ll)`), rapid.SampledFrom([]string{"SYS", "PHB", "off", "INFO", "init,env"}), rapid.String(),
		).Draw(t, "raw")
		reading := nccl.Reading{Quoted: rapid.Bool().Draw(t, "quoted"), Unsafe: rapid.Bool().Draw(t, "unsafe")}
		once, err := nccl.Canonicalize(variable.Name, raw, reading)
		if err != nil {
			return
		}
		twice, err := nccl.Canonicalize(variable.Name, once, reading)
		if err != nil || twice != once {
			t.Fatalf("%s: %q becomes %q, and that %q, %v", variable.Name, raw, once, twice, err)
		}
	})
}
