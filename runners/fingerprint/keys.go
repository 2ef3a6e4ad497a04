package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nocturne/runners"
)

// Prefixes name the recipe of a key. A change of recipe takes a new number.
const (
	hardwarePrefix = "hw1:"
	stackPrefix    = "st1:"
	instancePrefix = "in1:"
)

// HardwareKey digests what makes two machines comparable: GPU names, memory
// classes and counts, the links between them, PCIe maxima, CPU model, sockets and
// NUMA nodes, and whether the machine is simulated. The order of the GPUs does
// not matter.
func HardwareKey(h runners.Hardware) string {
	return hardwarePrefix + digest(struct {
		GPUs      []string
		CPU       string
		Sockets   int
		NUMANodes int
		Simulated bool
	}{gpuColours(h), h.CPU, h.Sockets, h.NUMANodes, h.Simulated})
}

// StackKey digests all fields of a stack but the key. Call it again once the
// server has told what it runs.
func StackKey(s runners.Stack) string {
	s.Key = ""
	return stackPrefix + digest(s)
}

// instance names a box by its GPUs and its machine id.
func instance(gpus []runners.GPU, machineID string) string {
	var uuids []string
	for _, gpu := range gpus {
		uuids = append(uuids, gpu.UUID)
	}
	slices.Sort(uuids)
	return instancePrefix + digest(append(uuids, machineID))
}

// digest is the start of the SHA-256 of the JSON of v: 64 bits tell any number
// of machines apart and still fit into a table.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fingerprint: digest of %T: %v", v, err)) // strings, numbers and lists only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// gpuColours describes the GPUs and their links independently of their order, by
// colour refinement (Weisfeiler-Lehman): each GPU starts with its own properties
// and takes in, round by round, the links to all others with their colours, until
// a round tells no more GPUs apart. The sorted colours are the description. Equal
// topologies always agree; unequal ones may only where every GPU sees the same
// numbers of the same links to the same kinds of GPUs, and machines are not built
// in two such ways.
func gpuColours(h runners.Hardware) []string {
	colours := make([]string, len(h.GPUs))
	for i, gpu := range h.GPUs {
		colours[i] = digest([]any{gpu.Name, memoryClass(gpu.MemoryMiB), gpu.PCIeGenMax, gpu.PCIeWidthMax})
	}
	for kinds := 0; kinds < distinct(colours); {
		kinds = distinct(colours)
		next := make([]string, len(colours))
		for i := range colours {
			var seen []string
			for j := range colours {
				if i != j {
					seen = append(seen, link(h.Links, i, j)+"|"+link(h.Links, j, i)+"|"+colours[j])
				}
			}
			slices.Sort(seen)
			next[i] = digest([]any{colours[i], seen})
		}
		colours = next
	}
	slices.Sort(colours)
	return colours
}

func distinct(values []string) int {
	sorted := slices.Sorted(slices.Values(values))
	return len(slices.Compact(sorted))
}

// link is a cell of the matrix, "" where it is not known.
func link(links [][]string, i, j int) string {
	if i < len(links) && j < len(links[i]) {
		return links[i][j]
	}
	return ""
}

// memorySizes are the sizes that GPUs are sold with, in GiB.
var memorySizes = []int64{
	1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 72, 80, 94, 96, 128, 141, 144, 180, 192, 256, 288, 384,
}

// memoryClass is the size that a GPU was sold with, in GiB: the smallest that
// holds what it reports. Reports fall short of it by what the driver reserves,
// which changes with the driver, and by a sixteenth with ECC on GDDR memory.
func memoryClass(mebibytes int64) int64 {
	for _, size := range memorySizes {
		if mebibytes <= size<<10 {
			return size
		}
	}
	const step = 64
	return (mebibytes>>10 + step) / step * step
}

// hardwareName describes a machine for people.
func hardwareName(h runners.Hardware) string {
	if len(h.GPUs) == 0 {
		if h.CPU == "" {
			return "no GPU"
		}
		return "no GPU, " + h.CPU
	}
	counts := map[string]int{}
	var names []string
	for _, gpu := range h.GPUs {
		if counts[gpu.Name]++; counts[gpu.Name] == 1 {
			names = append(names, gpu.Name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", counts[name], name)
	}
	text := strings.Join(names, " + ")
	switch {
	case h.Simulated:
		return text + ", simulated"
	case len(h.GPUs) > 1 && len(h.Links) > 0:
		return text + ", " + linkName(h.Links)
	}
	return text
}

// linkName says in a word how GPUs are linked.
func linkName(links [][]string) string {
	nvlink, other := false, false
	for i := range links {
		for j := range links[i] {
			switch {
			case i == j:
			case strings.HasPrefix(links[i][j], "NV"):
				nvlink = true
			default:
				other = true
			}
		}
	}
	switch {
	case nvlink && other:
		return "NVLink and PCIe"
	case nvlink:
		return "NVLink"
	}
	return "PCIe"
}
