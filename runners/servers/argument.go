package servers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Argument is a part of a command line whose effective value can be read back
// from the running server.
type Argument struct {
	// Flags are its spellings, the one shown to people first.
	Flags []string
	// Key picks one part of a flag that carries several: a key of its JSON object
	// ({"key": value}), or of its assignments (key=value).
	Key string
	// Fact is the name under which a page or the log tells the value.
	Fact string
	// Alone are further flags that carry just the part that Key names.
	Alone []string
	// Switch tells that the flag has no value: given means true, and one of
	// Opposite means false.
	Switch   bool
	Opposite []string
	// Presence tells that the fact says no more than whether the flag is given with
	// a value other than "none".
	Presence bool
	// Means maps a word of the command line to the one that the server shows.
	Means map[string]string
	// Unless tells of commands under which the fact is something else.
	Unless func(Command) bool
	// Default is the fact's value while none of the flags is there, whatever part
	// of them; empty when it depends on hardware, model or other arguments.
	Default string
	// Free are values that leave the choice to the server, such as "auto".
	Free []string
	// Speculation tells that the argument belongs to speculative decoding. A server
	// that runs it otherwise than asked measures another configuration, whoever
	// asked for it.
	Speculation bool
}

// Name is what people call the argument.
func (a Argument) Name() string {
	if a.Key == "" {
		return a.Flags[0]
	}
	return a.Flags[0] + " " + a.Key
}

// Requested returns the value that a command asks for, in the words of the fact;
// false when the command says nothing about it.
func (a Argument) Requested(c Command) (string, bool) {
	var value string
	var given bool
	switch {
	case a.Switch:
		on, off := c.Last(a.Flags...), c.Last(a.Opposite...)
		return strconv.FormatBool(on >= off), max(on, off) >= 0
	case a.Key != "":
		value, given = a.keyed(c)
	default:
		value, given = c.Flag(a.Flags...)
	}
	if alone, ok := c.Flag(a.Alone...); ok {
		value, given = alone, true
	}
	if a.Presence {
		return strconv.FormatBool(plainWord(value) != Null), given
	}
	if shown, ok := a.Means[value]; ok {
		value = shown
	}
	return value, given
}

// keyed looks for the key in every occurrence of the flag; the last counts.
func (a Argument) keyed(c Command) (value string, given bool) {
	for _, text := range c.All(a.Flags...) {
		if assigned, ok := strings.CutPrefix(text, a.Key+"="); ok {
			value, given = assigned, true
			continue
		}
		var object map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&object) != nil {
			continue
		}
		if scalar, ok := scalarText(object[a.Key]); ok && object[a.Key] != nil {
			value, given = scalar, true
		}
	}
	return value, given
}

// Speculates tells whether a command asks for speculative decoding.
func (k *Kind) Speculates(c Command) bool {
	return slices.ContainsFunc(k.Arguments, func(a Argument) bool {
		value, given := a.Requested(c)
		return a.Speculation && given && plainWord(value) != Null && value != "0" && value != "false"
	})
}

// Match is how an argument compares with what the server says.
type Match uint8

// Results of a comparison.
const (
	// Unreadable: the server does not tell.
	Unreadable Match = iota
	Same
	Differs
	// ServersChoice: the command left it to the server.
	ServersChoice
)

// Comparison is an argument of a command beside its effective value.
type Comparison struct {
	Argument Argument
	// Requested is nil when the command does not say.
	Requested *string
	// Effective is nil when the server does not tell.
	Effective *string
	Match     Match
	// Rewrite explains a difference that the server is known to make.
	Rewrite string
}

// Compare sets every argument that the kind can read back beside the facts of
// the running server. Arguments that the command leaves out are compared with
// their default where there is one.
func (k *Kind) Compare(c Command, facts map[string]string) []Comparison {
	comparisons := make([]Comparison, 0, len(k.Arguments))
	for _, argument := range k.Arguments {
		comparison := Comparison{Argument: argument}
		requested, given := argument.Requested(c)
		if given {
			comparison.Requested = &requested
		}
		effective, told := facts[argument.Fact]
		told = told && (argument.Unless == nil || !argument.Unless(c))
		if told {
			comparison.Effective = &effective
		}
		wanted := requested
		if !given && !c.Has(argument.Flags...) {
			wanted = argument.Default
		}
		switch {
		case !told:
		case wanted == "" || slices.Contains(argument.Free, wanted):
			comparison.Match = ServersChoice
		case sameValue(wanted, effective):
			comparison.Match = Same
		default:
			comparison.Match = Differs
			comparison.Rewrite = k.rewrite(argument, c)
		}
		comparisons = append(comparisons, comparison)
	}
	return comparisons
}

// sameValue compares as people mean it: numbers by value, words whatever their
// case, absent like off.
func sameValue(wanted, effective string) bool {
	a, errA := strconv.ParseFloat(wanted, 64)
	b, errB := strconv.ParseFloat(effective, 64)
	if errA == nil && errB == nil {
		return a == b
	}
	return strings.EqualFold(plainWord(wanted), plainWord(effective))
}

func plainWord(text string) string {
	switch lower := strings.ToLower(text); lower {
	case "none", Null, "":
		return Null
	case "on", "yes":
		return "true"
	case "off", "no":
		return "false"
	default:
		return strings.TrimSuffix(text, "/")
	}
}

// Rewrite is a change that a server makes to an argument with a warning at most.
type Rewrite struct {
	// ID is that of the rule, where the kind has one for it.
	ID string
	// Fact is that of the argument which is changed.
	Fact string
	// When tells whether a command meets it.
	When func(Command) bool
	// Summary says what the server does.
	Summary string
}

// rewrite finds the known reason why an argument is not in force.
func (k *Kind) rewrite(argument Argument, c Command) string {
	for _, rewrite := range k.Rewrites {
		if rewrite.Fact == argument.Fact && rewrite.When(c) {
			return fmt.Sprintf("%s (%s of %s)", rewrite.Summary, rewrite.ID, k.Title)
		}
	}
	return ""
}

// Limit is an argument that a server chooses by itself, by hardware or by other
// arguments, so that two arms of a comparison may run under different limits.
type Limit struct {
	// Flags are its spellings, the one to be written first.
	Flags []string
	// Fact tells the effective value; it must be the same in both arms.
	Fact string
	// Moves says what the server makes it depend on.
	Moves string
	// Least is set where speculation moves the limit: it is the value to force when
	// nobody asked for one, or the widest concurrency of the workload if that is
	// more. Other limits are the same in both arms as long as nothing else changes.
	Least int
}

// OpenLimits returns the limits that a command leaves to the server.
func (k *Kind) OpenLimits(args []string) []Limit {
	command := Command{Args: args}
	var open []Limit
	for _, limit := range k.Limits {
		if !command.Has(limit.Flags...) {
			open = append(open, limit)
		}
	}
	return open
}

// ForceLimits returns the arguments to add to a command, in every arm alike, so
// that speculation on and off run under the same admission limit. Concurrency is
// the widest of the workload.
func (k *Kind) ForceLimits(args []string, concurrency int) []string {
	var added []string
	for _, limit := range k.OpenLimits(args) {
		if limit.Least > 0 {
			added = append(added, limit.Flags[0], strconv.Itoa(max(limit.Least, concurrency)))
		}
	}
	return added
}

// LimitsApart names the limits that differ between two launches, by what their
// servers told; what either does not tell is not known to differ.
func (k *Kind) LimitsApart(a, b map[string]string) []string {
	var apart []string
	for _, limit := range k.Limits {
		one, toldOne := a[limit.Fact]
		other, toldOther := b[limit.Fact]
		if toldOne && toldOther && !sameValue(one, other) {
			apart = append(apart, fmt.Sprintf("%s is %s in one and %s in the other: %s", limit.Flags[0], one, other, limit.Moves))
		}
	}
	return apart
}
