package nccl

import (
	"maps"
	"slices"
)

// Kind says how the value of a variable is written.
type Kind string

// The kinds of value.
const (
	Integer     Kind = "integer"
	Bytes       Kind = "bytes"       // an integer; binary suffixes are taken and resolved
	Switch      Kind = "switch"      // 0 or 1
	Choice      Kind = "choice"      // one of Values
	Level       Kind = "level"       // a distance from LOC to SYS, upper case only
	List        Kind = "list"        // several of Values
	Algorithms  Kind = "algorithms"  // NCCL_ALGO: names, lists, entries per collective
	Protocols   Kind = "protocols"   // NCCL_PROTO: the same grammar
	Numbers     Kind = "numbers"     // integers with blanks between them
	Text        Kind = "text"        // a name, a prefix list, an address
	Path        Kind = "path"        // a file or a library
	Undescribed Kind = "undescribed" // read by NCCL, without a value check here
)

// Area groups variables by the part of NCCL that reads them.
type Area string

// The areas.
const (
	Collectives Area = "collectives"
	Transport   Area = "transport"
	Channels    Area = "channels"
	Buffers     Area = "buffers"
	Memory      Area = "memory"
	Launch      Area = "launch"
	Network     Area = "network"
	Plugins     Area = "plugins"
	Files       Area = "files"
	Debug       Area = "debug"
	Identity    Area = "identity"
)

// Worth says whether a variable is worth a place in a search space.
type Worth string

// The worth of searching a variable. Usual ones are tried first; Expert ones
// rarely help; Never ones change what is measured rather than how fast it is,
// or belong to the site.
const (
	Usual  Worth = "usual"
	Expert Worth = "expert"
	Never  Worth = "never"
)

// Default is what NCCL does when a variable is absent.
type Default struct {
	Versions Range
	// Value in canonical form. Empty: NCCL decides from the machine.
	Value string
	// Note says what NCCL decides by, when Value is empty.
	Note string
}

// Safe narrows the values that NCCL takes to those known to give right sums.
// A value outside needs an explicit unsafe opt-in.
type Safe struct {
	// Values are safe one by one.
	Values []int64
	// Grain and From also allow Grain times every power of two, from From up.
	Grain, From int64
	// Step, Min and Max also allow every multiple of Step between them.
	Step, Min, Max int64
	// Allowed says the above in words.
	Allowed string
	// Reason says what happens outside, and Source who saw it.
	Reason, Source string
}

// Variable is one environment variable.
type Variable struct {
	Name        string
	Kind        Kind
	Area        Area
	Unit        string // "bytes", "threads", "channels"; empty for a bare number
	Description string

	// Values are the allowed words of a Choice or List, as NCCL spells them.
	Values []string
	// Min and Max bound an Integer or Bytes. Both zero: any 32-bit value.
	Min, Max int64
	// Separator joins a List; a comma when empty.
	Separator string
	// Numbered: a number stands for the word at that place of Values.
	Numbered bool
	// Safe narrows the values further, nil when all are safe.
	Safe *Safe

	// Versions that read the variable.
	Versions Range
	Defaults []Default

	Worth Worth
	// Unsafe is the reason for which setting it needs an explicit opt-in.
	Unsafe string

	// Successor is the present name of a removed or renamed variable.
	Successor string
	// SameAs limits the same thing; only one of the two belongs in a space.
	SameAs string
	// WrittenBy names programs that set the variable themselves when it is
	// absent, so that absent and NCCL's default are two different things.
	WrittenBy []string

	// BetweenNodes: it has no effect when all ranks are on one node.
	BetweenNodes bool
	// SendReceive: it acts on send, receive and all-to-all only.
	SendReceive bool
	// Windows: it acts only when the application registers symmetric windows.
	Windows bool
	// Secret: the value must never be stored or shown.
	Secret bool
}

// DefaultAt returns the value that an absent variable has in version v, and
// whether that is one known value on every machine. With the version unknown
// it is, only if all versions agree.
func (variable Variable) DefaultAt(v Version) (string, bool) {
	if len(variable.Defaults) == 0 {
		return "", false
	}
	if !v.Known() {
		first := variable.Defaults[0].Value
		for _, d := range variable.Defaults {
			if d.Value == "" || d.Value != first {
				return "", false
			}
		}
		return first, true
	}
	for _, d := range variable.Defaults {
		if d.Versions.Covers(v) == Yes {
			return d.Value, d.Value != ""
		}
	}
	return "", false
}

// contains reports whether an integer value needs no unsafe opt-in.
func (s *Safe) contains(n int64) bool {
	if s == nil || slices.Contains(s.Values, n) {
		return true
	}
	if s.Step > 0 && n >= s.Min && n <= s.Max && n%s.Step == 0 {
		return true
	}
	if s.Grain > 0 && n >= s.From && n%s.Grain == 0 {
		quotient := n / s.Grain
		return quotient&(quotient-1) == 0
	}
	return false
}

// catalogue is fixed after start-up; names maps a name to its place.
var catalogue, names = buildCatalogue(
	collectiveVariables, transportVariables, channelVariables, bufferVariables,
	memoryVariables, launchVariables, networkVariables, fileVariables,
	debugVariables, removedVariables, otherVariables(),
)

func buildCatalogue(groups ...[]Variable) ([]Variable, map[string]int) {
	all := slices.Concat(groups...)
	index := make(map[string]int, len(all))
	for i, variable := range all {
		index[variable.Name] = i
	}
	return all, index
}

// Lookup returns what is known about a variable.
func Lookup(name string) (Variable, bool) {
	i, ok := names[name]
	if !ok {
		return Variable{}, false
	}
	return catalogue[i].clone(), true
}

// Variables returns the whole catalogue, grouped by area.
func Variables() []Variable {
	all := make([]Variable, len(catalogue))
	for i := range catalogue {
		all[i] = catalogue[i].clone()
	}
	return all
}

// clone keeps callers from changing the catalogue through a slice.
func (variable Variable) clone() Variable {
	variable.Values = slices.Clone(variable.Values)
	variable.Defaults = slices.Clone(variable.Defaults)
	variable.WrittenBy = slices.Clone(variable.WrittenBy)
	if variable.Safe != nil {
		safe := *variable.Safe
		safe.Values = slices.Clone(safe.Values)
		variable.Safe = &safe
	}
	return variable
}

// sortedNames returns the names of a setting in a fixed order.
func sortedNames(settings map[string]string) []string {
	return slices.Sorted(maps.Keys(settings))
}
