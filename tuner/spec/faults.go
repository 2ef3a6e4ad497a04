package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Position is a place in a file: line and column from 1, columns counted in
// characters.
type Position struct {
	Line, Column int
}

// Fault is one thing that is wrong with a campaign file.
type Fault struct {
	File string
	Position
	// Message says what is wrong with which text, what is allowed, and what to
	// do.
	Message string
}

// String is file:line:column: message, as compilers write it.
func (f Fault) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Faults are all the faults of a file, in the order of their positions.
type Faults []Fault

// Error prints one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// Warning is something that works but probably not as meant.
type Warning = Fault

// collector gathers faults and warnings while a file is read.
type collector struct {
	name     string
	source   source
	faults   Faults
	warnings []Warning
}

// mostFaults bounds what is told of one file; nobody reads more.
const mostFaults = 500

// longestMessage bounds one message, which repeats what the file says, in bytes.
const longestMessage = 2000

// full reports whether no more faults are taken.
func (c *collector) full() bool { return len(c.faults) >= mostFaults }

func (c *collector) fault(at Position, format string, args ...any) {
	if !c.full() {
		c.faults = append(c.faults, c.note(at, format, args...))
	}
}

func (c *collector) warn(at Position, format string, args ...any) {
	c.warnings = append(c.warnings, c.note(at, format, args...))
}

func (c *collector) note(at Position, format string, args ...any) Fault {
	message := fmt.Sprintf(format, args...)
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + "..."
	}
	return Fault{File: c.name, Position: c.source.clamp(at), Message: message}
}

// result sorts what was gathered. One place can have several faults; the same
// fault twice is told once.
func (c *collector) result() (Faults, []Warning) {
	order := func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	}
	slices.SortStableFunc(c.faults, order)
	slices.SortStableFunc(c.warnings, order)
	return slices.Compact(c.faults), slices.Compact(c.warnings)
}

// nearest is the known word that a word is taken for: the one with the fewest
// edits, if they are few, or one that is its beginning or its end, or the other
// way round.
func nearest(word string, known []string) (string, bool) {
	best, distance := "", 1+max(1, len(word)/3)
	for _, candidate := range known {
		edits := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(candidate))
		if edits < distance && edits < min(len(word), len(candidate)) {
			best, distance = candidate, edits
		}
	}
	if best != "" {
		return best, true
	}
	i := slices.IndexFunc(known, func(candidate string) bool {
		short, long := word, candidate
		if len(short) > len(long) {
			short, long = long, short
		}
		return len(short) >= 3 && (strings.HasPrefix(long, short) || strings.HasSuffix(long, short))
	})
	if i < 0 {
		return "", false
	}
	return known[i], true
}

// suggestion is the end of a message about an unknown word: the known word that
// it resembles, and what is allowed.
func suggestion(word string, known []string) string {
	if len(known) == 0 {
		return "there are none"
	}
	allowed := "allowed: " + strings.Join(known, ", ")
	if near, ok := nearest(word, known); ok {
		return fmt.Sprintf("did you mean %q? %s", near, allowed)
	}
	return allowed
}
