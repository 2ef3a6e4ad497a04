package nccl

import (
	"fmt"
	"slices"
	"strconv"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// problemRules judge canonical values.
var problemRules = []Rule{
	{ID: "p2p-and-shm-disabled", Effect: Forbidden,
		When:    "neither direct traffic nor shared memory is left",
		Because: "all traffic would go over the loopback network, or there is no transport at all",
		Source:  "NVIDIA/nccl src/transport.cc (selectTransport)",
		judge: func(s situation) []finding {
			if !s.is("NCCL_SHM_DISABLE", "1") || !s.is("NCCL_P2P_DISABLE", "1") && !s.is("NCCL_P2P_LEVEL", "LOC") {
				return nil
			}
			return found("NCCL_P2P_DISABLE and NCCL_SHM_DISABLE together leave the loopback network or no transport", "remove NCCL_SHM_DISABLE",
				"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
		}},
	{ID: "ll128-by-force", Effect: Unsafe,
		When:    "NCCL_PROTO leaves LL128 enabled where NCCL is not known to enable it by itself",
		Because: "an explicit list replaces NCCL's own safety test, and untested hardware corrupts data silently",
		Source:  "NVIDIA/nccl src/graph/tuning.cc; NVIDIA/nccl#281, #596, #740, #786, #831, #1081, #1261",
		judge:   judgeLL128},
	{ID: "fallback-may-pick-ll128", Effect: Unsafe, Versions: Range{release(19), release(22)},
		When:    "NCCL_ALGO lacks Ring on 2.19 to 2.21 where LL128 is not known to be safe",
		Because: "other collectives fall back to Ring with every protocol, LL128 and excluded ones included",
		Source:  "NVIDIA/nccl src/enqueue.cc, 2.19 to 2.21",
		judge: func(s situation) []finding {
			if !s.algorithms().allReduceOnly() || LL128Automatic(s.Context) == Yes {
				return nil
			}
			return found(fmt.Sprintf("NCCL_ALGO=%s makes the other collectives fall back to Ring with every protocol, LL128 included", s.settings["NCCL_ALGO"]),
				"use NCCL 2.22 or later", "NCCL_ALGO")
		}},
	{ID: "algorithm-missing", Effect: Infeasible,
		When:    "NCCL_ALGO leaves a collective nothing that exists on this machine",
		Because: "the first such call fails with invalid usage from 2.24 on; before, Ring runs instead and nothing is learned",
		Source:  "NVIDIA/nccl src/enqueue.cc (topoGetAlgoInfo), src/graph/tuning.cc; pytorch/pytorch#163063",
		judge:   judgeAlgorithms},
	{ID: "algorithm-needs-simple", Effect: Infeasible,
		When:    "NCCL_ALGO leaves the all-reduce only NVLS or CollNet, and NCCL_PROTO no Simple",
		Because: "only Ring and Tree have LL and LL128",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (ncclTopoTuneModel)",
		judge: func(s situation) []finding {
			algorithms := s.algorithms().of(allReduce, algorithmGrammar.all())
			protocols := s.protocols().of(allReduce, protocolGrammar.all())
			if algorithms&setOf(tree, ring) != 0 || protocols.has(simple) {
				return nil
			}
			return found(fmt.Sprintf("NCCL_ALGO=%s has protocol Simple only, and NCCL_PROTO=%s excludes it", s.settings["NCCL_ALGO"], s.settings["NCCL_PROTO"]),
				"allow Simple, Ring or Tree", "NCCL_ALGO", "NCCL_PROTO")
		}},
	{ID: "functions-need-2.24", Effect: Infeasible, Versions: before(perFunction),
		When:    "an entry per function before 2.24",
		Because: "the old parser takes the whole text for one unknown word",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (parseList), up to 2.23",
		judge: func(s situation) []finding {
			var findings []finding
			for _, renderer := range renderers {
				name := renderer.name
				if in := s.intent(name, find(name).grammar()); len(in.entries) > 0 {
					if _, reason := renderer.write(s.Context, in); reason != "" {
						findings = append(findings, found(fmt.Sprintf("%s=%s: %s", name, s.settings[name], reason), "", name)...)
					}
				}
			}
			return findings
		}},
	{ID: "rows-emptied", Effect: Infeasible, Versions: since(release(31)),
		When:    "NCCL_SYM_KERNEL beside NCCL_PROTO without NCCL_ALGO, from 2.31 on",
		Because: "NCCL_SYM_KERNEL empties the algorithm row of every collective, and NCCL_PROTO puts the rows in use",
		Source:  "NVIDIA/nccl src/tuning/tuning.cc, 2.31; vllm-project/vllm#58179",
		judge: func(s situation) []finding {
			if !s.has("NCCL_SYM_KERNEL") || !s.has("NCCL_PROTO") || s.has("NCCL_ALGO") {
				return nil
			}
			return found("NCCL_SYM_KERNEL and NCCL_PROTO together leave collectives without an algorithm", "set NCCL_ALGO too, or remove one of them",
				"NCCL_PROTO", "NCCL_SYM_KERNEL")
		}},
	{ID: "nvls-forced", Effect: Unsafe, Versions: since(release(17)),
		When:    "NCCL_NVLS_ENABLE=1 without NVSwitch",
		Because: "1 skips the test for multicast support, and init may fail",
		Source:  "NVIDIA/nccl src/transport/nvls.cc (ncclNvlsInit)",
		judge: func(s situation) []finding {
			if !s.noNVSwitch() || !s.is("NCCL_NVLS_ENABLE", "1") {
				return nil
			}
			return found("NCCL_NVLS_ENABLE=1 forces NVLS on a machine without NVSwitch", "remove it", "NCCL_NVLS_ENABLE")
		}},
	{ID: "nvls-with-shared-gpu", Effect: Infeasible,
		When:    "NCCL_NVLS_ENABLE=1 beside NCCL_MULTI_RANK_GPU_ENABLE=1",
		Because: "NVLS does not work with several ranks on a GPU",
		Source:  "docs/userguide/source/env.rst (NCCL_MULTI_RANK_GPU_ENABLE)",
		judge: func(s situation) []finding {
			if !s.is("NCCL_NVLS_ENABLE", "1") || !s.is("NCCL_MULTI_RANK_GPU_ENABLE", "1") {
				return nil
			}
			return found("forced NVLS fails with several ranks on a GPU", "set NCCL_NVLS_ENABLE to 0 or 2", "NCCL_MULTI_RANK_GPU_ENABLE", "NCCL_NVLS_ENABLE")
		}},
	{ID: "stream-ordering-with-mixing", Effect: Infeasible,
		When:    "NCCL_GRAPH_STREAM_ORDERING=0 while graph mixing is on",
		Because: "NCCL refuses the two together",
		Source:  "docs/userguide/source/env.rst (NCCL_GRAPH_STREAM_ORDERING)",
		judge: func(s situation) []finding {
			if !s.is("NCCL_GRAPH_STREAM_ORDERING", "0") || s.is("NCCL_GRAPH_MIXING_SUPPORT", "0") {
				return nil
			}
			return found("NCCL_GRAPH_STREAM_ORDERING=0 needs NCCL_GRAPH_MIXING_SUPPORT=0", "set both or neither",
				"NCCL_GRAPH_MIXING_SUPPORT", "NCCL_GRAPH_STREAM_ORDERING")
		}},
	{ID: "minimum-above-maximum", Effect: Warning,
		When:    "NCCL_MIN_NCHANNELS above a channel maximum",
		Because: "channels are cut to the maximum first and then doubled up to the minimum",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclTopoPostset)",
		judge: func(s situation) []finding {
			least, ok := s.number("NCCL_MIN_NCHANNELS")
			var findings []finding
			for _, name := range []string{"NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"} {
				if most, set := s.number(name); ok && set && least > most {
					findings = append(findings, found(fmt.Sprintf("NCCL_MIN_NCHANNELS=%d wins over %s=%d", least, name, most), "", "NCCL_MIN_NCHANNELS", name)...)
				}
			}
			return findings
		}},
	{ID: "unsafe-variable", Effect: Unsafe,
		When:    "a variable that can break or falsify a run is set to other than its default",
		Because: "the catalogue names the reason for each",
		Source:  "docs/userguide/source/env.rst and the issues named in the catalogue",
		judge:   judgeUnsafeVariables},
	{ID: "unsafe-value", Effect: Unsafe,
		When:    "a number outside the range that is known to give right sums",
		Because: "the catalogue names the reason for each",
		Source:  "NVIDIA/nccl#698, #1739 and the sources named in the catalogue",
		judge:   judgeUnsafeValues},
	{ID: "never-read", Effect: Warning,
		When:    "the version does not read the variable",
		Because: "NCCL does not report it",
		Source:  "NVIDIA/nccl release notes; docs/userguide/source/env.rst",
		judge:   judgeNeverRead},
}

func judgeLL128(s situation) []finding {
	in := s.protocols()
	automatic := LL128Automatic(s.Context)
	forced := slices.ContainsFunc(in.entries, func(e entry) bool { return e.allowed(protocolGrammar).has(ll128) })
	if !forced || automatic == Yes {
		return nil
	}
	where := "where NCCL does not enable it by itself"
	if automatic == Unknown {
		where = "and it is not known whether NCCL would enable it by itself"
	}
	return found(fmt.Sprintf("NCCL_PROTO=%s forces LL128 %s: results can be silently wrong", s.settings["NCCL_PROTO"], where),
		"use LL, Simple, LL,Simple or ^LL128", "NCCL_PROTO")
}

func judgeAlgorithms(s situation) []finding {
	in := s.algorithms()
	if len(in.entries) == 0 {
		return nil
	}
	for function, possible := range implemented {
		exists := possible & s.algorithmsThatMayExist()
		left := in.of(function, possible)
		if left&exists == 0 {
			return found(fmt.Sprintf("NCCL_ALGO=%s leaves %s without an algorithm: this machine has %s",
				s.settings["NCCL_ALGO"], functionNames[function], orList(algorithmGrammar.namesOf(exists))), "", "NCCL_ALGO")
		}
	}
	return nil
}

// algorithmsThatMayExist excludes those that the known facts rule out.
func (s situation) algorithmsThatMayExist() set {
	if s.pciNode(s.settings) {
		return setOf(tree, ring)
	}
	algorithms := algorithmGrammar.all()
	if s.noNVSwitch() || s.ComputeCapability != 0 && s.ComputeCapability < 90 || s.is("NCCL_NVLS_ENABLE", "0") || s.Version.Before(release(17)) {
		algorithms = algorithms.without(setOf(nvls, nvlsTree))
	}
	if s.noNVSwitch() {
		algorithms = algorithms.without(setOf(collNetDirect))
	}
	if s.Nodes == 1 {
		algorithms = algorithms.without(setOf(nvlsTree, collNetDirect, collNetChain))
	}
	if s.Version.Before(release(23)) {
		algorithms = algorithms.without(setOf(pat))
	}
	return algorithms
}

func judgeUnsafeVariables(s situation) []finding {
	var findings []finding
	for _, name := range sortedNames(s.settings) {
		variable := find(name)
		if variable == nil || variable.Unsafe == "" {
			continue
		}
		if fallback, known := variable.DefaultAt(s.Version); known && s.settings[name] == fallback {
			continue
		}
		findings = append(findings, found(fmt.Sprintf("%s is unsafe to set: %s", name, variable.Unsafe), "", name)...)
	}
	return findings
}

func judgeUnsafeValues(s situation) []finding {
	var findings []finding
	for _, name := range sortedNames(s.settings) {
		variable := find(name)
		n, ok := s.number(name)
		if variable == nil || !ok || variable.Safe.contains(n) {
			continue
		}
		findings = append(findings, found(fmt.Sprintf("%s=%d is not known to be safe: %s", name, n, variable.Safe.Reason), "use "+variable.Safe.Allowed, name)...)
	}
	return findings
}

func judgeNeverRead(s situation) []finding {
	var findings []finding
	for _, name := range sortedNames(s.settings) {
		variable := find(name)
		if variable == nil || variable.Versions.Covers(s.Version) != No {
			continue
		}
		suggestion := "remove it"
		if variable.Successor != "" {
			suggestion = "use " + variable.Successor
		}
		findings = append(findings, found(fmt.Sprintf("NCCL %s does not read %s (%s)", s.Version, name, variable.Versions), suggestion, name)...)
	}
	return findings
}
