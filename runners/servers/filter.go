package servers

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// Pattern is an expression that is compiled when it is first asked. There are
// some two hundred of them, and every process of the program would pay for all:
// the supervisor of each launch and each worker of the simulated server too.
type Pattern struct {
	Text     string
	compiled func() compiledPattern
}

type compiledPattern struct {
	*regexp.Regexp
	filter filter
}

// newPattern panics at its first use when the text is no expression; a test
// uses them all.
func newPattern(text string) Pattern {
	return Pattern{text, sync.OnceValue(func() compiledPattern {
		return compiledPattern{regexp.MustCompile(text), newFilter(text)}
	})}
}

// MatchString reports whether the line matches.
func (p Pattern) MatchString(line string) bool { return p.compiled().Regexp.MatchString(line) }

// mayMatch is a cheap "no" for most lines; lower is the line in lower case.
func (p Pattern) mayMatch(lower string) bool { return p.compiled().filter.mayMatch(lower) }

// filter says cheaply that a pattern cannot match a line. A log of eight ranks
// has tens of thousands of lines and every line meets some seventy patterns;
// looking for a fixed text first is about a hundred times faster than running
// them.
type filter struct {
	// anyOf: a match contains at least one of these lower-case texts. Empty means
	// that nothing is known.
	anyOf []string
}

func newFilter(pattern string) filter {
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return filter{}
	}
	return filter{anyOf: required(expression.Simplify())}
}

func (f filter) mayMatch(lower string) bool {
	if len(f.anyOf) == 0 {
		return true
	}
	for _, text := range f.anyOf {
		if strings.Contains(lower, text) {
			return true
		}
	}
	return false
}

// required returns texts of which every match of the expression contains one,
// or nil when there is no such set.
func required(expression *syntax.Regexp) []string {
	switch expression.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(expression.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return required(expression.Sub[0])
	case syntax.OpRepeat:
		if expression.Min > 0 {
			return required(expression.Sub[0])
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range expression.Sub {
			one := required(sub)
			if one == nil {
				return nil
			}
			all = append(all, one...)
		}
		return all
	case syntax.OpConcat:
		var best []string
		for _, sub := range expression.Sub {
			if one := required(sub); shortest(one) > shortest(best) {
				best = one
			}
		}
		return best
	}
	return nil
}

// shortest is how selective a set of alternatives is: the length of its
// shortest text.
func shortest(texts []string) int {
	length := 0
	for i, text := range texts {
		if i == 0 || len(text) < length {
			length = len(text)
		}
	}
	return length
}
