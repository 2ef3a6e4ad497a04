package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pathType is the kind of connection between two GPUs, nearest first, in the
// order of NCCL's PATH_ constants (NVIDIA/nccl src/graph/topo.h, 2.28).
type pathType int

const (
	pathLOC pathType = iota
	pathNVL
	pathNVB
	pathC2C
	pathPIX
	pathPXB
	pathP2C
	pathPXN
	pathPHB
	pathSYS
)

var pathNames = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// machine is the hardware that the simulation plays. All machines have two
// sockets with half of the GPUs each.
type machine struct {
	name       string  // as nvidia-smi prints it
	memoryGiB  float64 // of one GPU
	weightsGiB float64 // what the model and its runtime hold on each GPU
	near, far  pathType
	// p2p tells that the driver allows GPUs to reach each other.
	p2p bool
	// hangs is a path over which peer-to-peer traffic never arrives (IOMMU in
	// translated mode); pathLOC for none.
	hangs      pathType
	nvlink     bool
	multicast  bool // NVSwitch with multicast: NVLS works
	capability float64
	channels   int // that NCCL's topology search finds
	// latency, transfer and compute scale the costs of the first machine.
	latency, transfer, compute float64
	// simpleThreads is NCCL's default for Ring with protocol Simple.
	simpleThreads int
	firstBus      int
}

// defaultMachine is the machine of the published figures.
const defaultMachine = "rtx-pro-6000"

// machines by the word that --sim-gpu takes.
var machines = map[string]machine{
	defaultMachine: {
		name: "NVIDIA RTX PRO 6000 Blackwell Server Edition", memoryGiB: 95.6, weightsGiB: 69.2,
		near: pathPHB, far: pathSYS, p2p: true, capability: 12.0, channels: 16,
		latency: 1, transfer: 1, compute: 1, simpleThreads: maxThreads, firstBus: 0x01,
	},
	// Peer-to-peer over the link between the sockets hangs: IOMMU in translated
	// mode, as often seen on AMD hosts.
	"l40s": {
		name: "NVIDIA L40S", memoryGiB: 45.0, weightsGiB: 32.5,
		near: pathPHB, far: pathSYS, p2p: true, hangs: pathSYS, capability: 8.9, channels: 8,
		latency: 1.25, transfer: 1.4, compute: 1.35, simpleThreads: 256, firstBus: 0x0a,
	},
	// The stock driver does not allow peer-to-peer: everything goes through host
	// memory whatever NCCL_P2P_LEVEL says.
	"rtx-5090": {
		name: "NVIDIA GeForce RTX 5090", memoryGiB: 31.8, weightsGiB: 22.4,
		near: pathPHB, far: pathSYS, capability: 12.0, channels: 16,
		latency: 1.1, transfer: 1.1, compute: 1.05, simpleThreads: maxThreads, firstBus: 0x21,
	},
	// NVSwitch: the server's own all-reduce takes the decode sizes, and LL128 is
	// safe.
	"h200": {
		name: "NVIDIA H200", memoryGiB: 139.8, weightsGiB: 102.0,
		near: pathNVL, far: pathNVL, p2p: true, nvlink: true, multicast: true, capability: 9.0, channels: 24,
		latency: 0.4, transfer: 0.12, compute: 0.55, simpleThreads: maxThreads, firstBus: 0x19,
	},
}

func machineNamed(word string) (machine, error) {
	found, ok := machines[word]
	if !ok {
		return machine{}, fmt.Errorf("--sim-gpu %q is not a simulated machine: expected one of %s",
			word, strings.Join(slices.Sorted(maps.Keys(machines)), ", "))
	}
	return found, nil
}

// defaultLevel is the distance up to which NCCL uses peer-to-peer when nobody
// says anything: PXB from 2.23 on, and before that SYS on AMD hosts, which these
// are (src/graph/paths.cc).
func (m machine) defaultLevel(version ncclVersion) pathType {
	if version.atLeast(2, 23, 0) {
		return pathPXB
	}
	return pathSYS
}
