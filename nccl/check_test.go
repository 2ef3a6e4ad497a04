package nccl_test

import (
	"slices"
	"strings"
	"testing"

	"nocturne/nccl"
)

func TestCheck(t *testing.T) {
	now := at(t, pci, "2.28.9")
	hopper := at(t, nvswitch, "2.28.9")
	ampere := hopper
	ampere.ComputeCapability = 80
	blackwell := at(t, nvswitch, "2.26.2")
	blackwell.ComputeCapability = 103
	fired := map[string]bool{}
	for _, c := range []struct {
		name    string
		context nccl.Context
		set     settings
		want    string // rule:effect, separated by blanks
		says    string
	}{
		{"nothing wrong", now, settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "Tree", "NCCL_NTHREADS": "128", "NCCL_BUFFSIZE": "1048576"}, "", ""},
		{"no transport left", nccl.Context{}, settings{"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, "p2p-and-shm-disabled:forbidden unsafe-variable:unsafe", "loopback"},
		{"no transport left by level", nccl.Context{}, settings{"NCCL_P2P_LEVEL": "LOC", "NCCL_SHM_DISABLE": "1"}, "p2p-and-shm-disabled:forbidden unsafe-variable:unsafe", "loopback"},
		{"SHM disabled", now, settings{"NCCL_SHM_DISABLE": "1"}, "unsafe-variable:unsafe", "loopback network"},
		{"LL128 on PCIe", now, settings{"NCCL_PROTO": "LL128"}, "ll128-by-force:unsafe", "silently wrong"},
		{"LL128 left on", now, settings{"NCCL_PROTO": "^LL"}, "ll128-by-force:unsafe", "^LL128"},
		{"LL128 for the all-reduce", now, settings{"NCCL_PROTO": "allreduce:LL128"}, "ll128-by-force:unsafe", "silently wrong"},
		{"LL128, platform unknown", nccl.Context{}, settings{"NCCL_PROTO": "LL,LL128,Simple"}, "ll128-by-force:unsafe", "not known"},
		{"LL128 on Hopper", hopper, settings{"NCCL_PROTO": "LL128"}, "", ""},
		{"LL128 on a chip the version does not list", blackwell, settings{"NCCL_PROTO": "LL128"}, "ll128-by-force:unsafe", "by itself"},
		{"no LL128", now, settings{"NCCL_PROTO": "^LL128"}, "", ""},
		{"fallback", at(t, pci, "2.20.5"), settings{"NCCL_ALGO": "Tree"}, "fallback-may-pick-ll128:unsafe", "every protocol"},
		{"fallback on Ampere", func() nccl.Context { c := ampere; c.Version = version(t, "2.20.5"); return c }(), settings{"NCCL_ALGO": "Tree"}, "", ""},
		{"NVLS on PCIe", now, settings{"NCCL_ALGO": "NVLS"}, "algorithm-missing:infeasible", "Tree or Ring"},
		{"NVLS on Ampere", ampere, settings{"NCCL_ALGO": "NVLS"}, "algorithm-missing:infeasible", "allreduce"},
		{"NVLS switched off", hopper, settings{"NCCL_ALGO": "NVLS", "NCCL_NVLS_ENABLE": "0"}, "algorithm-missing:infeasible", ""},
		{"NVLS on Hopper", hopper, settings{"NCCL_ALGO": "NVLS"}, "", ""},
		{"NVLS, platform unknown", nccl.Context{}, settings{"NCCL_ALGO": "NVLS"}, "", ""},
		{"tree for the all-gather", now, settings{"NCCL_ALGO": "allgather:Tree"}, "algorithm-missing:infeasible", "allgather"},
		{"NVLS without Simple", hopper, settings{"NCCL_ALGO": "NVLS", "NCCL_PROTO": "LL"}, "algorithm-needs-simple:infeasible", "Simple"},
		{"functions too early", at(t, pci, "2.23.4"), settings{"NCCL_PROTO": "allreduce:LL", "NCCL_ALGO": "reduce:Ring"}, "functions-need-2.24:infeasible functions-need-2.24:infeasible", "2.24"},
		{"rows emptied", func() nccl.Context { c := at(t, nvswitch, "2.31.2"); c.Windows = true; return c }(), settings{"NCCL_SYM_KERNEL": "AllReduce_AGxLL_R", "NCCL_PROTO": "LL"}, "rows-emptied:infeasible", "NCCL_ALGO"},
		{"NVLS forced", now, settings{"NCCL_NVLS_ENABLE": "1"}, "nvls-forced:unsafe", "without NVSwitch"},
		{"NVLS with a shared GPU", at(t, nvswitch, "2.30.7"), settings{"NCCL_NVLS_ENABLE": "1", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}, "nvls-with-shared-gpu:infeasible unsafe-variable:unsafe", ""},
		{"stream ordering", at(t, pci, "2.30.7"), settings{"NCCL_GRAPH_STREAM_ORDERING": "0"}, "stream-ordering-with-mixing:infeasible unsafe-variable:unsafe", ""},
		{"stream ordering without mixing", at(t, pci, "2.30.7"), settings{"NCCL_GRAPH_STREAM_ORDERING": "0", "NCCL_GRAPH_MIXING_SUPPORT": "0"}, "unsafe-variable:unsafe unsafe-variable:unsafe", ""},
		{"graph mixing at its default", now, settings{"NCCL_GRAPH_MIXING_SUPPORT": "1"}, "", ""},
		{"minimum above maximum", now, settings{"NCCL_MIN_NCHANNELS": "16", "NCCL_MAX_NCHANNELS": "4"}, "minimum-above-maximum:warning", "wins over"},
		{"identity", now, settings{"NCCL_HOSTID": "a"}, "unsafe-variable:unsafe", "one host"},
		{"threads", now, settings{"NCCL_NTHREADS": "480"}, "unsafe-value:unsafe", "64, 128, 256 or 512"},
		{"buffer", now, settings{"NCCL_BUFFSIZE": "1000000"}, "unsafe-value:unsafe", "powers of two"},
		{"removed", now, settings{"NCCL_LL_THRESHOLD": "1024"}, "never-read:warning", "use NCCL_PROTO"},
		{"not yet there", at(t, pci, "2.12.12"), settings{"NCCL_CUMEM_ENABLE": "1"}, "never-read:warning", "2.18.0 and later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, text []string
			for _, problem := range nccl.Check(c.context, c.set) {
				fired[problem.Rule] = true
				got = append(got, problem.Rule+":"+string(problem.Effect))
				text = append(text, problem.String())
				if len(problem.Variables) == 0 || problem.Message == "" || problem.Source == "" {
					t.Errorf("problem says too little: %+v", problem)
				}
			}
			if joined := strings.Join(got, " "); joined != c.want {
				t.Errorf("problems %q, want %q", joined, c.want)
			}
			if joined := strings.Join(text, "\n"); !strings.Contains(joined, c.says) {
				t.Errorf("%q does not say %q", joined, c.says)
			}
		})
	}
	raw := checkRaw(t)
	for _, rule := range nccl.Rules() {
		problem := slices.Contains([]nccl.Effect{nccl.Infeasible, nccl.Forbidden, nccl.Unsafe, nccl.Warning}, rule.Effect)
		if problem && !fired[rule.ID] && !raw[rule.ID] {
			t.Errorf("rule %s is not shown by any case", rule.ID)
		}
	}
}

// checkRaw runs the cases of CheckEnvironment and returns the rules they show.
func checkRaw(t *testing.T) map[string]bool {
	now := at(t, pci, "2.28.9")
	next := at(t, pci, "2.31.2")
	old := at(t, pci, "2.23.4")
	fired := map[string]bool{}
	for _, c := range []struct {
		name    string
		context nccl.Context
		set     settings
		want    string
		says    string
	}{
		{"rendered", now, settings{"NCCL_ALGO": "ring,tree;allreduce:tree", "NCCL_PROTO": "LL", "NCCL_NTHREADS": "128"}, "", ""},
		{"rendered for 2.31", next, settings{"NCCL_ALGO": "ring,tree;allreduce:tree", "NCCL_PROTO": "LL"}, "", ""},
		{"F10 tree for everything", now, settings{"NCCL_ALGO": "Tree"}, "collective-without-algorithm:infeasible", "leaves broadcast without"},
		{"tree for everything, once", old, settings{"NCCL_ALGO": "Tree"}, "", ""},
		{"unknown word", now, settings{"NCCL_ALGO": "bogus"}, "unrecognized-token:infeasible", `"bogus"`},
		{"unknown word, once", old, settings{"NCCL_PROTO": "bogus"}, "", ""},
		{"functions, once", old, settings{"NCCL_PROTO": "allreduce:LL"}, "functions-not-understood:infeasible functions-need-2.24:infeasible", "does not understand"},
		{"prefixed algorithm beside a protocol", next, settings{"NCCL_ALGO": "allreduce:tree", "NCCL_PROTO": "Simple"}, "collective-left-out:infeasible", "names broadcast"},
		{"prefixed algorithm beside a protocol, once", now, settings{"NCCL_ALGO": "allreduce:tree", "NCCL_PROTO": "Simple"}, "", ""},
		{"both prefixed", next, settings{"NCCL_ALGO": "allreduce:tree", "NCCL_PROTO": "allreduce:Simple"}, "", ""},
		{"F06 names", now, settings{"CCL_NET_GDR_LEVEL": "PHB", "NCCL_ALGOS": "Ring", "NCCL_QUITE_NEW": "1", "PATH": "/bin"}, "unknown-name:warning unknown-name:warning unknown-name:warning", "did you mean NCCL_ALGO?"},
		{"F06 level", now, settings{"NCCL_P2P_LEVEL": "sys"}, "level-misread:warning", "write SYS"},
		{"no level at all", now, settings{"NCCL_P2P_LEVEL": "far"}, "level-misread:warning", "remove it"},
		{"F01 suffix", now, settings{"NCCL_BUFFSIZE": "16M"}, "number-misread:warning", "as 16; write 16777216"},
		{"F01 exponent", now, settings{"NCCL_BUFFSIZE": "1.6777216e+07"}, "number-misread:warning", "as 1; write 16777216"},
		{"octal", now, settings{"NCCL_MAX_NCHANNELS": "010"}, "number-misread:warning", "as 8"},
		{"word", now, settings{"NCCL_P2P_DISABLE": "true"}, "number-misread:warning", "as 0"},
		{"hex is fine", now, settings{"NCCL_BUFFSIZE": "0x100000"}, "", ""},
		{"empty is absent", now, settings{"NCCL_BUFFSIZE": "", "NCCL_ALGO": ""}, "", ""},
		{"and what Check says", now, settings{"NCCL_PROTO": "ll128"}, "ll128-by-force:unsafe", ""},
	} {
		t.Run("raw "+c.name, func(t *testing.T) {
			var got, text []string
			for _, problem := range nccl.CheckEnvironment(c.context, c.set) {
				fired[problem.Rule] = true
				got = append(got, problem.Rule+":"+string(problem.Effect))
				text = append(text, problem.String())
			}
			if joined := strings.Join(got, " "); joined != c.want {
				t.Errorf("problems %q, want %q", joined, c.want)
			}
			if joined := strings.Join(text, "\n"); !strings.Contains(joined, c.says) {
				t.Errorf("%q does not say %q", joined, c.says)
			}
		})
	}
	return fired
}

func TestLL128Automatic(t *testing.T) {
	for _, c := range []struct {
		version    string
		capability int
		want       nccl.Tri
	}{
		{"2.24.3", 90, nccl.Yes}, {"2.24.3", 100, nccl.No}, {"2.26.2", 120, nccl.Yes}, {"2.26.2", 103, nccl.No}, {"2.27.3", 103, nccl.Yes}, {"2.27.3", 60, nccl.No},
	} {
		context := at(t, nvswitch, c.version)
		context.ComputeCapability = c.capability
		if got := nccl.LL128Automatic(context); got != c.want {
			t.Errorf("%s on %d: %v, want %v", c.version, c.capability, got, c.want)
		}
	}
	if got := nccl.LL128Automatic(pci); got != nccl.No {
		t.Errorf("without NVLink: %v", got)
	}
	if got := nccl.LL128Automatic(nccl.Context{}); got != nccl.Unknown {
		t.Errorf("with nothing known: %v", got)
	}
	several := at(t, nvswitch, "2.28.9")
	several.Nodes = 2
	if got := nccl.LL128Automatic(several); got != nccl.Unknown {
		t.Errorf("on two nodes: %v", got)
	}
}

func TestDefaultP2PLevel(t *testing.T) {
	for _, c := range []struct {
		version string
		cpu     nccl.CPU
		ranks   int
		want    string
	}{
		{"2.22.3", nccl.IntelCPU, 8, "PXB"}, {"2.22.3", nccl.AMDCPU, 8, "SYS"}, {"2.22.3", nccl.OtherCPU, 8, "SYS"},
		{"2.23.4", nccl.AMDCPU, 2, "SYS"}, {"2.23.4", nccl.AMDCPU, 4, "PXB"}, {"2.28.9", nccl.OtherCPU, 2, "PXB"}, {"2.28.9", nccl.ArmCPU, 2, "PXB"},
		{"2.28.9", nccl.UnknownCPU, 2, ""}, {"2.28.9", nccl.AMDCPU, 0, ""},
	} {
		got, known := nccl.DefaultP2PLevel(nccl.Context{Version: version(t, c.version), CPU: c.cpu, Ranks: c.ranks, Nodes: 1})
		if got != c.want || known != (c.want != "") {
			t.Errorf("%s, %s, %d GPUs: %q, %v; want %q", c.version, c.cpu, c.ranks, got, known, c.want)
		}
	}
}
