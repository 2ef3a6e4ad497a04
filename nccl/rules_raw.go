package nccl

import (
	"fmt"
	"slices"
	"strings"
)

// CheckEnvironment returns what is wrong with an environment as NCCL itself
// will read it: the text of a running server, of a configuration file, or of
// Render. Names are judged too. Where values are well formed, the problems of
// Check follow.
func CheckEnvironment(c Context, environment map[string]string) []Problem {
	problems := judge(situation{Context: c, settings: environment}, true)
	canonical := map[string]string{}
	for name, value := range environment {
		if text, err := Canonicalize(name, value, Reading{Quoted: true, Unsafe: true}); err == nil && find(name) != nil {
			canonical[name] = text
		}
	}
	return append(problems, Check(c, canonical)...)
}

// rawRules judge text. Sources: src/misc/param.cc, src/graph/tuning.cc.
var rawRules = []Rule{
	{ID: "unknown-name", Effect: Warning, raw: true,
		When:    "a name that NCCL does not have, or one or two letters away from one",
		Because: "NCCL never reports an unknown name",
		Source:  "NVIDIA/nccl src/misc/param.cc; NERSC/podman-hpc#136",
		judge: func(s situation) []finding {
			var findings []finding
			for _, name := range sortedNames(s.settings) {
				switch recognition, nearest := Recognize(name); recognition {
				case NearName:
					findings = append(findings, found(name+" is no variable of NCCL and has no effect", "did you mean "+nearest+"?", name)...)
				case UnknownName:
					findings = append(findings, found(name+" is not known to this catalogue and may have no effect", "", name)...)
				}
			}
			return findings
		}},
	{ID: "number-misread", Effect: Warning, raw: true,
		When:    "an integer that is not written in plain decimal",
		Because: "NCCL reads with strtoll and drops what it does not understand",
		Source:  "NVIDIA/nccl src/misc/param.cc (ncclLoadParam)",
		judge:   judgeNumbers},
	{ID: "level-misread", Effect: Warning, raw: true,
		When:    "a distance that is not exactly upper case",
		Because: "NCCL ignores it in silence",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclGetLevel)",
		judge: func(s situation) []finding {
			var findings []finding
			for _, name := range sortedNames(s.settings) {
				variable, value := find(name), s.settings[name]
				if variable == nil || variable.Kind != Level || slices.Contains(levels, value) || value != "" && value[0] >= '0' && value[0] <= '9' {
					continue
				}
				suggestion := "remove it"
				if upper := strings.ToUpper(strings.TrimSpace(value)); slices.Contains(levels, upper) {
					suggestion = "write " + upper
				}
				findings = append(findings, found(fmt.Sprintf("%s=%s is ignored: no such distance", name, value), suggestion, name)...)
			}
			return findings
		}},
	{ID: "unrecognized-token", Effect: Infeasible, Versions: since(perFunction), raw: true,
		When:    "a word or function in NCCL_ALGO or NCCL_PROTO that does not exist",
		Because: "init fails with invalid usage",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (parseList), from 2.24",
		judge: func(s situation) []finding {
			return s.eachText(func(name, value string) string {
				if _, fault := parseEntries(find(name).grammar(), value); fault != nil {
					return fmt.Sprintf("%s=%s %s", name, value, fault.Reason)
				}
				return ""
			})
		}},
	{ID: "functions-not-understood", Effect: Infeasible, Versions: before(perFunction), raw: true,
		When:    "a colon or semicolon in NCCL_ALGO or NCCL_PROTO before 2.24",
		Because: "the old parser takes it for part of a word that it does not know",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (parseList), up to 2.23",
		judge: func(s situation) []finding {
			return s.eachText(func(name, value string) string {
				if known, _ := oldList(find(name).grammar(), value); strings.ContainsAny(value, ":;") && known == 0 {
					return fmt.Sprintf("%s=%s has entries per function, which NCCL %s does not understand", name, value, s.Version)
				}
				return ""
			})
		}},
	{ID: "collective-without-algorithm", Effect: Infeasible, Versions: since(perFunction), raw: true,
		When:    "NCCL_ALGO leaves a collective no algorithm, from 2.24 on",
		Because: "there is no fallback to Ring any more: the first such call fails",
		Source:  "NVIDIA/nccl src/enqueue.cc (topoGetAlgoInfo), src/graph/tuning.cc; pytorch/pytorch#163063",
		judge: func(s situation) []finding {
			entries, fault := parseEntries(algorithmGrammar, s.settings["NCCL_ALGO"])
			if fault != nil {
				return nil
			}
			for function, possible := range implemented {
				if allowedBy(entries, algorithmGrammar, function, possible)&possible == 0 {
					return found(fmt.Sprintf("NCCL_ALGO=%s leaves %s without an algorithm", s.settings["NCCL_ALGO"], functionNames[function]),
						"name Ring first: "+everyAlgorithm(s.Context)+";allreduce:...", "NCCL_ALGO")
				}
			}
			return nil
		}},
	{ID: "collective-left-out", Effect: Infeasible, Versions: since(release(31)), raw: true,
		When:    "NCCL_PROTO names a collective that NCCL_ALGO or NCCL_SYM_KERNEL leaves out, from 2.31 on",
		Because: "any of the two empties all algorithm rows, and a row is consulted once some variable names the collective",
		Source:  "NVIDIA/nccl src/tuning/tuning.cc, 2.31; vllm-project/vllm#58179",
		judge:   judgeLeftOut},
}

// eachText applies a judgement to NCCL_ALGO and NCCL_PROTO.
func (s situation) eachText(judge func(name, value string) string) []finding {
	var findings []finding
	for _, name := range []string{"NCCL_ALGO", "NCCL_PROTO"} {
		if value := s.settings[name]; value != "" {
			if message := judge(name, value); message != "" {
				findings = append(findings, found(message, "", name)...)
			}
		}
	}
	return findings
}

// oldList reads a text as NCCL before 2.24: one list, unknown words ignored.
func oldList(g grammar, text string) (members set, exclude bool) {
	text, exclude = strings.CutPrefix(text, "^")
	for word := range strings.SplitSeq(text, ",") {
		if i := slices.IndexFunc(g.names, func(known string) bool { return strings.EqualFold(known, word) }); i >= 0 {
			members |= 1 << i
		}
	}
	return members, exclude
}

func judgeNumbers(s situation) []finding {
	var findings []finding
	for _, name := range sortedNames(s.settings) {
		variable, value := find(name), s.settings[name]
		if variable == nil || value == "" || !variable.numeric() {
			continue
		}
		read := decimal(asRead(value))
		if read == value {
			continue
		}
		suggestion := "write the number in plain decimal"
		if meant, err := Canonicalize(name, value, Reading{Quoted: true, Unsafe: true}); err == nil {
			if meant == read {
				continue // 0x10 is odd but right
			}
			suggestion = "write " + meant
		}
		findings = append(findings, found(fmt.Sprintf("NCCL reads %s=%s as %s", name, value, read), suggestion, name)...)
	}
	return findings
}

// numeric: NCCL reads the variable with strtoll.
func (variable *Variable) numeric() bool {
	switch variable.Kind {
	case Integer, Bytes, Switch:
		return true
	case Choice:
		return slices.Contains(variable.Values, "0")
	default:
		return false
	}
}

func judgeLeftOut(s situation) []finding {
	algorithms, fault := parseEntries(algorithmGrammar, s.settings["NCCL_ALGO"])
	protocols, protocolFault := parseEntries(protocolGrammar, s.settings["NCCL_PROTO"])
	emptied := fault == nil || s.settings["NCCL_SYM_KERNEL"] != ""
	if protocolFault != nil || !emptied {
		return nil
	}
	for function := range implemented {
		names := func(e entry) bool { return e.function == function || e.function == every }
		if slices.ContainsFunc(protocols, names) && !slices.ContainsFunc(algorithms, names) {
			return found(fmt.Sprintf("NCCL_PROTO=%s names %s, which has no algorithm because NCCL_ALGO or NCCL_SYM_KERNEL leaves it out",
				s.settings["NCCL_PROTO"], functionNames[function]), "name every collective in NCCL_ALGO: "+everyAlgorithm(s.Context)+";...",
				"NCCL_ALGO", "NCCL_PROTO")
		}
	}
	return nil
}
