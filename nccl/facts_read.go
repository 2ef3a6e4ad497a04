package nccl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// reader takes one kind of message. The literal is in every such message.
type reader struct {
	literal    string
	expression *regexp.Regexp
	read       func(*Facts, Line, []string)
}

func read(literal, expression string, take func(*Facts, Line, []string)) reader {
	return reader{literal, regexp.MustCompile(expression), take}
}

// readers in no particular order. Sources: the INFO texts of NVIDIA/nccl
// src/init.cc, src/misc/param.cc, src/graph/{search,paths,tuning,connect}.cc,
// src/transport/{p2p,shm,net,nvls}.cc, src/plugin/tuner.cc, src/enqueue.cc,
// from 2.12 to 2.31.
var readers = []reader{
	read("NCCL version", `^NCCL version (\d+\.\d+\.\d+)\S*\+cuda(\d+\.\d+)`, readVersion),
	read("cudaDriverVersion", `^cudaDriverVersion (\d{4,6})`, readDriver),
	read("set by environment to", `^(NCCL_\w+) set by environment to (.*)$`, readSet),
	read("Init ", `comm (0x[0-9a-f]+) rank (\d+) nranks (\d+) (.*)- Init (START|COMPLETE)`, readInit),
	read("Init timings", `^Init timings - \w+: rank (\d+) nranks (\d+) total ([\d.]+)`, readInitTime),
	read("coll channels", `^(\d+) coll channels, (?:\d+ collnet channels, )?(?:(\d+) nvls channels, )?(\d+) p2p channels, (\d+) p2p channels per peer`, readChannels),
	read("threadThresholds", `^threadThresholds (\d+)/(\d+)/(\d+) \| (\d+)/(\d+)/(\d+)`, readThresholds),
	read("Channel ", `^Channel \d+/(\d+) :(?: +\d+)+\s*$`, func(f *Facts, line Line, match []string) { f.communicator(line).Rings = number(match[1]) }),
	read(" nNodes ", `^comm (0x[0-9a-f]+) rank (\d+) nRanks (\d+) nNodes (\d+) localRanks (\d+)`, readNodes),
	read("Pattern ", `^Pattern (\d+), crossNic \d+, nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+)`, readSearch),
	read(" via ", `^Channel \d+(?:/\d+)? : \d+\[[0-9a-f]+\] -> \d+\[[0-9a-f]+\](?: \[(?:send|receive)\])? via (.+)$`, readTransport),
	read("Connected ", `^Connected (?:all )?(rings|trees|NVLS tree|\w+ tree)`, readConnected),
	read("multicast support", `NVLS multicast support is (not )?available`, func(f *Facts, _ Line, match []string) { f.Multicast = TriOf(match[1] == "") }),
	read("P2p", `(?:isAllDirectP2p|intraNodeP2pSupport) ([01])`, func(f *Facts, _ Line, match []string) { f.AllDirect = TriOf(match[1] == "1") }),
	read("Symmetric memory", `Symmetric memory is not supported`, func(f *Facts, _ Line, _ []string) { f.SymmetricMemory = No }),
	read("P2P Chunksize", `^P2P Chunksize set to (\d+)`, func(f *Facts, _ Line, match []string) { f.SendChunk = int64(number(match[1])) }),
	read("external tuner plugin", `Successfully loaded external tuner plugin (\S+)`, func(f *Facts, _ Line, match []string) { f.TunerPlugin = match[1] }),
	read("Invalid ", `^Invalid (?:NCCL_\w+ -?\d+ \(|value \S* for NCCL_)`, readAdjusted),
	read("User asked", `^User asked for a (?:minimum|maximum) of`, readAdjusted),
	read("CTAs", `minCTAs \d+ is larger than maxCTAs`, readAdjusted),
	read("_CTAS", `NCCL_M(?:IN|AX)_CTAS -?\d+ is (?:too low|larger)`, readAdjusted),
	read("total number of sockets", `total number of sockets is greater than the maximum allowed`, readAdjusted),
	read("Func/Proto/Algo Matrix", `Enabled NCCL Func/Proto/Algo Matrix`, startMatrix),
	read(" Bytes -> ", operationNow, readOperation),
	read(" Bytes -> ", operationNumbered, readNumberedOperation),
	read(" Bytes -> ", operationSpecial, readSpecialOperation),
	read("Input:", `^Input: \{(.*)\}`, readInput),
	read("Best tuning", `^Best tuning \{(.*)\}`, readBest),
}

// number reads digits that an expression has checked; a number too long for
// the machine counts as 0.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

func decimalFraction(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

func readVersion(f *Facts, _ Line, match []string) {
	version, err := ParseVersion(match[1])
	if err != nil {
		return
	}
	for _, known := range f.Versions {
		if known == version {
			return
		}
	}
	if len(f.Versions) < maxKept {
		f.Versions = append(f.Versions, version)
		f.CUDABuild = match[2]
	}
}

// readDriver: 1000 × major + 10 × minor.
func readDriver(f *Facts, _ Line, match []string) {
	code := number(match[1])
	f.DriverCUDA = fmt.Sprintf("%d.%d", code/1000, code%1000/10)
}

// secretText stands for the value of a secret variable.
const secretText = "(secret)"

// readSet: integers are logged with a full stop, strings without.
func readSet(f *Facts, line Line, match []string) {
	name, value := match[1], match[2]
	if integer := strings.TrimSuffix(value, "."); integer != value {
		if _, err := strconv.ParseInt(integer, 10, 64); err == nil {
			value = integer
		}
	}
	if variable := find(name); variable != nil && variable.Secret {
		value = secretText
	}
	if f.set == nil {
		f.set = map[string]map[string]map[process]bool{}
	}
	values := f.set[name]
	if values == nil {
		if len(f.set) >= maxRecords {
			return
		}
		values = map[string]map[process]bool{}
		f.set[name] = values
	}
	if values[value] == nil {
		if len(values) >= maxKept {
			return
		}
		values[value] = map[process]bool{}
	}
	if len(values[value]) < maxRecords {
		values[value][process{line.Host, line.PID}] = true
	}
}

var (
	busID = regexp.MustCompile(`busId ([0-9a-f]+)`)
	comID = regexp.MustCompile(`commId (0x[0-9a-f]+)`)
	cuda  = regexp.MustCompile(`cudaDev (\d+)`)
)

func readInit(f *Facts, line Line, match []string) {
	c := f.named(line, match[1])
	c.Rank, c.Ranks = number(match[2]), number(match[3])
	if bus := busID.FindStringSubmatch(match[4]); bus != nil {
		c.BusID = bus[1]
	}
	if id := comID.FindStringSubmatch(match[4]); id != nil {
		c.ID = id[1]
	}
	if device := cuda.FindStringSubmatch(match[4]); device != nil {
		c.Device = number(device[1])
	}
	if match[5] == "COMPLETE" {
		c.Complete = true
	}
}

// readInitTime follows or precedes the line that completes the communicator.
func readInitTime(f *Facts, line Line, match []string) {
	f.communicator(line).InitSeconds = decimalFraction(match[3])
}

func readChannels(f *Facts, line Line, match []string) {
	c := f.communicator(line)
	c.Channels, c.NVLSChannels = number(match[1]), number(match[2])
	c.SendChannels, c.SendChannelsPerPeer = number(match[3]), number(match[4])
}

func readThresholds(f *Facts, line Line, match []string) {
	thresholds := make([]int64, 0, thresholdCount)
	for _, digits := range match[1:] {
		thresholds = append(thresholds, int64(number(digits)))
	}
	f.communicator(line).Thresholds = thresholds
}

func readNodes(f *Facts, line Line, match []string) {
	c := f.named(line, match[1])
	c.Rank, c.Ranks, c.Nodes, c.LocalRanks = number(match[2]), number(match[3]), number(match[4]), number(match[5])
}

func readSearch(f *Facts, _ Line, match []string) {
	search := Search{Pattern: number(match[1]), Channels: number(match[2]), BandwidthInside: decimalFraction(match[3]),
		BandwidthNode: decimalFraction(match[4]), Inside: match[5], Outside: match[6]}
	for _, known := range f.Searches {
		if known == search {
			return
		}
	}
	if len(f.Searches) < maxKept {
		f.Searches = append(f.Searches, search)
	}
}

func readTransport(f *Facts, _ Line, match []string) {
	name, _, _ := strings.Cut(match[1], " comm ")
	name = clip(strings.TrimSpace(name))
	if f.Transports == nil {
		f.Transports = map[string]int{}
	}
	if _, known := f.Transports[name]; known || len(f.Transports) < maxRecords {
		f.Transports[name]++
	}
}

func readConnected(f *Facts, _ Line, match []string) {
	if f.Connected == nil {
		f.Connected = map[string]bool{}
	}
	if len(f.Connected) < maxKept {
		f.Connected[match[1]] = true
	}
}

func readAdjusted(f *Facts, line Line, _ []string) {
	f.Adjusted = appendOnce(f.Adjusted, clip(line.Message))
}
