package nccl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Effect is what a rule does to a setting, or says of it.
type Effect string

// The effects. The first four change a setting into one that measures the
// same; the others are problems.
const (
	Inert      Effect = "inert"      // NCCL does not read it, or nothing asks it: removed
	Clamped    Effect = "clamped"    // NCCL replaces the value: so does the rule
	IsDefault  Effect = "default"    // the value is the one of an absent variable: removed
	Alias      Effect = "alias"      // another variable says the same
	Infeasible Effect = "infeasible" // NCCL fails
	Forbidden  Effect = "forbidden"  // NCCL may run, but it must not be tried
	Unsafe     Effect = "unsafe"     // results may be wrong: needs an explicit opt-in
	Warning    Effect = "warning"    // it does not do what it seems to
)

// Rule is one line of the table. A rule holds for a range of versions; with
// the version unknown only rules for all versions apply.
type Rule struct {
	ID       string
	Effect   Effect
	Versions Range
	When     string // the condition in words
	Because  string
	Source   string // an NCCL source file, manual page or issue

	// rewrite returns the changes that make an equal setting, sorted by name.
	rewrite func(situation) []rewrite
	// judge returns what is wrong with a setting.
	judge func(situation) []finding
	// raw rules look at text as NCCL would read it, not at canonical values.
	raw bool
}

// situation is what a rule looks at.
type situation struct {
	Context
	settings map[string]string
}

// rewrite changes one variable. An empty value removes it; a new name moves it.
type rewrite struct {
	name, value, newName string
}

// finding is one problem before it carries its rule.
type finding struct {
	variables           []string
	message, suggestion string
}

// rules in the order in which they are applied.
var rules = slices.Concat(versionRules, channelRules, transportRules, collectiveRules, placeRules, defaultRules, problemRules, rawRules)

// Rules returns the whole table.
func Rules() []Rule { return slices.Clone(rules) }

// Note says how a setting changed on its way to the canonical form.
type Note struct {
	Rule     string
	Effect   Effect
	Variable string
	From     string
	// To is the new value, empty when the variable was removed.
	To string
	// NewName is set when another variable carries the value now.
	NewName string
	Message string
}

// String returns one sentence for a person.
func (n Note) String() string {
	switch {
	case n.NewName != "":
		return fmt.Sprintf("%s=%s is the same as %s=%s: %s", n.Variable, n.From, n.NewName, n.To, n.Message)
	case n.To == "":
		return fmt.Sprintf("%s=%s is left out: %s", n.Variable, n.From, n.Message)
	default:
		return fmt.Sprintf("%s=%s acts as %s: %s", n.Variable, n.From, n.To, n.Message)
	}
}

// Canonical returns the settings that act: without inert variables, clamped
// where NCCL clamps, without what equals the default, one spelling for what
// means the same. Settings with equal results measure the same thing, but for
// the GPU memory that an inert buffer size still takes.
//
// Values must be acceptable to Canonicalize; a refusal is a *ValueError, all
// of them joined. Names that are not in the catalogue stay untouched. The
// result does not depend on the order of anything, and the canonical form of a
// canonical form is itself.
func Canonical(c Context, settings map[string]string) (map[string]string, []Note, error) {
	s := situation{Context: c, settings: make(map[string]string, len(settings))}
	var faults []error
	for _, name := range sortedNames(settings) {
		value := settings[name]
		if find(name) != nil {
			canonical, err := Canonicalize(name, value, Reading{Quoted: true, Unsafe: true})
			if err != nil {
				faults = append(faults, err)
				continue
			}
			value = canonical
		}
		s.settings[name] = value
	}
	if len(faults) > 0 {
		return nil, nil, errors.Join(faults...)
	}
	return s.settings, s.reduce(), nil
}

// reduce applies the rules until none changes anything. Each change removes a
// variable or moves its value one way, so that this ends.
func (s situation) reduce() []Note {
	var notes []Note
	for changed := true; changed; {
		changed = false
		for i := range rules {
			rule := &rules[i]
			if rule.rewrite == nil || rule.Versions.Covers(s.Version) != Yes {
				continue
			}
			for _, change := range rule.rewrite(s) {
				notes = append(notes, s.apply(rule, change))
				changed = true
			}
		}
	}
	return notes
}

func (s situation) apply(rule *Rule, change rewrite) Note {
	note := Note{Rule: rule.ID, Effect: rule.Effect, Variable: change.name, From: s.settings[change.name],
		To: change.value, NewName: change.newName, Message: rule.Because}
	delete(s.settings, change.name)
	if change.value != "" {
		target := change.name
		if change.newName != "" {
			target = change.newName
		}
		s.settings[target] = change.value
	}
	return note
}

// Problem is something wrong with a setting.
type Problem struct {
	Rule       string
	Effect     Effect // Infeasible, Forbidden, Unsafe or Warning
	Variables  []string
	Message    string
	Suggestion string
	Source     string
}

// String returns one sentence for a person.
func (p Problem) String() string {
	text := p.Message
	if p.Suggestion != "" {
		text += "; " + p.Suggestion
	}
	return text
}

// Check returns what is wrong with canonical settings, as intents: what NCCL
// will refuse, what must not be tried, what needs an unsafe opt-in, and what
// does not act as it seems. What Canonical would remove is not a problem.
func Check(c Context, settings map[string]string) []Problem {
	return judge(situation{Context: c, settings: settings}, false)
}

func judge(s situation, raw bool) []Problem {
	var problems []Problem
	for i := range rules {
		rule := &rules[i]
		if rule.judge == nil || rule.raw != raw || rule.Versions.Covers(s.Version) != Yes {
			continue
		}
		for _, f := range rule.judge(s) {
			problems = append(problems, Problem{Rule: rule.ID, Effect: rule.Effect, Variables: f.variables,
				Message: f.message, Suggestion: f.suggestion, Source: rule.Source})
		}
	}
	return problems
}

func (s situation) has(name string) bool {
	_, ok := s.settings[name]
	return ok
}

func (s situation) is(name, value string) bool { return s.settings[name] == value }

// number returns the value of an integer variable that is set.
func (s situation) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(s.settings[name], 10, 64)
	return n, err == nil
}

// drop removes those of the names that are set.
func (s situation) drop(sorted ...string) []rewrite {
	var changes []rewrite
	for _, name := range sorted {
		if s.has(name) {
			changes = append(changes, rewrite{name: name})
		}
	}
	return changes
}

// dropIf is drop under a condition.
func (s situation) dropIf(condition bool, sorted ...string) []rewrite {
	if !condition {
		return nil
	}
	return s.drop(sorted...)
}

// dropWhere removes the variables of the catalogue that match.
func (s situation) dropWhere(match func(*Variable, string) bool) []rewrite {
	var changes []rewrite
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		if variable := find(name); variable != nil && match(variable, s.settings[name]) {
			changes = append(changes, rewrite{name: name})
		}
	}
	return changes
}

// replace changes the value of one variable.
func replace(name, value string) []rewrite { return []rewrite{{name: name, value: value}} }

// found is a finding about some variables.
func found(message, suggestion string, variables ...string) []finding {
	return []finding{{variables: variables, message: message, suggestion: suggestion}}
}
