package nccl

// transportRules say which transport settings act. Sources:
// src/graph/paths.cc (ncclGetLevel, ncclTopoCheckP2p), src/transport/p2p.cc,
// src/transport/shm.cc.
var transportRules = []Rule{
	{ID: "p2p-level-loc", Effect: Alias,
		When:    "NCCL_P2P_LEVEL=LOC",
		Because: "no two GPUs are that near: it is NCCL_P2P_DISABLE=1",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclGetLevel)",
		rewrite: func(s situation) []rewrite {
			if !s.is("NCCL_P2P_LEVEL", "LOC") {
				return nil
			}
			if s.is("NCCL_P2P_DISABLE", "1") {
				return s.drop("NCCL_P2P_LEVEL")
			}
			return []rewrite{{name: "NCCL_P2P_LEVEL", value: "1", newName: "NCCL_P2P_DISABLE"}}
		}},
	{ID: "p2p-level-nearer-than-pcie", Effect: Clamped,
		When:    "NCCL_P2P_LEVEL of NVL, NVB or C2C without NVLink",
		Because: "no pair is that near, so that no pair talks directly",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckP2p)",
		rewrite: func(s situation) []rewrite {
			rank := s.understoodLevel()
			if s.NVLink != No || rank <= levelRank("LOC") || rank >= levelRank("PIX") {
				return nil
			}
			return replace("NCCL_P2P_LEVEL", "LOC")
		}},
	{ID: "p2p-level-with-nvlink", Effect: IsDefault,
		When:    "NCCL_P2P_LEVEL other than LOC when NVLink joins every pair",
		Because: "every pair is near enough for all of these levels and for the default",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckP2p)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.NVLink == Yes && s.understoodLevel() > levelRank("LOC"), "NCCL_P2P_LEVEL")
		}},
	{ID: "p2p-level-beyond-farthest", Effect: Clamped,
		When:    "NCCL_P2P_LEVEL beyond the farthest distance between two GPUs",
		Because: "all pairs are within that distance already",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckP2p)",
		rewrite: func(s situation) []rewrite {
			farthest := levelRank(s.Farthest)
			if farthest <= levelRank("LOC") || s.understoodLevel() <= farthest {
				return nil
			}
			return replace("NCCL_P2P_LEVEL", s.Farthest)
		}},
	{ID: "p2p-level-is-default", Effect: IsDefault,
		When:    "NCCL_P2P_LEVEL is the default level, or both reach every pair",
		Because: "an absent level allows the same pairs",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckP2p)",
		rewrite: func(s situation) []rewrite {
			fallback, known := DefaultP2PLevel(s.Context)
			level := s.settings["NCCL_P2P_LEVEL"]
			if !known || level == "" {
				return nil
			}
			reachesAll := s.Farthest != "" && level == s.Farthest && levelRank(fallback) >= levelRank(s.Farthest)
			return s.dropIf(level == fallback || reachesAll, "NCCL_P2P_LEVEL")
		}},
	{ID: "p2p-disabled", Effect: Inert,
		When:    "NCCL_P2P_DISABLE=1",
		Because: "NCCL_P2P_DISABLE=1 wins over the level, and no direct traffic is left to shape",
		Source:  "NVIDIA/nccl src/graph/paths.cc (ncclGetLevel), src/transport/p2p.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_P2P_DISABLE", "1"), "NCCL_IGNORE_DISABLED_P2P", "NCCL_P2P_DIRECT_DISABLE",
				"NCCL_P2P_LEVEL", "NCCL_P2P_READ_ENABLE", "NCCL_P2P_USE_CUDA_MEMCPY")
		}},
	{ID: "shm-disabled", Effect: Inert,
		When:    "NCCL_SHM_DISABLE=1",
		Because: "no traffic through shared memory is left to shape",
		Source:  "NVIDIA/nccl src/transport/shm.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_SHM_DISABLE", "1"), "NCCL_SHM_LOCALITY", "NCCL_SHM_MEMCPY_MODE", "NCCL_SHM_USE_CUDA_MEMCPY")
		}},
	{ID: "launch-mode", Effect: IsDefault,
		When:    "NCCL_LAUNCH_MODE other than GROUP",
		Because: "every other text is PARALLEL, the default",
		Source:  "NVIDIA/nccl src/init.cc",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.has("NCCL_LAUNCH_MODE") && !s.is("NCCL_LAUNCH_MODE", "GROUP"), "NCCL_LAUNCH_MODE")
		}},
}

// understoodLevel is the rank of NCCL_P2P_LEVEL, -1 when it is absent or when
// the version may not know the distance and then ignores it.
func (s situation) understoodLevel() int {
	level := s.settings["NCCL_P2P_LEVEL"]
	if level == "C2C" && !s.Version.AtLeast(release(26)) || level == "P2C" && !s.Version.AtLeast(release(27)) {
		return -1
	}
	return levelRank(level)
}
