package nccl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// collectiveRules say which algorithm, protocol, thread and buffer settings
// act. Sources: src/graph/tuning.cc, src/enqueue.cc, src/init.cc (computeBuffSizes).
var collectiveRules = []Rule{
	{ID: "algorithms-of-pcie-node", Effect: Alias,
		When:    "one node without NVSwitch",
		Because: "only Ring and Tree exist there, and only the all-reduce has a choice",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (ncclTopoTuneModel), src/transport/nvls.cc",
		rewrite: rewritePCIAlgorithms},
	{ID: "algorithms-of-one-node", Effect: Alias,
		When:    "one node, and a list with NVLSTree, CollNetDirect, CollNetChain or PAT",
		Because: "these need more than one node",
		Source:  "NVIDIA/nccl src/graph/tuning.cc, src/init.cc",
		rewrite: rewriteOneNodeAlgorithms},
	{ID: "every-algorithm", Effect: IsDefault,
		When:    "NCCL_ALGO allows all algorithms of one node without NVSwitch",
		Because: "the cost model chooses among the same as without it",
		Source:  "NVIDIA/nccl src/graph/tuning.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_ALGO", "Tree,Ring") && s.pciNode(s.settings) && !s.explicitListMatters(), "NCCL_ALGO")
		}},
	{ID: "protocols-as-list", Effect: Alias,
		When:    "NCCL_PROTO is an exclusion",
		Because: "there are three protocols in every version, so that the rest can be named",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (parseList)",
		rewrite: func(s situation) []rewrite {
			e, ok := s.protocols().single()
			if !ok || !e.exclude {
				return nil
			}
			return replace("NCCL_PROTO", protocolGrammar.print(entry{function: every, members: e.allowed(protocolGrammar)}))
		}},
	{ID: "protocols-without-ll128", Effect: IsDefault,
		When:    "NCCL_PROTO=LL,Simple where NCCL does not enable LL128 by itself",
		Because: "it is what an absent NCCL_PROTO allows there",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (LL128 test)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_PROTO", "LL,Simple") && LL128Automatic(s.Context) == No && !s.wantsEfficiency(), "NCCL_PROTO")
		}},
	{ID: "protocols-with-ll128", Effect: IsDefault,
		When:    "NCCL_PROTO=LL,LL128,Simple where NCCL enables LL128 by itself",
		Because: "it is what an absent NCCL_PROTO allows there",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (LL128 test)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_PROTO", "LL,LL128,Simple") && LL128Automatic(s.Context) == Yes && !s.wantsEfficiency(), "NCCL_PROTO")
		}},
	{ID: "efficiency-policy-overruled", Effect: Inert, Versions: since(release(27)),
		When:    "NCCL_CTA_POLICY=EFFICIENCY beside NCCL_ALGO, NCCL_PROTO or a tuner plugin",
		Because: "NCCL ignores the policy then",
		Source:  "NVIDIA/nccl src/enqueue.cc",
		rewrite: func(s situation) []rewrite {
			overruled := s.has("NCCL_ALGO") || s.has("NCCL_PROTO") || s.has("NCCL_TUNER_PLUGIN") && !s.is("NCCL_TUNER_PLUGIN", "none")
			return s.dropIf(overruled && s.is("NCCL_CTA_POLICY", "EFFICIENCY"), "NCCL_CTA_POLICY")
		}},
	{ID: "buffsize-without-simple", Effect: Inert,
		When:    "NCCL_PROTO leaves no Simple, and the application has collectives only",
		Because: "NCCL_BUFFSIZE is the buffer of protocol Simple; it only takes memory",
		Source:  "NVIDIA/nccl src/init.cc (computeBuffSizes), src/enqueue.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(!s.SendReceive && !s.usable().has(simple), "NCCL_BUFFSIZE")
		}},
	{ID: "ll-buffsize-without-ll", Effect: Inert,
		When:    "NCCL_PROTO leaves no LL, and the application has collectives only",
		Because: "NCCL_LL_BUFFSIZE is the buffer of protocol LL; it only takes memory",
		Source:  "NVIDIA/nccl src/init.cc (computeBuffSizes), src/enqueue.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(!s.SendReceive && !s.usable().has(ll), "NCCL_LL_BUFFSIZE")
		}},
	{ID: "ll128-settings-without-ll128", Effect: Inert,
		When:    "LL128 is excluded, or not enabled by NCCL itself",
		Because: "they act on protocol LL128 only",
		Source:  "NVIDIA/nccl src/graph/tuning.cc, src/init.cc (computeBuffSizes)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(!s.usable().has(ll128), "NCCL_LL128_BUFFSIZE", "NCCL_LL128_NTHREADS")
		}},
	{ID: "threads-with-ll128-only", Effect: Inert,
		When:    "NCCL_PROTO=LL128",
		Because: "NCCL_NTHREADS acts on LL and Simple, LL128 has its own variable",
		Source:  "NVIDIA/nccl src/graph/tuning.cc",
		rewrite: func(s situation) []rewrite { return s.dropIf(s.usable() == setOf(ll128), "NCCL_NTHREADS") }},
	{ID: "threads-are-default", Effect: IsDefault,
		When:    "NCCL_NTHREADS=512 without Simple, from 2.31 on, or where the default of Ring with Simple is 512",
		Because: "512 is the default of Ring and Tree, but for Ring with Simple on slow PCIe up to 2.30",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (simpleDefaultThreads)",
		rewrite: func(s situation) []rewrite {
			same := !s.usable().has(simple) || s.Version.AtLeast(release(31)) || s.RingSimpleThreads == 512
			return s.dropIf(s.is("NCCL_NTHREADS", "512") && same, "NCCL_NTHREADS")
		}},
	{ID: "thresholds-are-default", Effect: IsDefault,
		When:    "NCCL_THREAD_THRESHOLDS has the values for this number of ranks",
		Because: "they are what NCCL takes by itself",
		Source:  "NVIDIA/nccl src/graph/tuning.cc",
		rewrite: func(s situation) []rewrite {
			own := fmt.Sprintf("8 8 64 %d 8 64", 8*s.Ranks)
			return s.dropIf(s.Ranks > 0 && s.is("NCCL_THREAD_THRESHOLDS", own), "NCCL_THREAD_THRESHOLDS")
		}},
	{ID: "send-chunk-above-step", Effect: Clamped, Versions: since(release(19)),
		When:    "a send-and-receive chunk above an eighth of NCCL_BUFFSIZE",
		Because: "NCCL takes an eighth of the buffer at most, of the default too",
		Source:  "NVIDIA/nccl src/init.cc (computeBuffSizes)",
		rewrite: rewriteSendChunks},
}

func (s situation) algorithms() intent { return s.intent("NCCL_ALGO", algorithmGrammar) }
func (s situation) protocols() intent  { return s.intent("NCCL_PROTO", protocolGrammar) }

// intent parses a variable; absent or unreadable gives one without entries.
func (s situation) intent(name string, g grammar) intent {
	in, fault := parseIntent(g, s.settings[name])
	if fault != nil {
		return intent{grammar: g}
	}
	return in
}

// usable are the protocols that some collective may use.
func (s situation) usable() set {
	automatic := protocolGrammar.all()
	if LL128Automatic(s.Context) == No {
		automatic = setOf(ll, simple)
	}
	// 2.19 to 2.21 fall back to Ring with every protocol for a collective
	// whose algorithms are all excluded, as a list without Ring does.
	fallback := Range{release(19), release(22)}
	if !s.algorithms().of(allReduce, algorithmGrammar.all()).has(ring) && fallback.Covers(s.Version) != No {
		return protocolGrammar.all()
	}
	in := s.protocols()
	if len(in.entries) == 0 {
		return automatic
	}
	var protocols set
	for function := range implemented {
		protocols |= in.of(function, automatic)
	}
	return protocols
}

// explicitListMatters: naming a collective has a side effect, although the
// list allows the same as none. 2.31 then switches symmetric kernels off, and
// the efficiency policy is ignored beside any list.
func (s situation) explicitListMatters() bool {
	return s.Windows && !s.Version.Before(release(31)) || s.wantsEfficiency()
}

func (s situation) wantsEfficiency() bool {
	return slices.Contains(strings.Split(s.settings["NCCL_CTA_POLICY"], "|"), "EFFICIENCY")
}

// rewritePCIAlgorithms keeps what the list says of Ring and Tree for the
// all-reduce. Every other function has Ring alone there, so that an entry for
// it either allows Ring and changes nothing, or fails.
func rewritePCIAlgorithms(s situation) []rewrite {
	in := s.algorithms()
	if len(in.entries) == 0 || !s.pciNode(s.settings) {
		return nil
	}
	present := setOf(tree, ring)
	for function := broadcast; function < allReduce; function++ {
		if !in.of(function, present).has(ring) {
			return nil
		}
	}
	chosen := in.of(allReduce, present) & present
	text := algorithmGrammar.print(entry{function: every, members: chosen})
	if chosen == 0 || text == s.settings["NCCL_ALGO"] {
		return nil
	}
	return replace("NCCL_ALGO", text)
}

// rewriteOneNodeAlgorithms takes absent algorithms out of a plain list.
func rewriteOneNodeAlgorithms(s situation) []rewrite {
	e, ok := s.algorithms().single()
	if !ok || s.Nodes != 1 {
		return nil
	}
	absent := setOf(nvlsTree, collNetDirect, collNetChain)
	if !s.is("NCCL_PAT_ENABLE", "1") {
		absent |= setOf(pat)
	}
	rest := e.members.without(absent)
	switch {
	case rest == e.members:
		return nil
	case rest == 0 && e.exclude && !s.explicitListMatters():
		return s.drop("NCCL_ALGO")
	case rest == 0:
		return nil
	}
	e.members = rest
	return replace("NCCL_ALGO", algorithmGrammar.print(e))
}

// rewriteSendChunks clamps to an eighth of the buffer. Where the default is
// clamped to the same, the variable says nothing.
func rewriteSendChunks(s situation) []rewrite {
	buffer, ok := s.number("NCCL_BUFFSIZE")
	if !ok {
		buffer = 4194304
	}
	step := buffer / 8
	var changes []rewrite
	for _, name := range []string{"NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_PCI_CHUNKSIZE"} {
		chunk, set := s.number(name)
		fallback, _ := find(name).DefaultAt(s.Version)
		switch {
		case !set || chunk < step || step == 0:
		case asRead(fallback) >= step:
			changes = append(changes, rewrite{name: name})
		case chunk > step:
			changes = append(changes, rewrite{name: name, value: strconv.FormatInt(step, 10)})
		}
	}
	return changes
}
