package spec

import (
	"strings"
	"unicode/utf8"
)

// source is the text of a file by lines, to find the place of a character
// inside a value.
type source struct {
	lines []string
}

func newSource(text string) source {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return source{lines}
}

// clamp moves a position into the file. The parser places a fault of a text
// that ends too early behind its end.
func (s source) clamp(at Position) Position {
	if len(s.lines) == 0 {
		return at
	}
	at.Line = min(max(at.Line, 1), len(s.lines))
	at.Column = min(max(at.Column, 1), utf8.RuneCountInString(s.lines[at.Line-1])+1)
	return at
}

// line is the text of the line that a position lies in.
func (s source) line(at Position) string {
	if at.Line < 1 || at.Line > len(s.lines) {
		return ""
	}
	return s.lines[at.Line-1]
}

// inside is the place of a byte of a value's text. Quotes, escapes, line folding
// and the indentation of blocks make it differ from the beginning of the value
// plus the offset. Where text and file cannot be matched it is the beginning.
func (s source) inside(value scalar, offset int) Position {
	if value.Line < 1 || value.Line > len(s.lines) || offset > len(value.Text) {
		return value.Position
	}
	if value.style == literalBlock {
		return s.insideLiteral(value, offset)
	}
	w := walk{lines: s.lines, line: value.Line - 1, rest: skipRunes(s.lines[value.Line-1], value.Column-1)}
	switch value.style {
	case singleQuoted, doubleQuoted:
		w.rest = w.rest[min(1, len(w.rest)):]
	case foldedBlock:
		w.nextLine()
	}
	if !w.over(value.Text[:offset], value.style) {
		return value.Position
	}
	return Position{w.line + 1, utf8.RuneCountInString(s.lines[w.line]) - utf8.RuneCountInString(w.rest) + 1}
}

// insideLiteral counts lines: those of a literal block stand as they are, less
// the indentation.
func (s source) insideLiteral(value scalar, offset int) Position {
	before := value.Text[:offset]
	indent := -1
	for _, line := range s.lines[value.Line:] {
		if blank := strings.TrimLeft(line, " "); blank != "" {
			indent = len(line) - len(blank)
			break
		}
	}
	line := value.Line + strings.Count(before, "\n")
	if indent < 0 || line >= len(s.lines) {
		return value.Position
	}
	return Position{line + 1, indent + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1}
}

// walk goes through the text of a file in step with the text of a value.
type walk struct {
	lines []string
	line  int
	rest  string // of the line
}

// over moves past the text and reports whether the file has it.
func (w *walk) over(text string, style style) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if (r == ' ' || r == '\n') && strings.TrimLeft(w.rest, " \t") == "" {
			if !w.fold() {
				return false
			}
			text = strings.TrimLeft(text, " \n")
			continue
		}
		if !w.character(r, style) {
			return false
		}
		text = text[size:]
	}
	return true
}

// fold moves past a line end with the blanks around it.
func (w *walk) fold() bool {
	for w.nextLine() {
		if w.rest = strings.TrimLeft(w.rest, " \t"); w.rest != "" {
			return true
		}
	}
	return false
}

func (w *walk) nextLine() bool {
	if w.line+1 >= len(w.lines) {
		return false
	}
	w.line++
	w.rest = strings.TrimLeft(w.lines[w.line], " \t")
	return true
}

// character moves past one character of the value in its spelling.
func (w *walk) character(r rune, style style) bool {
	switch {
	case style == singleQuoted && r == '\'':
		return w.skip("''")
	case style == doubleQuoted && strings.HasPrefix(w.rest, `\`):
		return w.escape()
	default:
		return w.skip(string(r))
	}
}

func (w *walk) skip(text string) (found bool) {
	w.rest, found = strings.CutPrefix(w.rest, text)
	return found
}

// escape moves past \n, \x41, \u00e9 and the like.
func (w *walk) escape() bool {
	if len(w.rest) < 2 {
		return false
	}
	length := 2
	switch w.rest[1] {
	case 'x':
		length = 4
	case 'u':
		length = 6
	case 'U':
		length = 10
	}
	if len(w.rest) < length {
		return false
	}
	w.rest = skipRunes(w.rest[1:], 1)[length-2:]
	return true
}

// skipRunes is the text behind its first n characters.
func skipRunes(text string, n int) string {
	for range n {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}
