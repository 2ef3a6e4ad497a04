package nccl

const maxInt32 = 1<<31 - 1

// fromOne: what NCCL does with 0 is no new point.
var fromOne = &Safe{Step: 1, Min: 1, Max: maxInt32, Allowed: "1 and more",
	Reason: "NCCL turns 0 into 1 or ignores it", Source: "NVIDIA/nccl src/graph/connect.cc, src/init.cc"}

// Sources: NVIDIA/nccl src/graph/connect.cc, src/init.cc, src/transport/nvls.cc.
var channelVariables = []Variable{
	{Name: "NCCL_MIN_NCHANNELS", Kind: Integer, Area: Channels, Unit: "channels", Max: maxInt32, Safe: fromOne, Worth: Expert,
		SameAs: "NCCL_MIN_CTAS", Defaults: automatic("found by the topology search"),
		Description: "channels that a communicator has at least; wins over a smaller maximum"},
	{Name: "NCCL_MAX_NCHANNELS", Kind: Integer, Area: Channels, Unit: "channels", Max: maxInt32, Safe: fromOne, Worth: Usual,
		SameAs: "NCCL_MAX_CTAS", Defaults: automatic("found by the topology search"),
		Description: "channels that a communicator has at most; each is one block, taken from the model"},
	{Name: "NCCL_MIN_NRINGS", Kind: Integer, Area: Channels, Unit: "channels", Min: 1, Max: maxInt32, Worth: Never,
		Successor: "NCCL_MIN_NCHANNELS", Description: "the old name of NCCL_MIN_NCHANNELS, still read when that is absent"},
	{Name: "NCCL_MAX_NRINGS", Kind: Integer, Area: Channels, Unit: "channels", Min: 1, Max: maxInt32, Worth: Never,
		Successor: "NCCL_MAX_NCHANNELS", Description: "the old name of NCCL_MAX_NCHANNELS, still read when that is absent"},
	{Name: "NCCL_MIN_CTAS", Kind: Integer, Area: Channels, Unit: "channels", Max: maxInt32, Safe: fromOne, Versions: since(release(17)), Worth: Expert,
		SameAs: "NCCL_MIN_NCHANNELS", Defaults: always("1"),
		Description: "blocks that a communicator has at least; overrides what the application configured"},
	{Name: "NCCL_MAX_CTAS", Kind: Integer, Area: Channels, Unit: "channels", Max: maxInt32, Safe: fromOne, Versions: since(release(17)), Worth: Usual,
		SameAs: "NCCL_MAX_NCHANNELS", Defaults: automatic("the channel limit; less on some machines"),
		Description: "blocks that a communicator has at most; overrides what the application configured"},
	{Name: "NCCL_MIN_P2P_NCHANNELS", Kind: Integer, Area: Channels, Unit: "channels", Min: 1, Max: 64, Worth: Expert, SendReceive: true,
		Defaults: always("1"), Description: "channels of send and receive, at least; rounded up to a power of two"},
	{Name: "NCCL_MAX_P2P_NCHANNELS", Kind: Integer, Area: Channels, Unit: "channels", Min: 1, Max: 64, Worth: Expert, SendReceive: true,
		Description: "channels of send and receive, at most; rounded up to a power of two"},
	{Name: "NCCL_NCHANNELS_PER_NET_PEER", Kind: Integer, Area: Channels, Unit: "channels", Min: 1, Max: 64, Worth: Expert, SendReceive: true,
		BetweenNodes: true, Description: "channels of send and receive for each peer over the network"},
	{Name: "NCCL_NVLS_NCHANNELS", Kind: Integer, Area: Channels, Unit: "channels", Min: 1, Max: 64, Versions: since(release(17)), Worth: Usual,
		Defaults: automatic("16 on 9.0, 24 or 32 on 10.0"), Description: "channels of NVLS, kept within the block limits"},
	{Name: "NCCL_CGA_CLUSTER_SIZE", Kind: Integer, Area: Channels, Max: 8, Versions: since(release(16)), Worth: Expert,
		Defaults: automatic("4 from compute capability 9.0"), Description: "blocks of one cluster"},
	{Name: "NCCL_CTA_POLICY", Kind: List, Area: Channels, Separator: "|", Values: []string{"DEFAULT", "EFFICIENCY", "ZERO"}, Numbered: true,
		Versions: since(release(27)), Worth: Never, Defaults: always("DEFAULT"), Description: "fewer blocks at the price of latency; only 0, 1, 2 in 2.27 and 2.28, names and their unions from 2.29"},
	{Name: "NCCL_UNPACK_DOUBLE_NCHANNELS", Kind: Switch, Area: Channels, Worth: Never, BetweenNodes: true, Defaults: always("1"),
		Description: "twice the channels on networks that unpack"},
}

// powersOfTwo is what is known to be safe for a buffer.
var powersOfTwo = &Safe{Grain: 1, From: 65536, Allowed: "powers of two from 65536",
	Reason: "other sizes have given wrong sums; a few KiB hang, since NCCL cuts the buffer into 8 steps and rounds down unchecked",
	Source: "NVIDIA/nccl#698, NVIDIA/nccl#1739"}

// Sources: NVIDIA/nccl src/init.cc (computeBuffSizes), src/enqueue.cc, src/transport/nvls.cc.
var bufferVariables = []Variable{
	{Name: "NCCL_BUFFSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Worth: Usual, Safe: powersOfTwo,
		Defaults:    []Default{{Versions: before(release(19)), Note: "4194304, 1048576 on Arm"}, {Versions: since(release(19)), Value: "4194304"}},
		Description: "buffer of protocol Simple per channel and peer; large ones take GPU memory from the KV cache"},
	{Name: "NCCL_LL_BUFFSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Worth: Expert, Safe: powersOfTwo,
		Defaults: always("524288"), Description: "buffer of protocol LL per channel and peer"},
	{Name: "NCCL_LL128_BUFFSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Worth: Expert,
		Safe: &Safe{Values: []int64{4915200}, Grain: 120, From: 122880, Allowed: "4915200, or 120 times a power of two from 122880",
			Reason: "other sizes have hung", Source: "NVIDIA/nccl#1739"},
		Defaults: always("4915200"), Description: "buffer of protocol LL128 per channel and peer"},
	{Name: "NCCL_NVLS_CHUNKSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Versions: since(release(21)), Worth: Expert,
		Safe:     &Safe{Grain: 1, From: 4096, Allowed: "powers of two from 4096", Reason: "the buffer is 8 chunks, and nothing checks the result", Source: "NVIDIA/nccl src/transport/nvls.cc"},
		Defaults: always("131072"), Description: "chunk of NVLS, whose buffer is 8 chunks"},
	{Name: "NCCL_NVLSTREE_MAX_CHUNKSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: -2, Max: maxInt32, Versions: since(release(20)), Worth: Never,
		BetweenNodes: true, Defaults: always("-2"), Description: "largest chunk of NVLSTree; -2 is automatic"},
	{Name: "NCCL_P2P_NET_CHUNKSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Versions: since(release(14)), Worth: Expert,
		SendReceive: true, BetweenNodes: true, Safe: sendChunks, Defaults: always("131072"),
		Description: "chunk of send and receive over the network"},
	{Name: "NCCL_P2P_PCI_CHUNKSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Versions: since(release(15)), Worth: Expert,
		SendReceive: true, Safe: sendChunks, Defaults: always("131072"), Description: "chunk of send and receive on one node without full NVLink"},
	{Name: "NCCL_P2P_NVL_CHUNKSIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Min: 1, Max: maxInt32, Versions: since(release(15)), Worth: Expert,
		SendReceive: true, Safe: sendChunks, Defaults: always("524288"), Description: "chunk of send and receive on one node with full NVLink"},
	{Name: "NCCL_P2P_LL_THRESHOLD", Kind: Bytes, Area: Buffers, Unit: "bytes", Max: maxInt32, Versions: since(release(14)), Worth: Expert,
		SendReceive: true, Defaults: always("16384"), Description: "send and receive up to this size use LL"},
	{Name: "NCCL_CHUNK_SIZE", Kind: Bytes, Area: Buffers, Unit: "bytes", Max: maxInt32, Worth: Never, SendReceive: true, Defaults: always("0"),
		Unsafe:      "a chunk above the send-and-receive chunk overwrites neighbouring data without a message (NVIDIA/nccl#2408)",
		Description: "undocumented chunk of send and receive"},
	{Name: "NCCL_ALLOC_P2P_NET_LL_BUFFERS", Kind: Switch, Area: Buffers, Versions: since(release(14)), Worth: Never, SendReceive: true,
		BetweenNodes: true, Defaults: always("0"), Description: "LL buffers for every network peer"},
}

// sendChunks: NCCL clamps a chunk to an eighth of the buffer from 2.19 only.
var sendChunks = &Safe{Grain: 1, From: 4096, Allowed: "powers of two from 4096",
	Reason: "chunks are cut from a buffer that is a power of two", Source: "NVIDIA/nccl src/init.cc; docs/userguide/source/env.rst"}

// Sources: NVIDIA/nccl src/transport/nvls.cc, src/allocator.cc, src/init.cc,
// and the release notes.
var memoryVariables = []Variable{
	{Name: "NCCL_NVLS_ENABLE", Kind: Choice, Area: Memory, Values: []string{"0", "1", "2"}, Versions: since(release(17)), Worth: Usual,
		Defaults: changed("1", release(18), "2"), WrittenBy: []string{"SGLang"},
		Description: "reduction in the NVSwitch: 0 off, 1 forced, 2 automatic"},
	{Name: "NCCL_CUMEM_ENABLE", Kind: Choice, Area: Memory, Values: []string{"-2", "0", "1"}, Versions: since(release(18)), Worth: Usual,
		Defaults: changed("0", release(19), "-2"), WrittenBy: []string{"SGLang", "vLLM until September 2025"},
		Description: "allocate with cuMem; -2 uses it from CUDA driver 12.0"},
	{Name: "NCCL_CUMEM_HOST_ENABLE", Kind: Choice, Area: Memory, Values: []string{"-1", "0", "1"}, Versions: since(release(23)), Worth: Expert,
		Defaults: changed("0", release(24), "-1"), Description: "host buffers from cuMem; -1 uses it from CUDA driver 12.6"},
	{Name: "NCCL_LOCAL_REGISTER", Kind: Switch, Area: Memory, Versions: since(release(19)), Worth: Expert, Defaults: always("1"),
		Description: "use buffers that the application registered"},
	{Name: "NCCL_GRAPH_REGISTER", Kind: Switch, Area: Memory, Versions: since(release(11)), Worth: Expert,
		Defaults: changed("0", release(19), "1"), Description: "register buffers seen during graph capture; costs memory and capture time"},
	{Name: "NCCL_WIN_ENABLE", Kind: Switch, Area: Memory, Versions: since(release(27)), Worth: Never, Windows: true, Defaults: always("1"),
		Description: "symmetric windows may be registered"},
	{Name: "NCCL_WIN_STRIDE", Kind: Integer, Area: Memory, Min: -1, Max: maxInt32, Versions: since(release(27)), Worth: Never, Windows: true,
		Defaults: always("-1"), Description: "address stride between the windows of two ranks"},
	{Name: "NCCL_SINGLE_PROC_MEM_REG_ENABLE", Kind: Switch, Area: Memory, Worth: Never, Defaults: always("0"),
		Description: "register memory between GPUs of one process"},
}
