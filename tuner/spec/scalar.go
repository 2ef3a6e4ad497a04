package spec

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// scalar is a single value as it is written, with its place. Its meaning is
// decided by what it is for.
type scalar struct {
	Text string
	Position
	style style
}

// style is how a scalar is written.
type style uint8

const (
	plain style = iota
	singleQuoted
	doubleQuoted
	literalBlock // |
	foldedBlock  // >
	null         // null, ~ or nothing
)

func (s *scalar) readNode(d *decoder, node ast.Node) {
	if read, ok := d.scalar(node); ok {
		*s = read
	}
}

// quoted reports whether the text is meant as text.
func (s scalar) quoted() bool { return s.style != plain && s.style != null }

// isUnset reports whether the scalar is the word for absence.
func (s scalar) isUnset() bool { return s.style == plain && s.Text == "unset" }

// truthWords are what readers of YAML 1.1 take for booleans and people mean as
// text. y and n are in its specification too, but no common reader does so.
var truthWords = map[string]bool{"on": true, "off": true, "yes": true, "no": true}

func isTruthWord(text string) bool { return truthWords[strings.ToLower(text)] }

// isBoolean reports whether every YAML reader takes the text for a boolean.
func isBoolean(text string) bool {
	return strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
}

// unclear says why the meaning of an unquoted text depends on who reads it;
// empty when it does not.
func (s scalar) unclear() string {
	switch {
	case s.quoted():
		return ""
	case s.style == null:
		return "null is no value here; quote it to mean the text"
	case isTruthWord(s.Text):
		return fmt.Sprintf("%s is a truth value to some YAML readers and text to others; write \"%s\" to mean the text", s.Text, s.Text)
	case isBoolean(s.Text):
		return fmt.Sprintf("%s is a truth value, and programs spell those in different ways; write \"%s\" to mean the text", s.Text, s.Text)
	case s.leadingZero():
		return s.octal()
	}
	return ""
}

// switchAdvice is advice for a truth value, and nothing for another text.
func (s scalar) switchAdvice(advice string) string {
	if isTruthWord(s.Text) || isBoolean(s.Text) {
		return advice
	}
	return ""
}

// ambiguous refuses a text whose meaning depends on who reads it.
func (s scalar) ambiguous(c *collector) bool {
	reason := s.unclear()
	if reason != "" {
		c.fault(s.Position, "%s", reason)
	}
	return reason != ""
}

var leadingZeros = regexp.MustCompile(`^[+-]?0[0-9_]+$`)

func (s scalar) leadingZero() bool { return s.style == plain && leadingZeros.MatchString(s.Text) }

// octal says why a leading zero is refused.
func (s scalar) octal() string {
	bare := strings.TrimLeft(s.Text, "+-0_")
	if bare == "" {
		return fmt.Sprintf("%s has leading zeros; write 0", s.Text)
	}
	number, err := strconv.ParseInt(bare, 8, 64)
	if err != nil {
		return fmt.Sprintf("%s has a leading zero, which begins an octal number to some YAML readers; write %s", s.Text, bare)
	}
	return fmt.Sprintf("%s is %d to some YAML readers and %s to people; write %s, or 0o%s for octal", s.Text, number, bare, bare, bare)
}

// float reads a finite number.
func (s scalar) float() (float64, error) {
	number, err := strconv.ParseFloat(s.Text, 64)
	if err != nil || s.quoted() || s.leadingZero() || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, fmt.Errorf("%q: want a finite number", s.Text)
	}
	return number, nil
}

// whole reads a whole number in decimal digits.
func (s scalar) whole() (int, error) {
	number, err := strconv.Atoi(s.Text)
	if err != nil || s.quoted() || s.leadingZero() {
		return 0, fmt.Errorf("%q: want a whole number in decimal digits", s.Text)
	}
	return number, nil
}

// text is a scalar that is read as text, so that off, 010 and null are refused
// where they are not quoted.
type text struct {
	scalar
}

func (t *text) readNode(d *decoder, node ast.Node) {
	if read, ok := d.scalar(node); ok && !read.ambiguous(d.collector) {
		t.scalar = read
	}
}
