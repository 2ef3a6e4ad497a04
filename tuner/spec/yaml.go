package spec

import (
	"errors"
	"fmt"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// largestFile bounds the text of a campaign file, in bytes, and deepestNesting
// the brackets, or the dashes of a line, that stand within each other: the
// parser's work grows with their square.
const (
	largestFile    = 64 << 10
	deepestNesting = 64
)

// parse is the YAML parser. It panics on some broken texts, which are no more
// than that.
func parse(text string) (file *ast.File, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("the text cannot be read (%v)", failure)
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
}

// tooDeep finds where a file is nested deeper than any campaign file. It counts
// brackets within quotes too, of which there are not that many without their
// ends.
func tooDeep(lines []string) (Position, bool) {
	depth := 0
	for i, line := range lines {
		items := line[:len(line)-len(strings.TrimLeft(line, "- "))]
		if strings.Count(items, "- ") > deepestNesting {
			return Position{i + 1, 1}, true
		}
		for column, r := range line {
			switch r {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > deepestNesting {
				return Position{i + 1, len([]rune(line[:column])) + 1}, true
			}
		}
	}
	return Position{}, false
}

func (d *decoder) syntax(err error) {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		at := d.source.clamp(Position{syntax.Token.Position.Line, syntax.Token.Position.Column})
		d.fault(at, "not valid YAML: %s%s", syntax.Message, syntaxAdvice(d.source.line(at), syntax.Message))
		return
	}
	d.fault(Position{1, 1}, "not valid YAML: %v", err)
}

// syntaxAdvice says what usually is behind a fault that the parser tells in
// YAML's own words.
func syntaxAdvice(line, message string) string {
	switch {
	case strings.Contains(message, "\t") || strings.Contains(message, "tab character"):
		return "; indent with blanks, not with tabs"
	case strings.Contains(line, "${"):
		return "; within [ ] and { } a text with ${...} needs quotes"
	}
	return ""
}
