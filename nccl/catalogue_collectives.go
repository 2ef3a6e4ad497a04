package nccl

// always is the default of every version.
func always(value string) []Default { return []Default{{Value: value}} }

// automatic is a default that NCCL derives from the machine.
func automatic(note string) []Default { return []Default{{Note: note}} }

// since and before build version ranges.
func since(v Version) Range  { return Range{Since: v} }
func before(v Version) Range { return Range{Until: v} }

// changed is a default that changed once.
func changed(old string, at Version, now string) []Default {
	return []Default{{Versions: before(at), Value: old}, {Versions: since(at), Value: now}}
}

// Sources: NVIDIA/nccl src/graph/tuning.cc, src/enqueue.cc, src/init.cc and
// docs/userguide/source/env.rst.
var collectiveVariables = []Variable{
	{Name: "NCCL_ALGO", Kind: Algorithms, Area: Collectives, Worth: Usual,
		Defaults:    automatic("the cost model chooses per message"),
		Description: "the algorithms that collectives may use; an intent for the all-reduce unless it names other functions"},
	{Name: "NCCL_PROTO", Kind: Protocols, Area: Collectives, Worth: Usual,
		Defaults:    automatic("LL and Simple; LL128 where NCCL holds it safe"),
		Description: "the protocols that collectives may use: LL is quickest for small messages, Simple has full bandwidth"},
	{Name: "NCCL_NTHREADS", Kind: Integer, Area: Collectives, Unit: "threads", Max: maxInt32, Worth: Usual,
		Defaults: automatic("512; Ring with Simple 256 on slow PCIe up to 2.30"),
		Safe: &Safe{Values: []int64{64, 128, 256, 512}, Allowed: "64, 128, 256 or 512",
			Reason: "other thread counts have given wrong sums with the Simple protocol, or are silently replaced by 512",
			Source: "NVIDIA/nccl#698; docs/userguide/source/env.rst"},
		Description: "threads of a block for Ring and Tree with LL and Simple; halving it doubles the channels of a small message"},
	{Name: "NCCL_LL128_NTHREADS", Kind: Integer, Area: Collectives, Unit: "threads", Max: maxInt32, Worth: Expert,
		Defaults: always("640"),
		Safe: &Safe{Step: 32, Min: 160, Max: 640, Allowed: "multiples of 32 from 160 to 640",
			Reason: "other thread counts are silently replaced", Source: "NVIDIA/nccl src/graph/tuning.cc"},
		Description: "threads of a block for LL128"},
	{Name: "NCCL_THREAD_THRESHOLDS", Kind: Numbers, Area: Collectives, Unit: "bytes per thread", Worth: Expert,
		Defaults:    automatic("8 8 64, then 8 times the ranks, 8, 64"),
		Description: "work per thread below which channels are dropped: Tree LL, LL128, Simple, then Ring LL, LL128, Simple; undocumented"},
	{Name: "NCCL_COLLNET_ENABLE", Kind: Switch, Area: Collectives, Worth: Never, Defaults: always("0"), BetweenNodes: true,
		Description: "use the in-network reduction plugin"},
	{Name: "NCCL_COLLNET_NODE_THRESHOLD", Kind: Integer, Area: Collectives, Worth: Never, Defaults: always("2"), BetweenNodes: true,
		Description: "nodes below which CollNet stays off"},
	{Name: "NCCL_PAT_ENABLE", Kind: Choice, Area: Collectives, Values: []string{"0", "1", "2"}, Versions: since(release(23)), Worth: Never,
		Defaults: always("2"), Description: "PAT for all-gather and reduce-scatter; 2 uses it with one GPU per node"},
	{Name: "NCCL_LL128_C2C", Kind: Switch, Area: Collectives, Worth: Never, Defaults: always("1"),
		Description: "LL128 over chip-to-chip links from compute capability 9.0"},
	{Name: "NCCL_SYM_KERNEL", Kind: Text, Area: Collectives, Versions: since(release(27)), Worth: Never, Windows: true,
		Description: "one symmetric-memory kernel by exact name; from 2.31 a list with the grammar of NCCL_ALGO, and it empties the algorithm rows"},
	{Name: "NCCL_SYM_CTAS", Kind: Integer, Area: Collectives, Unit: "channels", Max: 64, Versions: since(release(27)), Worth: Never,
		Windows: true, Defaults: always("0"), Description: "blocks of symmetric-memory kernels; 0 is automatic"},
	{Name: "NCCL_SYM_CE_THRESHOLD", Kind: Bytes, Area: Collectives, Unit: "bytes", Max: maxInt32, Versions: since(release(29)), Worth: Never,
		Windows: true, Defaults: always("8388608"), Description: "message size above which copy engines may take over"},
	{Name: "NCCL_SYM_NOWIN_ENABLE", Kind: Switch, Area: Collectives, Versions: since(release(29)), Worth: Never, Defaults: always("0"),
		Description: "symmetric LL kernels for buffers that are not registered"},
	{Name: "NCCL_SYM_TMA_ENABLE", Kind: Switch, Area: Collectives, Versions: since(release(27)), Worth: Never, Windows: true, Defaults: always("0"),
		Description: "symmetric kernels with bulk copies"},
	{Name: "NCCL_SYM_GIN_KERNELS_ENABLE", Kind: Switch, Area: Collectives, Versions: since(release(29)), Worth: Never, Windows: true,
		Defaults: always("1"), Description: "symmetric kernels that reach the network from the GPU"},
}

// levels in the order of NVIDIA/nccl src/graph/topo.h, nearest first.
var levels = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// Sources: NVIDIA/nccl src/graph/paths.cc, src/transport/p2p.cc, src/transport/shm.cc.
var transportVariables = []Variable{
	{Name: "NCCL_P2P_LEVEL", Kind: Level, Area: Transport, Values: levels, Worth: Usual,
		Defaults:    automatic("PXB, and SYS on some AMD machines"),
		Description: "the farthest distance between two GPUs that talk directly; upper case only, NCCL ignores any other text"},
	{Name: "NCCL_P2P_DISABLE", Kind: Switch, Area: Transport, Worth: Usual, Defaults: always("0"),
		Description: "1: no direct GPU-to-GPU traffic; wins over NCCL_P2P_LEVEL, cures hangs behind an IOMMU or ACS"},
	{Name: "NCCL_IGNORE_DISABLED_P2P", Kind: Choice, Area: Transport, Values: []string{"0", "1", "2"}, Worth: Never, Defaults: always("0"),
		Unsafe:      "it hides a driver that forbids direct traffic; nothing becomes faster",
		Description: "1 silences the message that NVML forbids direct traffic, 2 skips the test"},
	{Name: "NCCL_P2P_DIRECT_DISABLE", Kind: Switch, Area: Transport, Worth: Never, Defaults: always("0"),
		Description: "no direct pointers between GPUs of one process; servers use a process per GPU"},
	{Name: "NCCL_P2P_READ_ENABLE", Kind: Choice, Area: Transport, Values: []string{"-2", "0", "1"}, Worth: Never, Defaults: always("-2"),
		Description: "pull instead of push; -2 pulls on NVLink of compute capability 8.0 only"},
	{Name: "NCCL_P2P_USE_CUDA_MEMCPY", Kind: Switch, Area: Transport, Worth: Expert, Defaults: always("0"),
		Description: "copy engines instead of kernels for direct traffic; high latency"},
	{Name: "NCCL_NVB_DISABLE", Kind: Switch, Area: Transport, Worth: Never, Defaults: always("0"),
		Description: "no NVLink hop through a third GPU"},
	{Name: "NCCL_SHM_DISABLE", Kind: Switch, Area: Transport, Worth: Never, Defaults: always("0"),
		Unsafe:      "without shared memory the pairs that cannot talk directly go over the loopback network or fail with no transport",
		Description: "1: no traffic through host shared memory"},
	{Name: "NCCL_SHM_LOCALITY", Kind: Choice, Area: Transport, Values: []string{"1", "2"}, Worth: Expert, Defaults: always("2"),
		Description: "whose NUMA memory holds the shared buffer: 1 the sender's, 2 the receiver's"},
	{Name: "NCCL_RUNTIME_CONNECT", Kind: Switch, Area: Transport, Versions: since(release(22)), Worth: Never, Defaults: always("1"),
		Description: "connect at the first use of an algorithm instead of at init"},
	{Name: "NCCL_LEGACY_CUDA_REGISTER", Kind: Switch, Area: Transport, Versions: since(release(24)), Worth: Never, Defaults: always("0"),
		Unsafe: "registering buffers of cudaMalloc can hang", Description: "register buffers that do not come from cuMem"},
	{Name: "NCCL_IPC_USE_ABSTRACT_SOCKET", Kind: Switch, Area: Transport, Versions: since(release(29)), Worth: Never, Defaults: always("1"),
		Description: "abstract sockets for handle exchange; 0 for several containers with network namespaces of their own"},
	{Name: "NCCL_MNNVL_ENABLE", Kind: Choice, Area: Transport, Values: []string{"0", "1", "2"}, Versions: since(release(21)), Worth: Never,
		BetweenNodes: true, Defaults: always("2"), Description: "NVLink between nodes"},
}
