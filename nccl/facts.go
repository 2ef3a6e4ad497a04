package nccl

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Facts is what a log says. Feed it the output of a server line by line, other
// programs' lines included; the zero value is ready. It keeps a bounded amount
// whatever it is fed. It is not safe for concurrent use.
type Facts struct {
	// Versions of NCCL seen, in order; two of them are a fault.
	Versions []Version
	// CUDABuild is the CUDA that NCCL was built with, DriverCUDA the one that
	// the driver offers: "13.0".
	CUDABuild, DriverCUDA string

	Communicators []*Communicator
	Searches      []Search
	// Transports counts the channels of a transport: "P2P/CUMEM",
	// "P2P/direct pointer", "SHM/direct/direct", "NET/IB/0/GDRDMA". From 2.22
	// on they appear at the first collective.
	Transports map[string]int
	// Connected holds what was ever connected: "rings", "trees", "NVLS tree".
	Connected map[string]bool
	// Multicast is whether NVLS can be used.
	Multicast Tri
	// AllDirect is whether every pair of a node talks directly.
	AllDirect Tri
	// SymmetricMemory is No when NCCL says that it is not supported.
	SymmetricMemory Tri
	// SendChunk is the chunk of send and receive in bytes, 0 when not logged.
	SendChunk int64
	// TunerPlugin is the external tuner that was loaded.
	TunerPlugin string

	// Matrix is what NCCL_ALGO and NCCL_PROTO leave: function, then protocol
	// or algorithm, as 0 off, 1 on, 2 automatic. From 2.24, when one is set.
	Matrix map[string]map[string]int

	// Adjusted are messages by which NCCL says that it changed a setting.
	Adjusted []string
	// Warnings are the WARN messages, each once.
	Warnings []string
	// Failures and Notices by reason, in the order of their first line.
	Failures, Notices []Failure

	set        map[string]map[string]map[process]bool
	current    map[thread]*Communicator
	operations map[operationKey]*Operation
	pending    map[thread]decision
	costs      map[costKey]Cost
	threads    map[costKey]int
	tables     map[process]*table
}

// Communicator is one rank of a communicator. A server has several: its own
// and PyTorch's, for each group. The one that carries the all-reduce has as
// many ranks as the tensor-parallel size.
type Communicator struct {
	Host    string
	PID     int
	Pointer string // identifies it within its process
	ID      string // the same for all ranks; not printed by old releases

	Rank, Ranks int
	Device      int // CUDA index in the process
	BusID       string
	Nodes       int // 0 when not logged
	LocalRanks  int // 0 when not logged

	Complete    bool
	InitSeconds float64 // 0 when not logged

	// Channels for collectives, NVLS, and send and receive; 0 when not logged.
	Channels, NVLSChannels, SendChannels, SendChannelsPerPeer int
	// Rings is the number of rings, printed by rank 0.
	Rings int
	// Thresholds in bytes per thread: Tree LL, LL128, Simple, Ring LL, LL128, Simple.
	Thresholds []int64
}

// Search is a result of the topology search.
type Search struct {
	Pattern, Channels              int
	BandwidthInside, BandwidthNode float64 // GB/s inside a node, between nodes
	// Inside is the worst path inside the node, Outside to the network.
	Inside, Outside string
}

type process struct {
	host string
	pid  int
}

type thread struct {
	process
	tid int
}

// Bounds on what is kept, far above what a healthy server prints.
const (
	maxKept    = 200
	maxRecords = 4096
)

// Add takes one line of output.
func (f *Facts) Add(text string) {
	if failure, ok := Diagnose(text); ok {
		f.addFailure(failure)
	}
	line, ok := ParseLine(text)
	if !ok {
		f.addTableRow(text)
		return
	}
	if line.Severity == SeverityWarn {
		f.Warnings = appendOnce(f.Warnings, clip(line.Message))
	}
	for i := range readers {
		reader := &readers[i]
		if !strings.Contains(line.Message, reader.literal) {
			continue
		}
		if match := reader.expression.FindStringSubmatch(line.Message); match != nil {
			reader.read(f, line, match)
		}
	}
	f.addCostRow(line)
}

func (f *Facts) addFailure(failure Failure) {
	list := &f.Failures
	if failure.Class == ClassNotice {
		list = &f.Notices
	}
	for i := range *list {
		if (*list)[i].Reason == failure.Reason {
			(*list)[i].Count++
			return
		}
	}
	*list = append(*list, failure)
}

// Failure returns the failure that explains the others: the first whose text
// is no consequence of another one, else the first.
func (f *Facts) Failure() (Failure, bool) {
	for _, failure := range f.Failures {
		if !failure.Consequence {
			return failure, true
		}
	}
	if len(f.Failures) == 0 {
		return Failure{}, false
	}
	return f.Failures[0], true
}

// Version returns the version of NCCL, unknown when the log has none or two.
func (f *Facts) Version() Version {
	if len(f.Versions) != 1 {
		return Version{}
	}
	return f.Versions[0]
}

// Complete reports whether communicators began and every rank that began is
// ready. After that a silent log with busy GPUs and low power is a hang.
func (f *Facts) Complete() bool {
	unfinished := func(c *Communicator) bool { return c.Pointer != "" && !c.Complete }
	return len(f.Communicators) > 0 && !slices.ContainsFunc(f.Communicators, unfinished)
}

// Values returns the values that "set by environment" lines give a variable,
// sorted; several when processes differ. It proves that NCCL read the variable
// and how, not that it had an effect.
func (f *Facts) Values(name string) []string {
	return slices.Sorted(maps.Keys(f.set[name]))
}

// Operations returns the collectives that were enqueued, by function and size.
// With CUDA graphs each is counted at capture, never at replay.
func (f *Facts) Operations() []Operation {
	operations := make([]Operation, 0, len(f.operations))
	for _, operation := range f.operations {
		operations = append(operations, *operation)
	}
	slices.SortFunc(operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Kernel, b.Kernel),
			cmp.Compare(a.Channels, b.Channels))
	})
	return operations
}

// Refine fills the unknown facts of a context from the log of a launch without
// NCCL settings.
func (f *Facts) Refine(c Context) Context {
	if !c.Version.Known() {
		c.Version = f.Version()
	}
	for _, communicator := range f.Communicators {
		if c.Nodes == 0 {
			c.Nodes = communicator.Nodes
		}
		if c.Channels == 0 && c.Ranks > 0 && communicator.Ranks == c.Ranks {
			c.Channels = communicator.Channels
		}
	}
	if threads, ok := f.MaxThreads("Ring", "Simple"); ok && c.RingSimpleThreads == 0 {
		c.RingSimpleThreads = threads
	}
	if c.NVSwitch == Unknown && f.Multicast == Yes {
		c.NVSwitch = Yes
	}
	return c
}

// communicator returns the one that a thread is setting up.
func (f *Facts) communicator(line Line) *Communicator {
	key := thread{process{line.Host, line.PID}, line.TID}
	if c := f.current[key]; c != nil {
		return c
	}
	c := &Communicator{Host: line.Host, PID: line.PID, Device: line.Device, Rank: -1}
	if f.current == nil {
		f.current = map[thread]*Communicator{}
	}
	if len(f.Communicators) < maxRecords {
		f.Communicators = append(f.Communicators, c)
		f.current[key] = c
	}
	return c
}

// named returns the communicator with a pointer. A draft that collected facts
// before its name was known takes the name.
func (f *Facts) named(line Line, pointer string) *Communicator {
	for _, c := range f.Communicators {
		if c.Host == line.Host && c.PID == line.PID && c.Pointer == pointer && !c.Complete {
			f.current[thread{process{line.Host, line.PID}, line.TID}] = c
			return c
		}
	}
	key := thread{process{line.Host, line.PID}, line.TID}
	if c := f.current[key]; c != nil && c.Pointer != "" {
		delete(f.current, key)
	}
	c := f.communicator(line)
	c.Pointer = pointer
	return c
}

// appendOnce keeps a bounded list of different texts.
func appendOnce(list []string, text string) []string {
	if len(list) >= maxKept || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
