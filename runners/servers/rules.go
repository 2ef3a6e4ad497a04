package servers

import (
	"slices"
	"strconv"
	"strings"
)

// Severity says what to do about a broken rule.
type Severity string

// Severities.
const (
	// Refuse: the launch would fail, or would measure something else than asked.
	Refuse Severity = "refuse"
	// Warn: legal, but people should know.
	Warn Severity = "warn"
)

// Rule is one thing that a server does with arguments that do not fit together.
type Rule struct {
	// ID names the rule in tests and documentation: "R5".
	ID       string
	Severity Severity
	// Message says what happens and what to do about it.
	Message string
	// Broken tells whether a command breaks the rule.
	Broken func(Command) bool
}

// Finding is a broken rule.
type Finding struct {
	Rule     string
	Severity Severity
	Message  string
}

// Check returns the rules of the kind that a command breaks: the whole argument
// vector, with speculation rendered, and the environment asked for.
func (k *Kind) Check(args []string, env map[string]string) []Finding {
	command := Command{Args: args, Env: env}
	var findings []Finding
	for _, rule := range k.Rules {
		if rule.Broken(command) {
			findings = append(findings, Finding{rule.ID, rule.Severity, rule.Message})
		}
	}
	return findings
}

// Command is a launch as rules read it.
type Command struct {
	Args []string
	Env  map[string]string
}

// Flag returns the value of the last of the flags given, in either spelling
// ("--flag value", "--flag=value"); of a switch, the empty string. Underscores
// and hyphens are the same, as vLLM has it.
func (c Command) Flag(names ...string) (value string, given bool) {
	if all := c.All(names...); len(all) > 0 {
		return all[len(all)-1], true
	}
	return "", false
}

// All returns the values of every occurrence of the flags, in order.
func (c Command) All(names ...string) []string {
	var values []string
	for i := range c.Args {
		if value, is := c.at(i, names); is {
			values = append(values, value)
		}
	}
	return values
}

// Last is where the last of the flags stands; -1 when none is given.
func (c Command) Last(names ...string) int {
	for i := len(c.Args) - 1; i >= 0; i-- {
		if _, is := c.at(i, names); is {
			return i
		}
	}
	return -1
}

// at tells whether one of the flags stands at an index, and with which value.
func (c Command) at(i int, names []string) (value string, is bool) {
	name, value, inline := strings.Cut(c.Args[i], "=")
	if !slices.ContainsFunc(names, func(wanted string) bool { return hyphens(wanted) == hyphens(name) }) {
		return "", false
	}
	if next := i + 1; !inline && next < len(c.Args) && !isFlag(c.Args[next]) {
		value = c.Args[next]
	}
	return value, true
}

func hyphens(flag string) string { return strings.ReplaceAll(flag, "_", "-") }

// isFlag tells a flag from a value; a negative number is a value.
func isFlag(arg string) bool {
	if !strings.HasPrefix(arg, "-") || arg == "-" {
		return false
	}
	_, err := strconv.ParseFloat(arg, 64)
	return err != nil
}

// Has tells whether one of the flags is given.
func (c Command) Has(names ...string) bool {
	_, given := c.Flag(names...)
	return given
}

// Int returns the value of a flag as a number, and whether it is one.
func (c Command) Int(names ...string) (int, bool) {
	value, given := c.Flag(names...)
	number, err := strconv.Atoi(value)
	return number, given && err == nil
}

// Number is Int for fractions.
func (c Command) Number(names ...string) (float64, bool) {
	value, given := c.Flag(names...)
	number, err := strconv.ParseFloat(value, 64)
	return number, given && err == nil
}

// Is tells whether a flag has one of the values; case does not matter.
func (c Command) Is(flag string, values ...string) bool {
	given, _ := c.Flag(flag)
	for _, value := range values {
		if strings.EqualFold(given, value) {
			return true
		}
	}
	return false
}
