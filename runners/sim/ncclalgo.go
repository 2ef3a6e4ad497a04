package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Collectives that a tensor-parallel server calls.
type function int

const (
	broadcast function = iota
	reduce
	allGather
	reduceScatter
	allReduce
	functions int = iota
)

var functionNames = []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// Algorithms, numbered as NCCL does.
type algorithm int

const (
	tree algorithm = iota
	ring
	collNetDirect
	collNetChain
	nvls
	nvlsTree
	pat
	algorithms int = iota
)

var algorithmNames = []string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}

// Protocols, numbered as NCCL does.
type protocol int

const (
	ll protocol = iota
	ll128
	simple
	protocols int = iota
)

var protocolNames = []string{"LL", "LL128", "Simple"}

// permission says whether something may be used: no, yes, or as NCCL sees fit.
type permission uint8

const (
	denied permission = iota
	allowed
	automatic
)

// choice holds what NCCL_ALGO and NCCL_PROTO leave of the algorithms and the
// protocols of each function.
type choice struct {
	algorithms [functions][algorithms]permission
	protocols  [functions][protocols]permission
	// ringFallback is set in releases which turn to Ring when nothing is left;
	// with anyProtocol that Ring may use every protocol, LL128 included.
	ringFallback, anyProtocol bool
}

// invalidUsage is how NCCL refuses a setting.
type invalidUsage struct{ warning string }

func (e *invalidUsage) Error() string { return e.warning }

// parseChoice reads both variables by the grammar of the release
// (src/graph/tuning.cc, parseList).
func parseChoice(version ncclVersion, algo, proto string) (choice, error) {
	var c choice
	for f := range functions {
		for a := range algorithms {
			c.algorithms[f][a] = allowed
		}
		c.protocols[f] = [protocols]permission{ll: allowed, ll128: automatic, simple: allowed}
	}
	if !version.atLeast(2, 24, 0) {
		c.parseOld(version, algo, proto)
		return c, nil
	}
	algoNamed, err := parseList(algo, algorithmNames, func(f, element int, p permission) { c.algorithms[f][element] = p })
	if err != nil {
		return c, err
	}
	protoNamed, err := parseList(proto, protocolNames, func(f, element int, p permission) { c.protocols[f][element] = p })
	if err != nil {
		return c, err
	}
	if version.atLeast(2, 31, 0) && algo != "" {
		// Once NCCL_ALGO is set every row starts empty, and a row counts as soon as
		// either variable names its function.
		for f := range functions {
			if protoNamed[f] && !algoNamed[f] {
				c.algorithms[f] = [algorithms]permission{}
			}
		}
	}
	return c, nil
}

// parseList reads "list;function:list;..." and tells which functions were named.
// A list starting with ^ excludes.
func parseList(value string, names []string, set func(f, element int, p permission)) ([functions]bool, error) {
	var named [functions]bool
	for i, entry := range tokens(value, ";") {
		prefix, list, hasPrefix := strings.Cut(entry, ":")
		if !hasPrefix {
			prefix, list = "", entry
			if i > 0 {
				return named, &invalidUsage{fmt.Sprintf("All entries except the first must have a prefix: \"%s\"", value)}
			}
		}
		var targets []int
		for f, name := range functionNames {
			if !hasPrefix || strings.EqualFold(prefix, name) {
				targets = append(targets, f)
			}
		}
		if len(targets) == 0 {
			return named, &invalidUsage{fmt.Sprintf("Unrecognized prefix token \"%s\" when parsing \"%s\"", prefix, value)}
		}
		elements, exclude, unknown := elementsOf(list, names)
		if unknown != "" {
			return named, &invalidUsage{fmt.Sprintf("Unrecognized element token \"%s\" when parsing \"%s\"", unknown, value)}
		}
		for _, f := range targets {
			named[f] = true
			for element := range names {
				set(f, element, permit(slices.Contains(elements, element) != exclude))
			}
		}
	}
	return named, nil
}

func permit(yes bool) permission {
	if yes {
		return allowed
	}
	return denied
}

// elementsOf reads "a,b" or "^a,b", in any case, and returns the first unknown
// name.
func elementsOf(list string, names []string) (elements []int, exclude bool, unknown string) {
	list, exclude = strings.CutPrefix(list, "^")
	for _, token := range tokens(list, ",") {
		element := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, token) })
		if element < 0 {
			if unknown == "" {
				unknown = token
			}
			continue
		}
		elements = append(elements, element)
	}
	return elements, exclude, unknown
}

// tokens splits like C's strtok: empty pieces do not count.
func tokens(text, separator string) []string {
	return slices.DeleteFunc(strings.Split(text, separator), func(piece string) bool { return piece == "" })
}

// parseOld reads the grammar up to 2.23: one list for all functions, unknown
// names ignored.
func (c *choice) parseOld(version ncclVersion, algo, proto string) {
	c.ringFallback = true
	c.anyProtocol = version.atLeast(2, 19, 0) && !version.atLeast(2, 22, 0)
	if elements, exclude, _ := elementsOf(algo, algorithmNames); algo != "" {
		if len(elements) == 0 && !exclude {
			elements = []int{int(tree), int(ring)}
		}
		for f := range functions {
			for a := range algorithms {
				c.algorithms[f][a] = permit(slices.Contains(elements, a) != exclude)
			}
			if !version.atLeast(2, 19, 0) && f != int(allReduce) {
				c.algorithms[f][ring] = allowed
			}
		}
	}
	if elements, exclude, _ := elementsOf(proto, protocolNames); proto != "" {
		if len(elements) == 0 && !exclude && !c.anyProtocol {
			c.ringFallback = false
		}
		for f := range functions {
			for p := range protocols {
				c.protocols[f][p] = permit(slices.Contains(elements, p) != exclude)
			}
		}
	}
}
