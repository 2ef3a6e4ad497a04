package nccl

import (
	"regexp"
	"strconv"
	"strings"
)

// Operation is a kind of collective that was enqueued, as the TUNING lines of
// rank 0 show it from 2.20 on.
type Operation struct {
	Function string // "AllReduce"; empty from 2.20 to 2.22
	// Kind is empty for an ordinary collective, else "Symmetric", "Copy Engine"
	// or "Hierarchical CE".
	Kind string
	// Bytes is count × element size: per rank for AllGather and ReduceScatter.
	Bytes               int64
	Algorithm, Protocol string // as Canonicalize spells them
	Kernel              string // of symmetric operations
	// Channels used, 0 when not logged (before 2.24).
	Channels int
	// Threads of a block, 0 when not logged (before 2.31 but for symmetric ones).
	Threads int
	// Microseconds that the cost model expects, 0 when not logged.
	Microseconds float64
	// Count of the lines.
	Count int
}

type operationKey struct {
	function, kind, algorithm, protocol, kernel string
	bytes                                       int64
	channels                                    int
}

// decision is what 2.31 logs before the operation itself.
type decision struct {
	function string
	bytes    int64
	threads  int
	time     float64
}

// Forks append fields, so that only the beginning has to match.
const (
	operationNow = `^(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AllGatherV): (\d+) Bytes -> Algo (\w+) proto (\w+)` +
		`(?: time ([\d.]+))?(?: channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})?`
	operationNumbered = `^(\d+) Bytes -> Algo (\d+) proto (\d+) time ([\d.]+)`
	operationSpecial  = `^(\w+) \[(Symmetric|Copy Engine|Hierarchical CE)\]: (\d+) Bytes -> (.*)$`
)

var symmetricKernel = regexp.MustCompile(`^Kernel (\S+) nchannels (\d+) nthreads (\d+)`)

func readOperation(f *Facts, line Line, match []string) {
	operation := Operation{Function: match[1], Algorithm: spelled(algorithmGrammar, match[3]), Protocol: spelled(protocolGrammar, match[4]),
		Microseconds: decimalFraction(match[5])}
	if match[6] != "" {
		operation.Channels = number(match[7]) - number(match[6]) + 1
	}
	f.addOperation(line, operation, match[2])
}

func readNumberedOperation(f *Facts, line Line, match []string) {
	f.addOperation(line, Operation{Algorithm: spelled(algorithmGrammar, match[2]), Protocol: spelled(protocolGrammar, match[3]),
		Microseconds: decimalFraction(match[4])}, match[1])
}

func readSpecialOperation(f *Facts, line Line, match []string) {
	operation := Operation{Function: match[1], Kind: match[2]}
	if kernel := symmetricKernel.FindStringSubmatch(match[4]); kernel != nil {
		operation.Kernel, operation.Channels, operation.Threads = kernel[1], number(kernel[2]), number(kernel[3])
	}
	f.addOperation(line, operation, match[3])
}

// spelled returns the canonical spelling of a name or number of the log; an
// unknown one stays as it is.
func spelled(g grammar, text string) string {
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(g.names) {
		return g.names[i]
	}
	for _, name := range g.names {
		if strings.EqualFold(name, strings.ReplaceAll(text, "_", "")) {
			return name
		}
	}
	return text
}

func (f *Facts) addOperation(line Line, operation Operation, bytes string) {
	n, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		return
	}
	operation.Bytes = n
	key := thread{process{line.Host, line.PID}, line.TID}
	if made, ok := f.pending[key]; ok && made.bytes == n && made.function == operation.Function {
		if operation.Threads == 0 {
			operation.Threads = made.threads
		}
		if operation.Microseconds == 0 {
			operation.Microseconds = made.time
		}
		delete(f.pending, key)
	}
	f.count(operation)
}

func (f *Facts) count(operation Operation) {
	key := operationKey{operation.Function, operation.Kind, operation.Algorithm, operation.Protocol, operation.Kernel, operation.Bytes, operation.Channels}
	if known := f.operations[key]; known != nil {
		known.Count++
		return
	}
	if f.operations == nil {
		f.operations = map[operationKey]*Operation{}
	}
	if len(f.operations) < maxRecords {
		operation.Count = 1
		f.operations[key] = &operation
	}
}

var braceField = regexp.MustCompile(`\.?(\w+) = ([^,{}]+)`)

func braceFields(text string) map[string]string {
	fields := map[string]string{}
	for _, match := range braceField.FindAllStringSubmatch(text, -1) {
		fields[match[1]] = strings.TrimSpace(match[2])
	}
	return fields
}

// readInput remembers what 2.31 is about to decide on.
func readInput(f *Facts, line Line, match []string) {
	fields := braceFields(match[1])
	n, err := strconv.ParseInt(fields["nBytes"], 10, 64)
	if err != nil {
		return
	}
	if f.pending == nil {
		f.pending = map[thread]decision{}
	}
	if len(f.pending) < maxRecords {
		f.pending[thread{process{line.Host, line.PID}, line.TID}] = decision{function: fields["func"], bytes: n}
	}
}

// readBest adds the decision; a warp has 32 threads.
func readBest(f *Facts, line Line, match []string) {
	key := thread{process{line.Host, line.PID}, line.TID}
	made, ok := f.pending[key]
	if !ok {
		return
	}
	fields := braceFields(match[1])
	made.threads, made.time = 32*number(fields["nWarps"]), decimalFraction(fields["timeUs"])
	f.pending[key] = made
}
