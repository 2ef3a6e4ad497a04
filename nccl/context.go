package nccl

import "slices"

// Context is what is known about the NCCL and the machine. The zero value
// knows nothing, except that the application uses collectives on ordinary
// buffers, as a tensor-parallel server does. A wrong fact makes wrong rules
// apply; an unknown one only makes fewer apply.
type Context struct {
	Version Version

	// NVLink: every pair of the GPUs used has NVLink between them directly or
	// through a switch. No: no pair has.
	NVLink Tri
	// NVSwitch: NVLink runs through switches with multicast support.
	NVSwitch Tri
	// Farthest is the worst distance between two GPUs used, in NCCL's own
	// words (LOC to SYS); empty when not known. NODE of nvidia-smi is PHB to
	// NCCL, or SYS when the CPU is set to several NUMA nodes per socket.
	Farthest string
	// ComputeCapability of the GPUs times ten, 90 for Hopper; 0 when not known
	// or mixed.
	ComputeCapability int
	// CPU is the vendor that NCCL sees.
	CPU CPU

	Nodes int // 0: not known
	Ranks int // of the communicator that carries the all-reduce; 0: not known

	// Channels that this NCCL found for collectives without any channel
	// setting; 0 when not known.
	Channels int
	// RingSimpleThreads is the default of NCCL_NTHREADS for Ring with Simple:
	// 256 or 512, from the Max NThreads row of the cost table; 0: not known.
	RingSimpleThreads int

	// SendReceive: the application also uses send, receive or all-to-all
	// (pipeline or expert parallelism).
	SendReceive bool
	// Windows: the application registers symmetric-memory windows.
	Windows bool
}

// CPU is a processor vendor.
type CPU string

// The vendors that NCCL tells apart. OtherCPU is any that is none of them.
const (
	UnknownCPU CPU = ""
	IntelCPU   CPU = "intel"
	AMDCPU     CPU = "amd"
	ArmCPU     CPU = "arm"
	ZhaoxinCPU CPU = "zhaoxin"
	OtherCPU   CPU = "other"
)

// noNVSwitch: reduction in the switch cannot exist.
func (c Context) noNVSwitch() bool { return c.NVSwitch == No || c.NVLink == No }

// pciNode reports the one platform on which the algorithms are known for sure:
// a single node without NVSwitch has Ring and Tree.
func (c Context) pciNode(settings map[string]string) bool {
	return c.Nodes == 1 && c.noNVSwitch() &&
		settings["NCCL_PAT_ENABLE"] != "1" && settings["NCCL_NVLS_ENABLE"] != "1"
}

// localRanks is the number of GPUs on a node, 0 when not known.
func (c Context) localRanks() int {
	if c.Nodes <= 0 || c.Ranks <= 0 {
		return 0
	}
	return c.Ranks / c.Nodes
}

// levelRank orders distances; -1 for a text that is none.
func levelRank(level string) int { return slices.Index(levels, level) }

// DefaultP2PLevel returns the distance up to which GPUs talk directly when
// NCCL_P2P_LEVEL is absent, and whether that is known. Up to 2.22: PXB on
// Intel, Arm and Zhaoxin, else SYS. From 2.23: PXB, but SYS for 2 GPUs on AMD.
// Source: NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckP2p).
func DefaultP2PLevel(c Context) (level string, known bool) {
	if c.CPU == IntelCPU || c.CPU == ArmCPU || c.CPU == ZhaoxinCPU {
		return "PXB", true
	}
	local := c.localRanks()
	switch {
	case c.CPU == UnknownCPU || !c.Version.Known():
		return "", false
	case c.Version.Before(release(23)):
		return "SYS", true
	case c.CPU == OtherCPU:
		return "PXB", true
	case local == 0:
		return "", false
	case local <= 2:
		return "SYS", true
	default:
		return "PXB", true
	}
}

// LL128Automatic reports whether NCCL enables LL128 by itself. It needs
// 128-byte stores that arrive whole and in order; NCCL's source says that
// untested hardware may corrupt data silently, and an explicit list that
// includes LL128 replaces this test by a plain yes in every version.
//
// Only the path inside the node is judged: with several nodes a yes becomes
// Unknown. Source: NVIDIA/nccl src/graph/tuning.cc (ncclTopoTuneModel).
func LL128Automatic(c Context) Tri {
	if c.NVLink == No {
		return No
	}
	capability := c.ComputeCapability
	if capability != 0 && capability < 70 {
		return No
	}
	if c.NVLink == Unknown || capability == 0 || !c.Version.Known() || c.Nodes != 1 {
		return Unknown
	}
	exact := []int{70, 80, 90}
	switch {
	case c.Version.AtLeast(release(27)):
		return Yes
	case c.Version.AtLeast(release(25)):
		exact = append(exact, 100, 120)
	}
	return TriOf(slices.Contains(exact, capability))
}

// ChannelLimit is the number of channels that NCCL can have: 64 from 2.25, 32
// before. Source: NVIDIA/nccl src/include/device.h (MAXCHANNELS).
func ChannelLimit(v Version) (limit int, known bool) {
	if !v.Known() {
		return 0, false
	}
	if v.Before(release(25)) {
		return 32, true
	}
	return 64, true
}
