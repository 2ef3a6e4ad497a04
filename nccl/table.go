package nccl

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Cost is what NCCL's model holds of a combination.
type Cost struct {
	Microseconds float64 // latency
	// Bandwidth in GB/s; 0 means that the combination is off, up to 2.30.
	Bandwidth float64
}

type costKey struct{ function, algorithm, protocol string }

// table is the state of the tables that a process prints over several lines.
type table struct {
	columns []costKey // of the cost table, function left empty
	matrix  []string  // column names of the function matrix
	open    bool      // rows of the matrix may follow
}

func (f *Facts) table(p process) *table {
	if f.tables == nil {
		f.tables = map[process]*table{}
	}
	t := f.tables[p]
	if t == nil {
		t = &table{}
		if len(f.tables) < maxRecords {
			f.tables[p] = t
		}
	}
	return t
}

// startMatrix opens the matrix of a process. Its rows follow as bare lines, so
// that they cannot be told apart when two processes print at once; the newest
// header counts.
func startMatrix(f *Facts, line Line, _ []string) {
	for _, t := range f.tables {
		t.open = false
	}
	t := f.table(process{line.Host, line.PID})
	t.open, t.matrix = true, nil
}

var matrixRow = regexp.MustCompile(`^(?:\([^)]*\) )?\s*(Function|Broadcast|Reduce|AllGather|ReduceScatter|AllReduce) \|(.*)$`)

// addTableRow takes a line without NCCL's prefix, which may be a matrix row:
//
//	 Function |       LL     LL128    Simple   |          Tree           Ring
//	AllReduce |        1         2         1   |             1              0
func (f *Facts) addTableRow(text string) {
	if !strings.Contains(text, " |") {
		return
	}
	match := matrixRow.FindStringSubmatch(strings.TrimRight(text[:min(len(text), maxLine)], "\r\n"))
	if match == nil {
		return
	}
	for _, t := range f.tables {
		if t.open {
			f.addMatrixRow(t, match[1], strings.Fields(strings.ReplaceAll(match[2], "|", " ")))
			return
		}
	}
}

func (f *Facts) addMatrixRow(t *table, function string, cells []string) {
	if function == "Function" {
		t.matrix = cells[:min(len(cells), maxKept)]
		return
	}
	if len(t.matrix) == 0 || len(cells) != len(t.matrix) {
		return
	}
	row := map[string]int{}
	for i, cell := range cells {
		value, err := strconv.Atoi(cell)
		if err != nil {
			return
		}
		row[t.matrix[i]] = value
	}
	if f.Matrix == nil {
		f.Matrix = map[string]map[string]int{}
	}
	f.Matrix[function] = row
}

// costTableRow begins a row of the table of rank 0:
//
//	 Algorithm   |                            Tree                  |  ...
//	 Protocol    |             LL |          LL128 |         Simple |  ...
//	Max NThreads |            512 |            640 |            512 |  ...
//	   AllReduce |     4.4/   0.0 |     7.7/   0.0 |    12.3/   4.5 |  ...
//
// Old releases have one header row of the form "Latency/AlgBw | Tree/ LL | ...".
var costTableRow = regexp.MustCompile(`^\s*(Algorithm|Protocol|Max NThreads|Latency/AlgBw|Broadcast|Reduce|AllGather|ReduceScatter|AllReduce)\s+\|(.*)$`)

func (f *Facts) addCostRow(line Line) {
	if !strings.Contains(line.Message, " |") {
		return
	}
	match := costTableRow.FindStringSubmatch(line.Message)
	if match == nil {
		return
	}
	t := f.table(process{line.Host, line.PID})
	cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(match[2]), "|"), "|")
	cells = cells[:min(len(cells), maxKept)]
	switch match[1] {
	case "Algorithm":
		t.columns = nil
		for _, cell := range cells {
			for _, protocol := range protocolGrammar.names {
				t.columns = append(t.columns, costKey{algorithm: spelled(algorithmGrammar, strings.TrimSpace(cell)), protocol: protocol})
			}
		}
	case "Latency/AlgBw":
		t.columns = nil
		for _, cell := range cells {
			algorithm, protocol, _ := strings.Cut(cell, "/")
			t.columns = append(t.columns, costKey{algorithm: spelled(algorithmGrammar, strings.TrimSpace(algorithm)),
				protocol: spelled(protocolGrammar, strings.TrimSpace(protocol))})
		}
	case "Protocol":
	case "Max NThreads":
		f.addThreads(t, cells)
	default:
		f.addCosts(t, match[1], cells)
	}
}

func (f *Facts) addThreads(t *table, cells []string) {
	if f.threads == nil {
		f.threads = map[costKey]int{}
	}
	for i, cell := range cells[:min(len(cells), len(t.columns))] {
		if n, err := strconv.Atoi(strings.TrimSpace(cell)); err == nil && len(f.threads) < maxRecords {
			f.threads[t.columns[i]] = n
		}
	}
}

func (f *Facts) addCosts(t *table, function string, cells []string) {
	if f.costs == nil {
		f.costs = map[costKey]Cost{}
	}
	for i, cell := range cells[:min(len(cells), len(t.columns))] {
		latency, bandwidth, found := strings.Cut(cell, "/")
		if !found || len(f.costs) >= maxRecords {
			continue
		}
		key := t.columns[i]
		key.function = function
		f.costs[key] = Cost{decimalFraction(strings.TrimSpace(latency)), decimalFraction(strings.TrimSpace(bandwidth))}
	}
}

// Cost returns what the cost table says of a combination, such as
// ("AllReduce", "Ring", "LL").
func (f *Facts) Cost(function, algorithm, protocol string) (Cost, bool) {
	cost, ok := f.costs[costKey{function, algorithm, protocol}]
	return cost, ok
}

// MaxThreads returns the Max NThreads row of the cost table: the thread count
// after clamping. It is not printed from 2.31 on.
func (f *Facts) MaxThreads(algorithm, protocol string) (int, bool) {
	threads, ok := f.threads[costKey{algorithm: algorithm, protocol: protocol}]
	return threads, ok
}

// Enabled lists the columns of the matrix that are on (1) or automatic (2) for
// a function, sorted; nil when there is no row.
func (f *Facts) Enabled(function string) []string {
	var enabled []string
	for name, value := range f.Matrix[function] {
		if value != 0 {
			enabled = append(enabled, name)
		}
	}
	slices.Sort(enabled)
	return enabled
}
