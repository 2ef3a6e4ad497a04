package fingerprint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// escape matches the terminal codes that nvidia-smi prints even into a pipe.
var escape = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// gpuLabel matches the name of a GPU's row or column.
var gpuLabel = regexp.MustCompile(`^GPU([0-9]{1,3})$`)

// gpuNumber reads a label such as GPU12.
func gpuNumber(label string) (int, bool) {
	match := gpuLabel.FindStringSubmatch(label)
	if match == nil {
		return 0, false
	}
	number, err := strconv.Atoi(match[1])
	return number, err == nil
}

// matrix is a square table over GPUs.
type matrix struct {
	gpus  []int // ascending
	cells [][]string
}

// parseTopology reads `nvidia-smi topo -m`: one tab-separated row a GPU, between
// columns and rows of network cards and before columns of affinities, whose
// number changes with the driver. Only GPU columns are read, by their place in
// the heading.
func parseTopology(text string) (matrix, error) {
	return parseMatrix(text, func(line string) []string {
		fields := strings.Split(line, "\t")
		for i, field := range fields {
			fields[i] = strings.TrimSpace(field)
		}
		return fields
	})
}

// parseP2P reads `nvidia-smi topo -p2p r`, which is laid out by blanks and tabs as
// it pleases.
func parseP2P(text string) (matrix, error) {
	return parseMatrix(text, func(line string) []string {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			return nil
		}
		if _, isGPU := gpuNumber(fields[0]); isGPU && (len(fields) == 1 || isHeading(fields)) {
			return append([]string{""}, fields...) // the heading has no row label
		}
		return fields
	})
}

// isHeading says that a line names GPUs and holds no cell of a matrix.
func isHeading(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool {
		_, isGPU := gpuNumber(field)
		return !isGPU
	})
}

// parseMatrix reads a heading and the rows of the GPUs that it names.
func parseMatrix(text string, split func(string) []string) (matrix, error) {
	var columns map[int]int // GPU number to field index
	rows := map[int][]string{}
	for line := range strings.Lines(escape.ReplaceAllString(text, "")) {
		fields := split(strings.TrimRight(line, "\r\n"))
		if columns == nil {
			columns = headingColumns(fields)
			continue
		}
		if len(fields) == 0 {
			continue
		}
		if gpu, isGPU := gpuNumber(fields[0]); isGPU {
			if _, twice := rows[gpu]; twice {
				return matrix{}, fmt.Errorf("two rows for GPU %d", gpu)
			}
			rows[gpu] = fields
		}
	}
	if columns == nil {
		return matrix{}, fmt.Errorf("no heading with GPU columns in %q", abridge(text))
	}
	return assemble(columns, rows)
}

// headingColumns finds the GPU columns of a heading; nil when it is none.
func headingColumns(fields []string) map[int]int {
	if len(fields) < 2 || fields[0] != "" {
		return nil
	}
	var columns map[int]int
	for i, field := range fields {
		gpu, isGPU := gpuNumber(field)
		if !isGPU {
			continue
		}
		if columns == nil {
			columns = map[int]int{}
		}
		columns[gpu] = i
	}
	return columns
}

func assemble(columns map[int]int, rows map[int][]string) (matrix, error) {
	var m matrix
	for gpu := range columns {
		m.gpus = append(m.gpus, gpu)
	}
	slices.Sort(m.gpus)
	for _, row := range m.gpus {
		fields, ok := rows[row]
		if !ok {
			return matrix{}, fmt.Errorf("no row for GPU %d", row)
		}
		cells := make([]string, 0, len(m.gpus))
		for _, column := range m.gpus {
			if columns[column] >= len(fields) {
				return matrix{}, fmt.Errorf("the row of GPU %d ends before the column of GPU %d", row, column)
			}
			cells = append(cells, fields[columns[column]])
		}
		m.cells = append(m.cells, cells)
	}
	return m, nil
}

// summary is one word when all pairs agree, else the rows.
func (m matrix) summary() string {
	words := map[string]bool{}
	rows := make([]string, 0, len(m.cells))
	for i, row := range m.cells {
		for j, cell := range row {
			if i != j {
				words[cell] = true
			}
		}
		rows = append(rows, strings.Join(row, " "))
	}
	if len(words) == 1 {
		for word := range words {
			return word
		}
	}
	return strings.Join(rows, " | ")
}

// abridge is the start of a text on one line, for messages.
func abridge(text string) string {
	const limit = 120
	line := strings.Join(strings.Fields(escape.ReplaceAllString(text, "")), " ")
	if len(line) > limit {
		return line[:limit] + " ..."
	}
	return line
}
