package nccl

// removedVariables are ignored in silence by every version from Until on.
// Sources: NVIDIA/nccl release notes and docs/userguide/source/env.rst.
var removedVariables = []Variable{
	{Name: "NCCL_RINGS", Kind: Text, Area: Channels, Versions: before(release(5)), Worth: Never, Successor: "NCCL_MAX_NCHANNELS",
		Description: "explicit rings"},
	{Name: "NCCL_SINGLE_RING_THRESHOLD", Kind: Bytes, Area: Channels, Max: maxInt32, Versions: before(release(3)), Worth: Never,
		Successor: "NCCL_THREAD_THRESHOLDS", Description: "size below which one ring was used"},
	{Name: "NCCL_IB_CUDA_SUPPORT", Kind: Switch, Area: Network, Versions: before(release(4)), Worth: Never, BetweenNodes: true,
		Successor: "NCCL_NET_GDR_LEVEL", Description: "direct RDMA"},
	{Name: "NCCL_IB_GDR_LEVEL", Kind: Level, Area: Network, Values: levels, Versions: before(release(4)), Worth: Never, BetweenNodes: true,
		Successor: "NCCL_NET_GDR_LEVEL", Description: "the old name of NCCL_NET_GDR_LEVEL"},
	{Name: "NCCL_LL_THRESHOLD", Kind: Bytes, Area: Collectives, Max: maxInt32, Versions: before(release(5)), Worth: Never,
		Successor: "NCCL_PROTO", Description: "size below which LL was used"},
	{Name: "NCCL_TREE_THRESHOLD", Kind: Bytes, Area: Collectives, Max: maxInt32, Versions: before(release(5)), Worth: Never,
		Successor: "NCCL_ALGO", Description: "size below which trees were used"},
	{Name: "NCCL_AGG_CHANNEL_SIZE", Kind: Bytes, Area: Channels, Max: maxInt32, Versions: before(release(20)), Worth: Never,
		Description: "bytes of a channel in aggregated operations"},
	{Name: "NCCL_WORK_FIFO_DEPTH", Kind: Integer, Area: Launch, Max: maxInt32, Versions: before(release(22)), Worth: Never,
		Successor: "NCCL_WORK_FIFO_BYTES", Description: "entries of the queue of work descriptors"},
	{Name: "NCCL_SHM_USE_CUDA_MEMCPY", Kind: Switch, Area: Transport, Versions: before(release(30, 7)), Worth: Never, Defaults: always("0"),
		Description: "copy engines for shared memory"},
	{Name: "NCCL_SHM_MEMCPY_MODE", Kind: Choice, Area: Transport, Values: []string{"1", "2", "3"}, Versions: before(release(30, 7)), Worth: Never,
		Defaults: always("1"), Description: "which side uses copy engines"},
	{Name: "NCCL_CREATE_THREAD_CONTEXT", Kind: Switch, Area: Launch, Versions: before(release(30, 7)), Worth: Never, Defaults: always("0"),
		Description: "a CUDA context for the proxy thread"},
	{Name: "NCCL_CHECKS_DISABLE", Kind: Switch, Area: Debug, Versions: before(release(2, 12)), Worth: Never, Successor: "NCCL_CHECK_POINTERS",
		Description: "no argument checks"},
}

// otherNames are read by NCCL or by the programs that ship with it, but have no
// value rules here. They are listed so that a correct name is never taken for a
// misspelling of another.
var otherNames = []string{
	"NCCL_BOOTSTRAP_NET_ENABLE", "NCCL_COLLNET_PLUGIN", "NCCL_COMM_SHRINK_SHARE_RESOURCES", "NCCL_COMM_SPLIT_SHARE_RESOURCES",
	"NCCL_GDRCOPY_FIFO_ENABLE", "NCCL_GDRCOPY_FLUSH_ENABLE",
	"NCCL_GDRCOPY_SYNC_ENABLE", "NCCL_GDR_FLUSH_DISABLE", "NCCL_GIN_ENABLE", "NCCL_GIN_TYPE", "NCCL_GRAPH_HELPER_DISABLE",
	"NCCL_GROUP_CUDA_STREAM", "NCCL_IB_DATA_DIRECT", "NCCL_IB_EVENT_BASED_LB", "NCCL_IB_IS_GLOBAL",
	"NCCL_IB_MERGE_VFS", "NCCL_IB_OOO_RQ", "NCCL_IB_RAIL_POLICY", "NCCL_IB_ROUTABLE_FLID_GID_INDEX", "NCCL_IB_USE_INLINE",
	"NCCL_IB_WARN_RAIL_LOCAL", "NCCL_IGNORE_COLLNET_MISMATCH", "NCCL_IGNORE_NET_MISMATCH", "NCCL_INSPECTOR_DUMP_DIR",
	"NCCL_INSPECTOR_ENABLE", "NCCL_L1_SHARED_MEMORY_CARVEOUT", "NCCL_MNNVL_RAIL_PER_HOST",
	"NCCL_MNNVL_SCATTER_NETS_ENABLE", "NCCL_NET_DISABLE_INTRA", "NCCL_NET_FORCE_FLUSH", "NCCL_NET_FORCE_MERGE", "NCCL_NET_MERGE_LEVEL",
	"NCCL_NET_MERGE_POLICY", "NCCL_NET_OPTIONAL_RECV_COMPLETION", "NCCL_NET_OVERHEAD", "NCCL_NVB_PRECONNECT",
	"NCCL_P2P_SCHEDULE_GROUP_SIZE", "NCCL_PROFILE_EVENT_MASK", "NCCL_PROGRESS_APPENDOP_FREQ", "NCCL_PROXY_APPEND_BATCH_SIZE",
	"NCCL_PROXY_CPUSET", "NCCL_PROXY_DUMP_SIGNAL", "NCCL_RMA_EAGER_INIT", "NCCL_SOCKET_INLINE", "NCCL_SOCKET_MAGIC",
	"NCCL_SOCKET_MIN_TASKSIZE", "NCCL_TESTS_DEVICE", "NCCL_TESTS_MIN_BW", "NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK",
	"NCCL_UID_STAGGER_RATE", "NCCL_UID_STAGGER_THRESHOLD",
	// Written by PyTorch, read by PyTorch.
	"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG",
}

func otherVariables() []Variable {
	variables := make([]Variable, len(otherNames))
	for i, name := range otherNames {
		variables[i] = Variable{Name: name, Kind: Undescribed, Area: Debug, Worth: Never,
			Description: "known by name only; its value is passed on as written"}
	}
	return variables
}
