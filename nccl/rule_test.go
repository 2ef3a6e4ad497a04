package nccl_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/nccl"
)

type settings = map[string]string

// canonicalCases: each line is a setting, what acts of it, and the rules that say so.
func canonicalCases(t testing.TB) []struct {
	name    string
	context nccl.Context
	set     settings
	want    settings
	rules   string
} {
	now := at(t, pci, "2.28.9")
	unknown := nccl.Context{}
	amd := func(c nccl.Context, ranks int) nccl.Context { c.CPU, c.Ranks = nccl.AMDCPU, ranks; return c }
	found := func(c nccl.Context, channels int) nccl.Context { c.Channels = channels; return c }
	farthest := func(c nccl.Context, level string) nccl.Context { c.Farthest = level; return c }
	hopper := at(t, nvswitch, "2.28.9")
	sends := func(c nccl.Context) nccl.Context { c.SendReceive = true; return c }
	two := at(t, nccl.Context{NVLink: nccl.No, Nodes: 2}, "2.28.9")
	return []struct {
		name    string
		context nccl.Context
		set     settings
		want    settings
		rules   string
	}{
		{"not yet known to the version", at(t, pci, "2.16.5"), settings{"NCCL_MAX_CTAS": "8"}, settings{}, "not-in-version"},
		{"no more known to the version", at(t, pci, "2.30.7"), settings{"NCCL_SHM_MEMCPY_MODE": "2"}, settings{}, "not-in-version"},
		{"still known to the version", now, settings{"NCCL_SHM_MEMCPY_MODE": "2"}, settings{"NCCL_SHM_MEMCPY_MODE": "2"}, ""},
		{"version unknown", unknown, settings{"NCCL_MAX_CTAS": "8"}, settings{"NCCL_MAX_CTAS": "8"}, ""},
		{"a distance that came later", at(t, pci, "2.25.1"), settings{"NCCL_P2P_LEVEL": "C2C"}, settings{}, "level-not-in-version"},

		{"threads no multiple of 32", unknown, settings{"NCCL_NTHREADS": "100"}, settings{"NCCL_NTHREADS": "512"}, "threads-not-multiple-of-32"},
		{"threads above", unknown, settings{"NCCL_NTHREADS": "1024"}, settings{"NCCL_NTHREADS": "512"}, "threads-above-maximum"},
		{"threads below", unknown, settings{"NCCL_NTHREADS": "32"}, settings{"NCCL_NTHREADS": "64"}, "threads-below-minimum"},
		{"threads zero", unknown, settings{"NCCL_NTHREADS": "0"}, settings{}, "threads-not-positive"},
		{"LL128 threads odd", hopper, settings{"NCCL_LL128_NTHREADS": "170"}, settings{}, "threads-not-multiple-of-32 is-default"},
		{"LL128 threads below", hopper, settings{"NCCL_LL128_NTHREADS": "64"}, settings{"NCCL_LL128_NTHREADS": "160"}, "threads-below-minimum"},
		{"clamped to the default of LL", now, settings{"NCCL_NTHREADS": "100", "NCCL_PROTO": "LL"}, settings{"NCCL_PROTO": "LL"}, "threads-not-multiple-of-32 threads-are-default"},
		{"512 threads for LL", now, settings{"NCCL_NTHREADS": "512", "NCCL_PROTO": "LL"}, settings{"NCCL_PROTO": "LL"}, "threads-are-default"},
		{"512 threads may differ for Simple", now, settings{"NCCL_NTHREADS": "512"}, settings{"NCCL_NTHREADS": "512"}, ""},
		{"512 threads from 2.31", at(t, pci, "2.31.2"), settings{"NCCL_NTHREADS": "512"}, settings{}, "threads-are-default"},
		{"512 threads on a fast ring", func() nccl.Context { c := now; c.RingSimpleThreads = 512; return c }(), settings{"NCCL_NTHREADS": "512"}, settings{}, "threads-are-default"},
		{"threads for LL128 alone", hopper, settings{"NCCL_NTHREADS": "128", "NCCL_PROTO": "LL128"}, settings{"NCCL_PROTO": "LL128"}, "threads-with-ll128-only"},

		{"channels zero", unknown, settings{"NCCL_MAX_NCHANNELS": "0"}, settings{"NCCL_MAX_NCHANNELS": "1"}, "maximum-below-one"},
		{"blocks zero", now, settings{"NCCL_MAX_CTAS": "0", "NCCL_MIN_CTAS": "0"}, settings{}, "channels-not-positive channels-not-positive"},
		{"minimum one", unknown, settings{"NCCL_MIN_NCHANNELS": "1"}, settings{}, "minimum-of-one"},
		{"maximum above every limit", unknown, settings{"NCCL_MAX_NCHANNELS": "1000"}, settings{}, "maximum-at-channel-limit"},
		{"maximum at the old limit", at(t, pci, "2.24.3"), settings{"NCCL_MAX_NCHANNELS": "32"}, settings{}, "maximum-at-channel-limit"},
		{"maximum below the new limit", now, settings{"NCCL_MAX_NCHANNELS": "32"}, settings{"NCCL_MAX_NCHANNELS": "32"}, ""},
		{"minimum above the limit", now, settings{"NCCL_MIN_NCHANNELS": "99"}, settings{"NCCL_MIN_NCHANNELS": "64"}, "channels-above-limit"},
		{"minimum blocks above maximum", now, settings{"NCCL_MIN_CTAS": "8", "NCCL_MAX_CTAS": "4"}, settings{"NCCL_MIN_CTAS": "4", "NCCL_MAX_CTAS": "4"}, "minimum-blocks-above-maximum"},
		{"two maxima", now, settings{"NCCL_MAX_NCHANNELS": "4", "NCCL_MAX_CTAS": "8"}, settings{"NCCL_MAX_NCHANNELS": "4"}, "two-maxima"},
		{"two equal maxima", now, settings{"NCCL_MAX_NCHANNELS": "8", "NCCL_MAX_CTAS": "8"}, settings{"NCCL_MAX_CTAS": "8"}, "two-maxima"},
		{"two maxima with NVLS", hopper, settings{"NCCL_MAX_NCHANNELS": "4", "NCCL_MAX_CTAS": "8"}, settings{"NCCL_MAX_NCHANNELS": "4", "NCCL_MAX_CTAS": "8"}, ""},
		{"two minima", now, settings{"NCCL_MIN_NCHANNELS": "4", "NCCL_MIN_CTAS": "8"}, settings{"NCCL_MIN_CTAS": "8"}, "two-minima"},
		{"old name", unknown, settings{"NCCL_MAX_NRINGS": "4"}, settings{"NCCL_MAX_NCHANNELS": "4"}, "old-channel-name"},
		{"old name beside the new", unknown, settings{"NCCL_MAX_NRINGS": "4", "NCCL_MAX_NCHANNELS": "8"}, settings{"NCCL_MAX_NCHANNELS": "8"}, "old-channel-name"},
		{"maximum above what is found", found(now, 8), settings{"NCCL_MAX_NCHANNELS": "16"}, settings{}, "maximum-above-found-channels"},
		{"maximum above what is found, other search", found(now, 8), settings{"NCCL_MAX_NCHANNELS": "16", "NCCL_P2P_LEVEL": "SYS"}, settings{"NCCL_MAX_NCHANNELS": "16", "NCCL_P2P_LEVEL": "SYS"}, ""},

		{"level LOC", unknown, settings{"NCCL_P2P_LEVEL": "LOC"}, settings{"NCCL_P2P_DISABLE": "1"}, "p2p-level-loc"},
		{"level LOC twice", unknown, settings{"NCCL_P2P_LEVEL": "LOC", "NCCL_P2P_DISABLE": "1"}, settings{"NCCL_P2P_DISABLE": "1"}, "p2p-level-loc"},
		{"level NVL without NVLink", now, settings{"NCCL_P2P_LEVEL": "NVL"}, settings{"NCCL_P2P_DISABLE": "1"}, "p2p-level-nearer-than-pcie p2p-level-loc"},
		{"level with NVLink everywhere", hopper, settings{"NCCL_P2P_LEVEL": "PHB"}, settings{}, "p2p-level-with-nvlink"},
		{"level beyond the farthest", farthest(now, "PHB"), settings{"NCCL_P2P_LEVEL": "SYS"}, settings{"NCCL_P2P_LEVEL": "PHB"}, "p2p-level-beyond-farthest"},
		{"level is the default", amd(now, 8), settings{"NCCL_P2P_LEVEL": "PXB"}, settings{}, "p2p-level-is-default"},
		{"level is the default for two on AMD", amd(now, 2), settings{"NCCL_P2P_LEVEL": "SYS"}, settings{}, "p2p-level-is-default"},
		{"default reaches all", farthest(amd(now, 2), "PHB"), settings{"NCCL_P2P_LEVEL": "SYS"}, settings{}, "p2p-level-beyond-farthest p2p-level-is-default"},
		{"level is more than the default", amd(now, 8), settings{"NCCL_P2P_LEVEL": "SYS"}, settings{"NCCL_P2P_LEVEL": "SYS"}, ""},
		{"P2P disabled", unknown, settings{"NCCL_P2P_DISABLE": "1", "NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_READ_ENABLE": "1"}, settings{"NCCL_P2P_DISABLE": "1"}, "p2p-disabled p2p-disabled"},
		{"P2P not disabled", unknown, settings{"NCCL_P2P_DISABLE": "0", "NCCL_P2P_LEVEL": "SYS"}, settings{"NCCL_P2P_LEVEL": "SYS"}, "is-default"},
		{"SHM disabled", unknown, settings{"NCCL_SHM_DISABLE": "1", "NCCL_SHM_LOCALITY": "1"}, settings{"NCCL_SHM_DISABLE": "1"}, "shm-disabled"},
		{"launch mode", unknown, settings{"NCCL_LAUNCH_MODE": "PARALLEL"}, settings{}, "launch-mode"},

		{"all of PCIe", now, settings{"NCCL_ALGO": "Tree,Ring"}, settings{}, "every-algorithm"},
		{"all of PCIe and more", now, settings{"NCCL_ALGO": "Ring,Tree,NVLS"}, settings{}, "algorithms-of-pcie-node every-algorithm"},
		{"exclusion on PCIe", now, settings{"NCCL_ALGO": "^Tree"}, settings{"NCCL_ALGO": "Ring"}, "algorithms-of-pcie-node"},
		{"rendered form on PCIe", now, settings{"NCCL_ALGO": "ring,tree;allreduce:tree"}, settings{"NCCL_ALGO": "Tree"}, "algorithms-of-pcie-node"},
		{"function form on PCIe", now, settings{"NCCL_ALGO": "allreduce:Ring"}, settings{"NCCL_ALGO": "Ring"}, "algorithms-of-pcie-node"},
		{"tree alone", now, settings{"NCCL_ALGO": "Tree"}, settings{"NCCL_ALGO": "Tree"}, ""},
		{"nothing that exists", now, settings{"NCCL_ALGO": "NVLS"}, settings{"NCCL_ALGO": "NVLS"}, ""},
		{"one node with NVSwitch", hopper, settings{"NCCL_ALGO": "Ring,NVLSTree,PAT"}, settings{"NCCL_ALGO": "Ring"}, "algorithms-of-one-node"},
		{"exclusion of what one node lacks", hopper, settings{"NCCL_ALGO": "^NVLSTree"}, settings{}, "algorithms-of-one-node"},
		{"PAT forced on one node", now, settings{"NCCL_ALGO": "Ring,PAT", "NCCL_PAT_ENABLE": "1"}, settings{"NCCL_ALGO": "Ring,PAT", "NCCL_PAT_ENABLE": "1"}, ""},
		{"exclusion of LL128", hopper, settings{"NCCL_PROTO": "^LL128"}, settings{"NCCL_PROTO": "LL,Simple"}, "protocols-as-list"},
		{"exclusion of LL128 on PCIe", now, settings{"NCCL_PROTO": "^LL128"}, settings{}, "protocols-as-list protocols-without-ll128"},
		{"all protocols on Hopper", hopper, settings{"NCCL_PROTO": "LL,LL128,Simple"}, settings{}, "protocols-with-ll128"},
		{"all protocols, platform unknown", unknown, settings{"NCCL_PROTO": "LL,LL128,Simple"}, settings{"NCCL_PROTO": "LL,LL128,Simple"}, ""},
		{"efficiency policy", now, settings{"NCCL_CTA_POLICY": "EFFICIENCY", "NCCL_PROTO": "LL"}, settings{"NCCL_PROTO": "LL"}, "efficiency-policy-overruled"},
		{"efficiency policy and a list of all", now, settings{"NCCL_CTA_POLICY": "EFFICIENCY", "NCCL_ALGO": "Tree,Ring"}, settings{}, "efficiency-policy-overruled every-algorithm"},

		{"buffer for LL", unknown, settings{"NCCL_PROTO": "LL", "NCCL_BUFFSIZE": "16777216"}, settings{"NCCL_PROTO": "LL"}, "buffsize-without-simple"},
		{"buffer for LL, sends too", sends(now), settings{"NCCL_PROTO": "LL", "NCCL_BUFFSIZE": "16777216"}, settings{"NCCL_PROTO": "LL", "NCCL_BUFFSIZE": "16777216"}, ""},
		{"buffer for LL, fallback to every protocol", at(t, pci, "2.20.5"), settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "Tree", "NCCL_BUFFSIZE": "16777216"},
			settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "Tree", "NCCL_BUFFSIZE": "16777216"}, ""},
		{"buffer for LL of the all-reduce alone", now, settings{"NCCL_PROTO": "allreduce:LL", "NCCL_BUFFSIZE": "16777216"}, settings{"NCCL_PROTO": "allreduce:LL", "NCCL_BUFFSIZE": "16777216"}, ""},
		{"LL buffer for Simple", unknown, settings{"NCCL_PROTO": "Simple", "NCCL_LL_BUFFSIZE": "1048576"}, settings{"NCCL_PROTO": "Simple"}, "ll-buffsize-without-ll"},
		{"LL128 settings for LL", unknown, settings{"NCCL_PROTO": "LL", "NCCL_LL128_NTHREADS": "320"}, settings{"NCCL_PROTO": "LL"}, "ll128-settings-without-ll128"},
		{"LL128 settings on PCIe", now, settings{"NCCL_LL128_BUFFSIZE": "122880"}, settings{}, "ll128-settings-without-ll128"},
		{"LL128 settings on NVLink", hopper, settings{"NCCL_LL128_BUFFSIZE": "122880"}, settings{"NCCL_LL128_BUFFSIZE": "122880"}, ""},
		{"default buffer", now, settings{"NCCL_BUFFSIZE": "4194304"}, settings{}, "is-default"},
		{"default buffer, version unknown", unknown, settings{"NCCL_BUFFSIZE": "4194304"}, settings{"NCCL_BUFFSIZE": "4194304"}, ""},
		{"thresholds of 8 ranks", amd(now, 8), settings{"NCCL_THREAD_THRESHOLDS": "8 8 64 64 8 64"}, settings{}, "thresholds-are-default"},
		{"chunk above an eighth", sends(now), settings{"NCCL_P2P_PCI_CHUNKSIZE": "1048576"}, settings{"NCCL_P2P_PCI_CHUNKSIZE": "524288"}, "send-chunk-above-step"},

		{"one rank", func() nccl.Context { c := now; c.Ranks = 1; return c }(), settings{"NCCL_PROTO": "LL", "NCCL_P2P_LEVEL": "SYS", "NCCL_DEBUG": "INFO"}, settings{"NCCL_DEBUG": "INFO"}, "single-rank single-rank"},
		{"network on one node", now, settings{"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_SOCKET_IFNAME": "eth0"}, settings{"NCCL_SOCKET_IFNAME": "eth0"}, "one-node"},
		{"network on two nodes", two, settings{"NCCL_IB_QPS_PER_CONNECTION": "4"}, settings{"NCCL_IB_QPS_PER_CONNECTION": "4"}, ""},
		{"send and receive only", unknown, settings{"NCCL_P2P_NVL_CHUNKSIZE": "262144"}, settings{}, "collectives-only"},
		{"windows only", now, settings{"NCCL_SYM_CTAS": "4"}, settings{}, "no-windows"},
		{"symmetric kernel empties rows", at(t, pci, "2.31.2"), settings{"NCCL_SYM_KERNEL": "AllReduce_AGxLL_R"}, settings{"NCCL_SYM_KERNEL": "AllReduce_AGxLL_R"}, ""},
		{"NVLS without a switch", now, settings{"NCCL_NVLS_ENABLE": "0"}, settings{}, "no-nvswitch"},
		{"NVLS off", hopper, settings{"NCCL_NVLS_ENABLE": "0", "NCCL_NVLS_NCHANNELS": "8"}, settings{"NCCL_NVLS_ENABLE": "0"}, "nvls-off"},
		{"NVLS at its default, which a server may overwrite", hopper, settings{"NCCL_NVLS_ENABLE": "2"}, settings{"NCCL_NVLS_ENABLE": "2"}, ""},
		{"sockets", two, settings{"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "8"}, settings{"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "4"}, "too-many-sockets"},

		{"the published six on PCIe", now,
			settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS", "NCCL_MAX_NCHANNELS": "16", "NCCL_BUFFSIZE": "16M", "NCCL_NTHREADS": "512"},
			settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS", "NCCL_MAX_NCHANNELS": "16"},
			"buffsize-without-simple threads-are-default"},
		{"other people's variables", now, settings{"VLLM_USE_V1": "off", "NCCL_NEW": "1"}, settings{"VLLM_USE_V1": "off", "NCCL_NEW": "1"}, ""},
	}
}

func TestCanonical(t *testing.T) {
	fired := map[string]bool{}
	for _, c := range canonicalCases(t) {
		t.Run(c.name, func(t *testing.T) {
			before := maps.Clone(c.set)
			got, notes, err := nccl.Canonical(c.context, c.set)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("canonical settings differ:\n%s", diff)
			}
			var ids []string
			for _, note := range notes {
				ids = append(ids, note.Rule)
				fired[note.Rule] = true
				if text := note.String(); !strings.Contains(text, note.Variable) || !strings.Contains(text, note.Message) || note.Message == "" {
					t.Errorf("note says %q", text)
				}
			}
			if rules := strings.Join(ids, " "); rules != c.rules {
				t.Errorf("rules %q applied, want %q", rules, c.rules)
			}
			if diff := cmp.Diff(before, c.set); diff != "" {
				t.Errorf("the caller's settings changed:\n%s", diff)
			}
		})
	}
	changing := []nccl.Effect{nccl.Inert, nccl.Clamped, nccl.IsDefault, nccl.Alias}
	for _, rule := range nccl.Rules() {
		if slices.Contains(changing, rule.Effect) && !fired[rule.ID] {
			t.Errorf("rule %s is not shown by any case", rule.ID)
		}
	}
}

func TestCanonicalRefusesBadValues(t *testing.T) {
	_, _, err := nccl.Canonical(pci, settings{"NCCL_BUFFSIZE": "010", "NCCL_P2P_LEVEL": "sys", "NCCL_PROTO": "LL"})
	if err == nil || !strings.Contains(err.Error(), "NCCL_BUFFSIZE") || !strings.Contains(err.Error(), "NCCL_P2P_LEVEL") {
		t.Errorf("both faults must be told at once: %v", err)
	}
}

func TestRulesAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range nccl.Rules() {
		if seen[rule.ID] {
			t.Errorf("rule %s is listed twice", rule.ID)
		}
		seen[rule.ID] = true
		if rule.ID == "" || rule.Effect == "" || rule.When == "" || rule.Because == "" || rule.Source == "" {
			t.Errorf("rule %+v says too little", rule)
		}
	}
}

// anyContext draws facts, known or not.
func anyContext(t *rapid.T) nccl.Context {
	tri := rapid.SampledFrom([]nccl.Tri{nccl.Unknown, nccl.No, nccl.Yes})
	c := nccl.Context{
		NVLink: tri.Draw(t, "nvlink"), NVSwitch: tri.Draw(t, "nvswitch"),
		Farthest:          rapid.SampledFrom([]string{"", "NVL", "PIX", "PHB", "SYS"}).Draw(t, "farthest"),
		ComputeCapability: rapid.SampledFrom([]int{0, 60, 80, 90, 120}).Draw(t, "capability"),
		CPU:               rapid.SampledFrom([]nccl.CPU{nccl.UnknownCPU, nccl.IntelCPU, nccl.AMDCPU, nccl.OtherCPU}).Draw(t, "cpu"),
		Nodes:             rapid.IntRange(0, 2).Draw(t, "nodes"),
		Ranks:             rapid.SampledFrom([]int{0, 1, 2, 8}).Draw(t, "ranks"),
		Channels:          rapid.SampledFrom([]int{0, 2, 16}).Draw(t, "channels"),
		RingSimpleThreads: rapid.SampledFrom([]int{0, 256, 512}).Draw(t, "threads"),
		SendReceive:       rapid.Bool().Draw(t, "sends"), Windows: rapid.Bool().Draw(t, "windows"),
	}
	text := rapid.SampledFrom([]string{"", "2.12.12", "2.18.5", "2.20.5", "2.23.4", "2.26.2", "2.28.9", "2.30.7", "2.31.2"}).Draw(t, "version")
	if text != "" {
		c.Version, _ = nccl.ParseVersion(text)
	}
	return consistent(c)
}

// consistent removes what contradicts the links and the ranks.
func consistent(c nccl.Context) nccl.Context {
	switch {
	case c.NVLink == nccl.Yes && c.Farthest != "":
		c.Farthest = "NVL"
	case c.NVLink == nccl.No && c.Farthest == "NVL":
		c.Farthest = "PIX"
	}
	if c.NVLink != nccl.Yes && c.NVSwitch == nccl.Yes {
		c.NVSwitch = nccl.No
	}
	if c.Ranks == 1 {
		c.Nodes = min(c.Nodes, 1)
	}
	return c
}

// anySettings draws values that Canonicalize takes, unsafe ones included.
func anySettings(t *rapid.T) settings {
	values := map[string][]string{
		"NCCL_ALGO":              {"Tree", "Ring", "Tree,Ring", "NVLS", "^Tree", "^NVLSTree", "allreduce:Ring", "Tree,Ring;allreduce:Tree", "Ring,PAT", "reduce:Ring"},
		"NCCL_PROTO":             {"LL", "Simple", "LL128", "LL,Simple", "^LL128", "LL,LL128,Simple", "allreduce:LL", "^LL"},
		"NCCL_CTA_POLICY":        {"EFFICIENCY", "ZERO", "EFFICIENCY|ZERO", "1", "DEFAULT"},
		"NCCL_THREAD_THRESHOLDS": {"8 8 64 64 8 64", "4 8 64 64 8 64"},
		"NCCL_LAUNCH_MODE":       {"GROUP", "PARALLEL"},
	}
	numbers := []string{"0", "1", "2", "4", "16", "31", "32", "64", "100", "128", "512", "640", "4096", "65536", "131072", "524288", "4194304", "16777216"}
	set := settings{}
	for _, variable := range nccl.Variables() {
		if variable.Kind == nccl.Undescribed || !rapid.Bool().Draw(t, "set") {
			continue
		}
		choices := values[variable.Name]
		switch {
		case choices != nil:
		case len(variable.Values) > 0:
			choices = variable.Values
		case variable.Kind == nccl.Integer || variable.Kind == nccl.Bytes || variable.Kind == nccl.Switch:
			choices = numbers
		default:
			choices = []string{"text"}
		}
		value := rapid.SampledFrom(choices).Draw(t, variable.Name)
		if _, err := nccl.Canonicalize(variable.Name, value, nccl.Reading{Quoted: true, Unsafe: true}); err == nil {
			set[variable.Name] = value
		}
	}
	return set
}

// The canonical form of a canonical form is itself, and adding what was taken
// out changes nothing.
func TestCanonicalIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, set := anyContext(t), anySettings(t)
		once, notes, err := nccl.Canonical(c, set)
		if err != nil {
			t.Fatal(err)
		}
		twice, more, err := nccl.Canonical(c, once)
		if err != nil || len(more) > 0 {
			t.Fatalf("the canonical form changes again: %v, %v", more, err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("not idempotent:\n%s", diff)
		}
		again, sameNotes, _ := nccl.Canonical(c, set)
		if diff := cmp.Diff(once, again); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
		if diff := cmp.Diff(notes, sameNotes); diff != "" {
			t.Fatalf("two runs note different things:\n%s", diff)
		}
	})
}

// What the rules take away must not be judged: a canonical form that renders
// has no name that the version does not read.
func TestCanonicalLeavesNothingUnread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, set := anyContext(t), anySettings(t)
		canonical, _, err := nccl.Canonical(c, set)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range nccl.Check(c, canonical) {
			if problem.Rule == "never-read" {
				t.Fatalf("%v", problem)
			}
		}
	})
}

// forgetting makes some facts of a context unknown.
func forgetting(t *rapid.T, c nccl.Context) nccl.Context {
	forget := func(name string) bool { return rapid.Bool().Draw(t, "forget "+name) }
	if forget("version") {
		c.Version = nccl.Version{}
	}
	if forget("links") {
		c.NVLink = nccl.Unknown
	}
	if forget("switch") {
		c.NVSwitch = nccl.Unknown
	}
	if forget("place") {
		c.Nodes, c.Ranks, c.Farthest = 0, 0, ""
	}
	if forget("processors") {
		c.ComputeCapability, c.CPU = 0, nccl.UnknownCPU
	}
	if forget("log") {
		c.Channels, c.RingSimpleThreads = 0, 0
	}
	return c
}

// A rule that applies with few facts holds whatever the others turn out to be:
// reducing first with some facts and then with all gives the same as reducing
// with all.
func TestRulesHoldWhateverElseIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, set := anyContext(t), anySettings(t)
		first, _, err := nccl.Canonical(forgetting(t, c), set)
		if err != nil {
			t.Fatal(err)
		}
		detour, _, err := nccl.Canonical(c, first)
		if err != nil {
			t.Fatal(err)
		}
		direct, _, err := nccl.Canonical(c, set)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(direct, detour); diff != "" {
			t.Fatalf("%v\nthe detour differs:\n%s", set, diff)
		}
	})
}
