package supervise

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// feed runs a splitter over pieces; an empty piece is a pause.
func feed(pieces ...string) []Line {
	var lines []Line
	s := &splitter{stream: Stdout, emit: func(l Line) { lines = append(lines, l) }}
	for _, piece := range pieces {
		if piece == "" {
			s.pause()
		} else {
			s.write([]byte(piece))
		}
	}
	s.close()
	return lines
}

func TestSplitter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxLine)
	line := func(text string) Line { return Line{Text: text, Stream: Stdout} }
	partial := func(text string) Line { return Line{Text: text, Stream: Stdout, Partial: true} }
	cut := func(text string) Line { return Line{Text: text, Stream: Stdout, Cut: true} }
	tests := map[string]struct {
		pieces []string
		want   []Line
	}{
		"nothing":                    {nil, nil},
		"two lines":                  {[]string{"a\nb\n"}, []Line{line("a"), line("b")}},
		"empty line":                 {[]string{"a\n\nb\n"}, []Line{line("a"), line(""), line("b")}},
		"no end":                     {[]string{"a\nb"}, []Line{line("a"), line("b")}},
		"in pieces":                  {[]string{"a", "b", "c\nd", "\n"}, []Line{line("abc"), line("d")}},
		"carriage returns":           {[]string{"10%\r20%\r30%\n"}, []Line{line("10%"), line("20%"), line("30%")}},
		"line ends of two":           {[]string{"a\r\nb\r", "\nc"}, []Line{line("a"), line("b"), line("c")}},
		"pause within a line":        {[]string{"load", "", "ing\n"}, []Line{partial("load"), line("loading")}},
		"pause, then the end":        {[]string{"loading", "", "\n", "x\n"}, []Line{partial("loading"), line("loading"), line("x")}},
		"two pauses":                 {[]string{"a", "", "", "b", "", "\n"}, []Line{partial("a"), partial("ab"), line("ab")}},
		"pause between lines":        {[]string{"a\n", "", "b\n"}, []Line{line("a"), line("b")}},
		"pause, then the last":       {[]string{"a", ""}, []Line{partial("a"), line("a")}},
		"as long as it may be":       {[]string{long + "\n"}, []Line{line(long)}},
		"too long":                   {[]string{long, "yyy", "z\nb\n"}, []Line{cut(long), line("b")}},
		"too long, with a pause":     {[]string{long + "y", "", "z\n"}, []Line{{Text: long, Stream: Stdout, Partial: true, Cut: true}, cut(long)}},
		"bytes that are not UTF-8":   {[]string{"\xff\xfe\n"}, []Line{line("\xff\xfe")}},
		"newline after a lone break": {[]string{"a\r", "", "\nb\n"}, []Line{line("a"), line("b")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, feed(test.pieces...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// However a text is cut into pieces, its whole lines are the same.
func TestSplitterPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\r\n")), 0, 40, -1).Draw(t, "text")
		want := feed(text)
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "length")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if len(pieces) == 0 {
			return
		}
		if diff := cmp.Diff(want, feed(pieces...)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestLineQueueKeepsTheNewest(t *testing.T) {
	t.Parallel()
	q := newLineQueue()
	const total = 200
	text := strings.Repeat("x", MaxLine)
	for range total {
		q.push(Line{Text: text})
	}
	q.push(Line{Text: "last"})
	q.close()
	first, err := q.pop(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	count, last := 1, first
	for {
		line, err := q.pop(testContext(t))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || line.Skipped != 0 {
			t.Fatal(line.Skipped, err)
		}
		count, last = count+1, line
	}
	if last.Text != "last" {
		t.Errorf("the newest line was lost")
	}
	if first.Skipped == 0 || first.Skipped+count != total+1 {
		t.Errorf("%d lines skipped, %d read of %d", first.Skipped, count, total+1)
	}
}

func TestLineQueueWaits(t *testing.T) {
	t.Parallel()
	q := newLineQueue()
	if _, err := q.pop(shortContext(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("pop of an empty queue: %v", err)
	}
	got := make(chan Line)
	for range 2 {
		go func() {
			line, err := q.pop(testContext(t))
			if err != nil {
				line.Text = err.Error()
			}
			got <- line
		}()
	}
	q.push(Line{Text: "a"})
	q.push(Line{Text: "a"})
	for range 2 {
		if line := <-got; line.Text != "a" {
			t.Errorf("got %q", line.Text)
		}
	}
	for range 2 {
		go func() {
			_, err := q.pop(testContext(t))
			got <- Line{Text: err.Error()}
		}()
	}
	q.close()
	for range 2 {
		if line := <-got; line.Text != io.EOF.Error() {
			t.Errorf("got %q", line.Text)
		}
	}
}
