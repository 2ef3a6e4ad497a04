package nccl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RenderError says that a wish cannot be written for the NCCL at hand.
type RenderError struct {
	Name    string
	Value   string
	Version Version
	Reason  string
}

// Error names the variable, the wish, the version and the reason.
func (e *RenderError) Error() string {
	return fmt.Sprintf("%s: %q cannot be written for NCCL %s: %s", e.Name, e.Value, e.Version, e.Reason)
}

// renderers write the variables whose text depends on the version, in the
// order of their faults. They return the text, or the reason for which there
// is none.
var renderers = []struct {
	name  string
	write func(Context, intent) (text, reason string)
}{
	{"NCCL_ALGO", renderAlgorithms},
	{"NCCL_PROTO", renderProtocols},
}

// perFunction is the first release that takes entries per function.
var perFunction = release(24)

// Render writes canonical settings as the environment that the NCCL at hand
// reads as meant. Only NCCL_ALGO, NCCL_PROTO and NCCL_CTA_POLICY change their
// text: a single policy is written as its number, which every version takes.
//
// An algorithm list with Ring is legal for every collective and stands as it
// is. One without Ring is meant for the all-reduce: before 2.24 it stands as
// it is, since other collectives stay with Ring; from 2.24 on, where they
// would fail, all algorithms are allowed first and the all-reduce is narrowed
// after that. That first entry names every collective, which 2.31 needs:
// there a collective that only NCCL_PROTO names has no algorithm left.
//
// A protocol list stands as it is, for all collectives. One for a single
// function needs 2.24.
//
// With the version unknown an all-reduce list is written so that both parsers
// read it alike. NCCL before 2.24 splits at commas only and ignores unknown
// words, so it sees the wanted names and one word that it does not know:
//
//	tree,ring;broadcast:ring;reduce:ring;allgather:^tree;reducescatter:^tree;allreduce:tree
//
// Tree is no algorithm of all-gather, so ^tree leaves that as it was. Entries
// per function are then written for 2.24 and later.
func Render(c Context, settings map[string]string) (map[string]string, error) {
	environment := make(map[string]string, len(settings))
	maps.Copy(environment, settings)
	var faults []error
	for _, renderer := range renderers {
		value, ok := settings[renderer.name]
		if !ok {
			continue
		}
		in, fault := parseIntent(find(renderer.name).grammar(), value)
		if fault != nil {
			fault.Name, fault.Value = renderer.name, value
			faults = append(faults, fault)
			continue
		}
		text, reason := renderer.write(c, in)
		if reason != "" {
			faults = append(faults, &RenderError{Name: renderer.name, Value: value, Version: c.Version, Reason: reason})
			continue
		}
		environment[renderer.name] = text
	}
	if policy := find("NCCL_CTA_POLICY"); slices.Contains(policy.Values, settings[policy.Name]) {
		environment[policy.Name] = strconv.Itoa(slices.Index(policy.Values, settings[policy.Name]))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return environment, nil
}

// grammar of a variable of kind Algorithms or Protocols.
func (variable *Variable) grammar() grammar {
	if variable.Kind == Protocols {
		return protocolGrammar
	}
	return algorithmGrammar
}

// renderAlgorithms writes forms with functions in lower case, as NVIDIA's manual does.
func renderAlgorithms(c Context, in intent) (text, reason string) {
	e, single := in.single()
	switch {
	case single && !in.allReduceOnly():
		return in.String(), ""
	case c.Version.Before(perFunction):
		return renderOneList(in)
	case single && !c.Version.Known():
		return renderForAnyVersion(e), ""
	case single:
		e.function = allReduce
		return everyAlgorithm(c) + ";" + strings.ToLower(in.grammar.print(e)), ""
	case in.entries[0].function == every:
		return strings.ToLower(in.String()), ""
	default:
		return everyAlgorithm(c) + ";" + strings.ToLower(in.String()), ""
	}
}

// renderOneList writes for the parser before 2.24, which knows no functions.
// There an excluded algorithm only matters to the all-reduce: the others fall
// back to Ring.
func renderOneList(in intent) (text, reason string) {
	if len(in.entries) > 1 || (in.entries[0].function != every && in.entries[0].function != allReduce) {
		return "", "entries per function need 2.24"
	}
	e := in.entries[0]
	e.function = every
	return in.grammar.print(e), ""
}

func renderForAnyVersion(e entry) string {
	g := algorithmGrammar
	list := e
	list.function = every
	e.function = allReduce
	return strings.ToLower(g.print(list) + ",ring;broadcast:ring;reduce:ring;allgather:^tree;reducescatter:^tree;" + g.print(e))
}

// everyAlgorithm allows all that the machine may have. On one node without
// NVSwitch that is Ring and Tree; elsewhere every name, since an algorithm
// that is allowed but absent does no harm.
func everyAlgorithm(c Context) string {
	if c.Nodes == 1 && c.noNVSwitch() {
		return "ring,tree"
	}
	return "ring,tree,nvls,nvlstree,collnetdirect,collnetchain,pat"
}

func renderProtocols(c Context, in intent) (text, reason string) {
	if _, single := in.single(); single {
		return in.String(), ""
	}
	if c.Version.Before(perFunction) {
		return "", "a protocol for one function needs 2.24; write it without the function"
	}
	return in.String(), ""
}
