package nccl

import "slices"

// placeRules remove what the number of ranks and nodes, the links or the
// application leave without effect.
var placeRules = []Rule{
	{ID: "single-rank", Effect: Inert,
		When:    "one rank",
		Because: "one GPU has no traffic to tune",
		Source:  "NVIDIA/nccl src/enqueue.cc (one rank copies)",
		rewrite: func(s situation) []rewrite {
			areas := []Area{Collectives, Transport, Channels, Buffers, Memory, Network}
			return s.dropWhere(func(variable *Variable, _ string) bool {
				return s.Ranks == 1 && (slices.Contains(areas, variable.Area) || variable.Name == "NCCL_GRAPH_MIXING_SUPPORT")
			})
		}},
	{ID: "one-node", Effect: Inert,
		When:    "one node",
		Because: "it acts on traffic between nodes",
		Source:  "NVIDIA/nccl src/transport/net.cc; docs/userguide/source/env.rst",
		rewrite: func(s situation) []rewrite {
			return s.dropWhere(func(variable *Variable, _ string) bool { return s.Nodes == 1 && variable.BetweenNodes })
		}},
	{ID: "collectives-only", Effect: Inert,
		When:    "the application has no send, receive or all-to-all",
		Because: "it acts on send, receive and all-to-all",
		Source:  "NVIDIA/nccl src/enqueue.cc, src/init.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropWhere(func(variable *Variable, _ string) bool { return !s.SendReceive && variable.SendReceive })
		}},
	{ID: "no-windows", Effect: Inert,
		When:    "the application registers no symmetric windows",
		Because: "it acts on registered windows",
		Source:  "NVIDIA/nccl src/sym_kernels.cc, src/dev_runtime.cc",
		rewrite: func(s situation) []rewrite {
			// From 2.31 NCCL_SYM_KERNEL empties the algorithm rows as well.
			return s.dropWhere(func(variable *Variable, _ string) bool {
				rows := variable.Name == "NCCL_SYM_KERNEL" && !s.Version.Before(release(31))
				return !s.Windows && !s.is("NCCL_SYM_NOWIN_ENABLE", "1") && variable.Windows && !rows
			})
		}},
	{ID: "no-nvswitch", Effect: Inert,
		When:    "no NVSwitch, and NCCL_NVLS_ENABLE is not 1",
		Because: "NVLS cannot exist there",
		Source:  "NVIDIA/nccl src/transport/nvls.cc (ncclNvlsInit)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.noNVSwitch() && !s.is("NCCL_NVLS_ENABLE", "1"),
				"NCCL_NVLSTREE_MAX_CHUNKSIZE", "NCCL_NVLS_CHUNKSIZE", "NCCL_NVLS_ENABLE", "NCCL_NVLS_NCHANNELS")
		}},
	{ID: "nvls-off", Effect: Inert,
		When:    "NCCL_NVLS_ENABLE=0",
		Because: "NVLS is off",
		Source:  "NVIDIA/nccl src/transport/nvls.cc (ncclNvlsInit)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_NVLS_ENABLE", "0"), "NCCL_NVLSTREE_MAX_CHUNKSIZE", "NCCL_NVLS_CHUNKSIZE", "NCCL_NVLS_NCHANNELS")
		}},
	{ID: "too-many-sockets", Effect: Clamped,
		When:    "NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD above 64",
		Because: "NCCL lowers the sockets of a thread until there are 64 at most",
		Source:  "NVIDIA/nccl src/transport/net_socket.cc (ncclNetSocketGetNsockNthread)",
		rewrite: func(s situation) []rewrite {
			threads, ok := s.number("NCCL_SOCKET_NTHREADS")
			sockets, both := s.number("NCCL_NSOCKS_PERTHREAD")
			if !ok || !both || threads*sockets <= 64 {
				return nil
			}
			return replace("NCCL_NSOCKS_PERTHREAD", decimal(64/threads))
		}},
}

// defaultAreas are those whose variables may be dropped at their default. Log,
// file and identity variables stay, since a configuration file could set them
// to something else once they are absent.
var defaultAreas = []Area{Collectives, Transport, Channels, Buffers, Memory, Launch, Network}

var defaultRules = []Rule{
	{ID: "is-default", Effect: IsDefault,
		When:    "the value is the default of this version, and no server writes the variable itself",
		Because: "an absent variable has the same value",
		Source:  "docs/userguide/source/env.rst and the NCCL_PARAM line of each variable",
		rewrite: func(s situation) []rewrite {
			return s.dropWhere(func(variable *Variable, value string) bool {
				fallback, known := variable.DefaultAt(s.Version)
				return known && value == fallback && len(variable.WrittenBy) == 0 && slices.Contains(defaultAreas, variable.Area)
			})
		}},
}
