package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// NCCL_ALGO and NCCL_PROTO share a grammar:
//
//	list  = ["^"] name {"," name}
//	value = [function ":"] list {";" function ":" list}
//
// Case does not matter, ^ inverts the list. Up to 2.23 NCCL knows one list
// without functions. Source: NVIDIA/nccl src/graph/tuning.cc (parseList).

// set holds names by their place in the grammar.
type set uint8

func (s set) has(i int) bool    { return s&(1<<i) != 0 }
func (s set) without(t set) set { return s &^ t }

func setOf(members ...int) (s set) {
	for _, i := range members {
		s |= 1 << i
	}
	return s
}

// The algorithms in NCCL's own order.
const (
	tree = iota
	ring
	collNetDirect
	collNetChain
	nvls
	nvlsTree
	pat
)

// The protocols in NCCL's own order.
const (
	ll = iota
	ll128
	simple
)

// The functions in NCCL's own order; every stands for an entry without one.
const (
	every = iota - 1
	broadcast
	reduce
	allGather
	reduceScatter
	allReduce
)

var functionNames = []string{"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}

// grammar holds the names of one of the two variables.
type grammar struct {
	names []string
	// essential must be among the names of an entry that covers every
	// function; -1 when nothing is.
	essential int
}

func (g grammar) all() set { return 1<<len(g.names) - 1 }

var (
	algorithmGrammar = grammar{names: []string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}, essential: ring}
	protocolGrammar  = grammar{names: []string{"LL", "LL128", "Simple"}, essential: -1}
)

// implemented lists the algorithms that a function has at all. Source:
// NVIDIA/nccl src/graph/tuning.cc (ncclTopoTuneModel).
var implemented = [...]set{
	broadcast:     setOf(ring),
	reduce:        setOf(ring),
	allGather:     setOf(ring, collNetDirect, nvls, pat),
	reduceScatter: setOf(ring, collNetDirect, nvls, pat),
	allReduce:     setOf(tree, ring, collNetDirect, collNetChain, nvls, nvlsTree),
}

// entry is one list, for one function or for every.
type entry struct {
	function int
	exclude  bool
	members  set
}

// allowed are the names that the entry leaves.
func (e entry) allowed(g grammar) set {
	if e.exclude {
		return g.all().without(e.members)
	}
	return e.members
}

// intent is a parsed value. For NCCL_ALGO an only entry for every function
// that lacks Ring stands for the all-reduce alone.
type intent struct {
	grammar grammar
	entries []entry
}

// canonicalIntent parses and prints again.
func canonicalIntent(g grammar, raw string) (string, *ValueError) {
	parsed, fault := parseIntent(g, raw)
	if fault != nil {
		return "", fault
	}
	return parsed.String(), nil
}

func parseIntent(g grammar, raw string) (intent, *ValueError) {
	entries, fault := parseEntries(g, raw)
	if fault != nil {
		return intent{}, fault
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.function, b.function) })
	return intent{grammar: g, entries: entries}.normalized()
}

// parseEntries reads a value as NCCL from 2.24 on does.
func parseEntries(g grammar, raw string) ([]entry, *ValueError) {
	if strings.TrimSpace(raw) == "" {
		return nil, &ValueError{Reason: "is empty", Allowed: orList(g.names), Suggestion: "leave the variable out, or write unset in a list of choices"}
	}
	var entries []entry
	for i, part := range strings.Split(raw, ";") {
		e, fault := parseEntry(g, part)
		if fault != nil {
			return nil, fault
		}
		if e.function == every && i > 0 {
			return nil, &ValueError{Reason: fmt.Sprintf("has %q without a function; only the first entry may lack one", strings.TrimSpace(part)),
				Allowed: "entries such as allreduce:" + g.names[0]}
		}
		if slices.ContainsFunc(entries, func(other entry) bool { return other.function == e.function }) {
			return nil, &ValueError{Reason: "names " + functionNames[e.function] + " twice", Suggestion: "keep one of the two"}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// normalized folds forms that mean the same and refuses one that cannot work.
func (in intent) normalized() (intent, *ValueError) {
	if in.grammar.essential < 0 {
		return in, nil
	}
	first := in.entries[0]
	complete := first.allowed(in.grammar).has(in.grammar.essential)
	switch {
	case len(in.entries) > 1 && first.function == every && !complete:
		return in, &ValueError{
			Reason:     "gives every function an entry without Ring, so that broadcast and all-gather have no algorithm",
			Suggestion: "write the first entry with Ring, or only the entry for allreduce",
		}
	case len(in.entries) == 1 && first.function == allReduce && !complete:
		in.entries[0].function = every
	}
	return in, nil
}

func parseEntry(g grammar, part string) (entry, *ValueError) {
	e := entry{function: every}
	list := strings.TrimSpace(part)
	if prefix, rest, found := strings.Cut(list, ":"); found {
		prefix = strings.TrimSpace(prefix)
		e.function = slices.Index(functionNames, strings.ToLower(prefix))
		if e.function < 0 {
			return e, &ValueError{Reason: fmt.Sprintf("has an unknown function %q", prefix), Allowed: orList(functionNames)}
		}
		list = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(list, "^") {
		e.exclude, list = true, list[1:]
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(g.names, func(known string) bool { return strings.EqualFold(known, name) })
		if i < 0 {
			return e, g.unknown(name)
		}
		e.members |= 1 << i
	}
	if e.allowed(g) == 0 {
		return e, &ValueError{Reason: "leaves nothing", Allowed: orList(g.names)}
	}
	return e, nil
}

// unknown explains a name that the grammar lacks. NCCL up to 2.23 ignores it
// in silence, later ones fail at init.
func (g grammar) unknown(name string) *ValueError {
	fault := &ValueError{Reason: fmt.Sprintf("has an unknown name %q", name), Allowed: orList(g.names)}
	switch {
	case strings.HasPrefix(name, "^"):
		fault.Reason = "has a ^ inside a list; it inverts the whole list and stands first"
	case strings.EqualFold(name, "CollNet"):
		fault.Suggestion = "write CollNetDirect or CollNetChain"
	default:
		if word, ok := booleanWords[strings.ToLower(name)]; ok {
			fault.Reason = fmt.Sprintf("is a word for %s, not a name", word)
		}
	}
	return fault
}

// String prints the canonical form: NCCL's spelling and order.
func (in intent) String() string {
	parts := make([]string, len(in.entries))
	for i, e := range in.entries {
		parts[i] = in.grammar.print(e)
	}
	return strings.Join(parts, ";")
}

func (g grammar) print(e entry) string {
	var b strings.Builder
	if e.function != every {
		b.WriteString(functionNames[e.function] + ":")
	}
	if e.exclude {
		b.WriteByte('^')
	}
	b.WriteString(strings.Join(g.namesOf(e.members), ","))
	return b.String()
}

func (g grammar) namesOf(members set) []string {
	var chosen []string
	for i, name := range g.names {
		if members.has(i) {
			chosen = append(chosen, name)
		}
	}
	return chosen
}

// single returns the only entry, when it has no function.
func (in intent) single() (entry, bool) {
	if len(in.entries) != 1 || in.entries[0].function != every {
		return entry{}, false
	}
	return in.entries[0], true
}

// allReduceOnly: an algorithm list that cannot hold for other functions.
func (in intent) allReduceOnly() bool {
	e, ok := in.single()
	return ok && in.grammar.essential >= 0 && !e.allowed(in.grammar).has(in.grammar.essential)
}

// of returns the names that the intent leaves to a function, or otherwise when
// it does not touch the function.
func (in intent) of(function int, otherwise set) set {
	if function != allReduce && in.allReduceOnly() {
		return otherwise
	}
	return allowedBy(in.entries, in.grammar, function, otherwise)
}

// allowedBy applies entries as NCCL does: the later entry of a function
// replaces the first one for every function.
func allowedBy(entries []entry, g grammar, function int, otherwise set) set {
	mask := otherwise
	for _, e := range entries {
		if e.function == function || e.function == every {
			mask = e.allowed(g)
		}
	}
	return mask
}
