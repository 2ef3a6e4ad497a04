package sim

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ncclLevel is what NCCL_DEBUG asks for.
type ncclLevel int

const (
	ncclSilent ncclLevel = iota
	ncclVersionOnly
	ncclWarn
	ncclInfo
)

// ncclLog is NCCL's log in one worker.
type ncclLog struct {
	level      ncclLevel
	subsystems []string
	inverted   bool
}

func newNCCLLog(env map[string]string, version ncclVersion) ncclLog {
	levels := map[string]ncclLevel{"VERSION": ncclVersionOnly, "WARN": ncclWarn, "INFO": ncclInfo, "TRACE": ncclInfo}
	l := ncclLog{level: levels[strings.ToUpper(env["NCCL_DEBUG"])], subsystems: []string{"INIT", "ENV"}}
	if version.atLeast(2, 23, 0) {
		l.subsystems = append(l.subsystems, "BOOTSTRAP")
	}
	if list := env["NCCL_DEBUG_SUBSYS"]; list != "" {
		list, l.inverted = strings.CutPrefix(list, "^")
		l.subsystems = tokens(strings.ToUpper(list), ",")
	}
	return l
}

// shows tells whether a line of the subsystem is printed.
func (l ncclLog) shows(line ncclLine) bool {
	if line.warn {
		return l.level >= ncclWarn
	}
	if l.level < ncclInfo {
		return false
	}
	if line.subsystem == "ALL" || slices.Contains(l.subsystems, "ALL") {
		return true
	}
	return slices.Contains(l.subsystems, line.subsystem) != l.inverted
}

// printNCCL writes lines as the worker of the rank would.
func (p *process) printNCCL(rank int, lines ...ncclLine) {
	filter := newNCCLLog(p.launch.workerEnv, p.options.nccl)
	prefix := fmt.Sprintf("%s:%d:%[2]d [%d]", p.host, p.workers.pid(rank), rank)
	var b strings.Builder
	for _, line := range lines {
		switch {
		case !filter.shows(line):
		case line.warn && p.options.nccl.atLeast(2, 26, 0):
			fmt.Fprintf(&b, "\n[%s] %s enqueue.cc:2050 NCCL WARN %s\n", time.Now().Format(stamp), prefix, line.text)
		case line.warn:
			fmt.Fprintf(&b, "\n%s enqueue.cc:2050 NCCL WARN %s\n", prefix, line.text)
		default:
			fmt.Fprintf(&b, "%s NCCL INFO %s\n", prefix, line.text)
		}
	}
	if b.Len() > 0 {
		p.log.write(p.ncclOutput(rank, filter.level), b.String())
	}
}

// ncclOutput is where a rank's NCCL logs: stdout, or the file that
// NCCL_DEBUG_FILE names above level VERSION, truncated when it is opened.
func (p *process) ncclOutput(rank int, level ncclLevel) io.Writer {
	pattern := p.launch.workerEnv["NCCL_DEBUG_FILE"]
	if pattern == "" || level <= ncclVersionOnly {
		return p.log.stdout
	}
	path := strings.NewReplacer("%h", p.host, "%p", strconv.Itoa(p.workers.pid(rank))).Replace(pattern)
	if file, open := p.ncclFiles[path]; open {
		return file
	}
	file, err := os.Create(path)
	if err != nil {
		return p.log.stdout // as NCCL does
	}
	p.ncclFiles[path] = file
	return file
}

// logNCCLInit prints what every rank says while the communicator is made.
func (p *process) logNCCLInit() {
	level := newNCCLLog(p.launch.workerEnv, p.options.nccl).level
	build := fmt.Sprintf("NCCL version %s+cuda%s", p.options.nccl, p.options.cuda)
	switch {
	case level == ncclSilent:
		return
	case level < ncclInfo || !p.options.nccl.atLeast(2, 23, 0):
		p.log.write(p.ncclOutput(0, level), build+"\n")
	}
	for rank := range p.options.ranks() {
		p.printNCCL(rank, p.initLines(rank, build)...)
	}
}

func (p *process) initLines(rank int, build string) []ncclLine {
	c := p.launch.comm
	line := func(subsystem, format string, args ...any) ncclLine {
		return ncclLine{subsystem: subsystem, text: fmt.Sprintf(format, args...)}
	}
	ranks := p.options.ranks()
	id := fmt.Sprintf("comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0x%x",
		0x5600_0000_0000+uint64(rank+1)*0x10_0000, rank, ranks, rank, rank, p.options.machine.firstBus+rank*0x20, p.launch.identity())
	var lines []ncclLine
	if c.version.atLeast(2, 28, 9) {
		lines = append(lines, line("INIT", "ENV/Plugin: Could not find: libnccl-env.so"))
	}
	lines = append(lines,
		line("INIT", "cudaDriverVersion %s", driverVersion(p.options.cuda)),
		line("ALL", "%s", build),
		line("INIT", "Comm config Blocking set to 1"),
		line("INIT", "NET/Plugin: Could not find: libnccl-net.so"),
		line("INIT", "NET/IB : No device found."),
		line("INIT", "Using network Socket"),
		line("INIT", "ncclCommInitRankConfig %s - Init START", id))
	lines = append(lines, c.log...)
	if p.launch.stage == failsAtInit && p.launch.outcome == Crash {
		return lines
	}
	path := pathNames[p.options.machine.far]
	lines = append(lines,
		line("GRAPH", "=== System : maxBw %.1f totalBw %.1f ===", 48.0, 48.0),
		line("GRAPH", "Pattern 4, crossNic 0, nChannels %d, bw 12.000000/12.000000, type %s/PIX, sameChannels 1", p.options.machine.channels, path))
	if rank == 0 {
		for channel := range c.channels {
			lines = append(lines, line("INIT", "Channel %02d/%02d : %s", channel, c.channels, ringOrder(ranks)))
		}
	}
	lines = append(lines,
		line("INIT", "P2P Chunksize set to 131072"),
		line("INIT", "threadThresholds %d/%d/%d | %d/%d/%d | 512 | 512", c.thresholds[0][ll], c.thresholds[0][ll128], c.thresholds[0][simple],
			c.thresholds[1][ll], c.thresholds[1][ll128], c.thresholds[1][simple]),
		line("INIT", "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels per peer",
			c.channels, 0, nvlsChannels(c), 8, 2))
	if rank == 0 && c.version.atLeast(2, 24, 0) {
		lines = append(lines, c.matrix()...)
	}
	lines = append(lines, line("INIT", "ncclCommInitRankConfig %s - Init COMPLETE", id))
	next := (rank + 1) % ranks
	for channel := range c.channels {
		lines = append(lines, line("INIT", "Channel %02d/0 : %d[%d] -> %d[%d] via %s", channel, rank, rank, next, next, c.via(rank, next)))
	}
	return append(lines, line("INIT", "Connected all rings, use ring PXN 0 GDR 1"), line("INIT", "Connected all trees"))
}

func nvlsChannels(c *communicator) int {
	if c.nvls {
		return 16
	}
	return 0
}

// via is the transport between two neighbours.
func (c *communicator) via(a, b int) string {
	half := max(1, c.ranks/2)
	direct := c.nearP2P
	if a/half != b/half {
		direct = c.farP2P
	}
	switch {
	case direct:
		return "P2P/IPC" // SGLang turns cuMem off
	case c.network:
		return "NET/Socket/0"
	default:
		return "SHM/direct/direct"
	}
}

func ringOrder(ranks int) string {
	order := make([]string, ranks)
	for i := range order {
		order[i] = fmt.Sprint(i)
	}
	return strings.Join(order, " ")
}

// driverVersion is CUDA's 1000 x major + 10 x minor.
func driverVersion(cuda string) string {
	var major, minor int
	_, _ = fmt.Sscanf(cuda, "%d.%d", &major, &minor) // "0" shows a version that cannot be read
	return fmt.Sprint(1000*major + 10*minor)
}

// matrix is the table of what remains enabled, as 2.24 and later print it.
func (c *communicator) matrix() []ncclLine {
	var lines []ncclLine
	add := func(text string) { lines = append(lines, ncclLine{subsystem: "ENV", text: text}) }
	add("Enabled NCCL Func/Proto/Algo Matrix:")
	header := fmt.Sprintf("     Function | %5s  %5s  %6s  |", "LL", "LL128", "Simple")
	for _, name := range algorithmNames {
		header += fmt.Sprintf("%14s", name)
	}
	add(header)
	for f, name := range functionNames {
		row := fmt.Sprintf("%13s |", name)
		for p := range protocols {
			row += fmt.Sprintf("%6d ", c.choice.protocols[f][p])
		}
		row += " |"
		for a := range algorithms {
			row += fmt.Sprintf("%14d", c.choice.algorithms[f][a])
		}
		add(row)
	}
	return lines
}

// logNCCLFailure prints the warning before NCCL gives up.
func (p *process) logNCCLFailure(reason string) {
	for rank := range p.options.ranks() {
		p.printNCCL(rank, ncclLine{warn: true, text: reason}, ncclLine{subsystem: "ALL", text: "enqueue.cc:2050 -> 5"})
	}
}

// logOperations prints one line for every all-reduce that graph capture enqueues;
// none where NCCL is bypassed.
func (p *process) logOperations() {
	perf, c := p.launch.performance, p.launch.comm
	if perf.bypass || !c.version.atLeast(2, 20, 0) {
		return
	}
	batch := p.options.graphBatch()
	for _, size := range []int{batch, 64, 32, 16, 8, 4, 2, 1} {
		if size > batch {
			continue
		}
		bytes := size * max(1, perf.verified) * hiddenBytes
		a, proto := c.choose(bytes)
		channels, _ := c.split(a, proto, bytes)
		var text string
		switch {
		case c.version.atLeast(2, 24, 0):
			text = fmt.Sprintf("AllReduce: %d Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}", bytes, strings.ToUpper(algorithmNames[a]), strings.ToUpper(protocolNames[proto]), channels-1)
			if c.version.atLeast(2, 31, 0) {
				text += " cgaClusterSize 4"
			}
		default:
			text = fmt.Sprintf("%d Bytes -> Algo %d proto %d time %f", bytes, a, proto, c.allReduce(bytes))
			if c.version.atLeast(2, 23, 0) {
				text = "AllReduce: " + text
			}
		}
		p.printNCCL(0, ncclLine{subsystem: "TUNING", text: text})
	}
}
