package screen

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Page writes answers for a person.
type Page struct {
	out   io.Writer
	width int
}

// NewPage returns a page that is width columns wide; 0 sets no limit, as for a
// file or a pipe.
func NewPage(out io.Writer, width int) *Page { return &Page{out: out, width: width} }

func (p *Page) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *Page) lines(lines ...string) {
	for _, line := range lines {
		p.printf("%s\n", strings.TrimRight(line, " "))
	}
}

// column is one column of a table.
type column struct {
	head  string
	right bool // aligned, as numbers are
}

// gap stands between two columns, leastWidth is the least that the last column
// is wrapped to.
const gap, leastWidth = 2, 20

// table writes rows without borders. Columns in which every cell is empty are
// left out; the last one is wrapped where the page is narrower than the rows.
func (p *Page) table(columns []column, rows [][]string) {
	columns, rows = withoutEmpty(columns, rows)
	if len(columns) == 0 {
		return
	}
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", gap)
	t.SetStyle(style)
	head, used := table.Row{}, 0
	configs := make([]table.ColumnConfig, len(columns))
	for i, column := range columns {
		head = append(head, column.head)
		configs[i] = table.ColumnConfig{Number: i + 1}
		if column.right {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
		if i < len(columns)-1 {
			used += widest(column.head, rows, i) + gap
		}
	}
	if p.width > 0 {
		last := &configs[len(configs)-1]
		last.WidthMax, last.WidthMaxEnforcer = max(p.width-used-gap, leastWidth), text.WrapSoft
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(head)
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	p.lines(strings.Split(t.Render(), "\n")...)
}

func widest(head string, rows [][]string, i int) int {
	width := text.StringWidthWithoutEscSequences(head)
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[i]))
	}
	return width
}

// withoutEmpty leaves out columns that say nothing.
func withoutEmpty(columns []column, rows [][]string) ([]column, [][]string) {
	var kept []column
	var places []int
	for i, column := range columns {
		for _, row := range rows {
			if row[i] != "" {
				kept, places = append(kept, column), append(places, i)
				break
			}
		}
	}
	out := make([][]string, len(rows))
	for r, row := range rows {
		for _, place := range places {
			out[r] = append(out[r], row[place])
		}
	}
	return kept, out
}

// orDash is a text, or a dash where there is none.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// measureOrDash is a value with its unit, or a dash.
func measureOrDash(value *float64, metric string) string {
	if value == nil {
		return "-"
	}
	return Measure(*value, metric)
}

// secondsOrDash is a duration, or a dash.
func secondsOrDash(s *float64) string {
	if s == nil {
		return "-"
	}
	return Seconds(*s)
}
