package nccl

import "strconv"

// versionRules remove what the version at hand never reads.
var versionRules = []Rule{
	{ID: "not-in-version", Effect: Inert,
		When:    "the version does not know the variable yet, or no more",
		Because: "this NCCL does not read the variable, and says nothing about it",
		Source:  "NVIDIA/nccl src/misc/param.cc; release notes",
		rewrite: func(s situation) []rewrite {
			return s.dropWhere(func(variable *Variable, _ string) bool { return variable.Versions.Covers(s.Version) == No })
		}},
	{ID: "level-not-in-version", Effect: Inert,
		When:    "a distance of C2C before 2.26 or P2C before 2.27",
		Because: "this NCCL does not know the distance and ignores it in silence",
		Source:  "NVIDIA/nccl src/graph/topo.h, src/graph/paths.cc (ncclGetLevel)",
		rewrite: func(s situation) []rewrite {
			return s.dropWhere(func(variable *Variable, value string) bool {
				return variable.Kind == Level && (value == "C2C" && s.Version.Before(release(26)) || value == "P2C" && s.Version.Before(release(27)))
			})
		}},
}

// channelRules are the clamps of threads and channels. Sources:
// src/graph/tuning.cc (getNthreads), src/graph/connect.cc (ncclMinNchannels,
// ncclMaxNchannels, ncclTopoPostset), src/init.cc (CTA configuration).
var channelRules = []Rule{
	{ID: "threads-not-positive", Effect: IsDefault,
		When:    "NCCL_NTHREADS=0 or NCCL_LL128_NTHREADS=0",
		Because: "NCCL takes that for absent",
		Source:  "NVIDIA/nccl src/graph/tuning.cc (getNthreads)",
		rewrite: func(s situation) []rewrite { return s.dropZero("NCCL_LL128_NTHREADS", "NCCL_NTHREADS") }},
	threadRule("threads-not-multiple-of-32", "a thread count is no multiple of 32", "NCCL replaces it by the maximum",
		func(n int64, b threadBounds) int64 { return pick(n%32 != 0, b.most, n) }),
	threadRule("threads-above-maximum", "NCCL_NTHREADS above 512 or NCCL_LL128_NTHREADS above 640", "NCCL replaces it by the maximum",
		func(n int64, b threadBounds) int64 { return min(n, b.most) }),
	threadRule("threads-below-minimum", "NCCL_NTHREADS below 64 or NCCL_LL128_NTHREADS below 160", "NCCL replaces it by the minimum",
		func(n int64, b threadBounds) int64 { return max(n, b.least) }),
	{ID: "old-channel-name", Effect: Alias,
		When:    "NCCL_MIN_NRINGS or NCCL_MAX_NRINGS is set",
		Because: "the old name counts only while the new one is absent",
		Source:  "NVIDIA/nccl src/graph/connect.cc",
		rewrite: func(s situation) []rewrite {
			var changes []rewrite
			for _, name := range []string{"NCCL_MAX_NRINGS", "NCCL_MIN_NRINGS"} {
				if !s.has(name) {
					continue
				}
				change := rewrite{name: name}
				if successor := find(name).Successor; !s.has(successor) {
					change.value, change.newName = s.settings[name], successor
				}
				changes = append(changes, change)
			}
			return changes
		}},
	{ID: "maximum-below-one", Effect: Clamped,
		When:    "NCCL_MAX_NCHANNELS=0",
		Because: "NCCL sets it to 1",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclMaxNchannels)",
		rewrite: func(s situation) []rewrite {
			if !s.is("NCCL_MAX_NCHANNELS", "0") {
				return nil
			}
			return replace("NCCL_MAX_NCHANNELS", "1")
		}},
	{ID: "channels-not-positive", Effect: Inert,
		When:    "NCCL_MIN_NCHANNELS=0, NCCL_MIN_CTAS=0 or NCCL_MAX_CTAS=0",
		Because: "NCCL ignores it",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclMinNchannels), src/init.cc",
		rewrite: func(s situation) []rewrite { return s.dropZero("NCCL_MAX_CTAS", "NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS") }},
	{ID: "minimum-of-one", Effect: IsDefault,
		When:    "NCCL_MIN_NCHANNELS=1",
		Because: "there is one channel at least anyway",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclTopoPostset)",
		rewrite: func(s situation) []rewrite {
			return s.dropIf(s.is("NCCL_MIN_NCHANNELS", "1"), "NCCL_MIN_NCHANNELS")
		}},
	{ID: "maximum-at-channel-limit", Effect: IsDefault,
		When:    "NCCL_MAX_NCHANNELS at or above the limit of 64 channels (32 before 2.25)",
		Because: "no communicator has more channels than the limit anyway",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclMaxNchannels)",
		rewrite: func(s situation) []rewrite {
			limit, known := ChannelLimit(s.Version)
			if !known {
				limit = 64 // holds in every version
			}
			n, ok := s.number("NCCL_MAX_NCHANNELS")
			return s.dropIf(ok && n >= int64(limit), "NCCL_MAX_NCHANNELS")
		}},
	{ID: "channels-above-limit", Effect: Clamped,
		When:    "NCCL_MIN_NCHANNELS, NCCL_MIN_CTAS or NCCL_MAX_CTAS above the limit of 64 channels (32 before 2.25)",
		Because: "NCCL caps it at the limit",
		Source:  "NVIDIA/nccl src/graph/connect.cc, src/init.cc",
		rewrite: func(s situation) []rewrite {
			limit, known := ChannelLimit(s.Version)
			var changes []rewrite
			for _, name := range []string{"NCCL_MAX_CTAS", "NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS"} {
				if n, ok := s.number(name); ok && known && n > int64(limit) {
					changes = append(changes, rewrite{name: name, value: strconv.Itoa(limit)})
				}
			}
			return changes
		}},
	{ID: "minimum-blocks-above-maximum", Effect: Clamped, Versions: since(release(17)),
		When:    "NCCL_MIN_CTAS above NCCL_MAX_CTAS",
		Because: "NCCL sets both to the maximum",
		Source:  "NVIDIA/nccl src/init.cc",
		rewrite: func(s situation) []rewrite {
			least, ok := s.number("NCCL_MIN_CTAS")
			most, both := s.number("NCCL_MAX_CTAS")
			if !ok || !both || least <= most {
				return nil
			}
			return replace("NCCL_MIN_CTAS", s.settings["NCCL_MAX_CTAS"])
		}},
	{ID: "two-maxima", Effect: Alias, Versions: since(release(17)),
		When:    "NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS are both set, without NVLink",
		Because: "both limit the same channels, and the lower one counts",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclTopoPostset); docs/userguide/source/env.rst",
		rewrite: func(s situation) []rewrite {
			return s.dropLoser("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", func(old, now int64) bool { return old < now })
		}},
	{ID: "two-minima", Effect: Alias, Versions: Range{release(17), release(31)},
		When:    "NCCL_MIN_NCHANNELS and NCCL_MIN_CTAS are both set, without NVLink",
		Because: "both raise the same channels, and the higher one counts",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclTopoPostset); docs/userguide/source/env.rst",
		rewrite: func(s situation) []rewrite {
			return s.dropLoser("NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", func(old, now int64) bool { return old > now })
		}},
	{ID: "maximum-above-found-channels", Effect: IsDefault,
		When:    "a channel maximum at or above the number that the search finds, and nothing that changes the search",
		Because: "the search finds no more channels than that",
		Source:  "NVIDIA/nccl src/graph/connect.cc (ncclTopoPostset)",
		rewrite: func(s situation) []rewrite {
			if s.Channels == 0 || s.changesSearch() {
				return nil
			}
			var changes []rewrite
			for _, name := range []string{"NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"} {
				n, ok := s.number(name)
				if ok && n >= int64(s.Channels) && (name == "NCCL_MAX_NCHANNELS" || s.NVLink == No) {
					changes = append(changes, rewrite{name: name})
				}
			}
			return changes
		}},
}

// threadBounds are the ends of a thread count that NCCL keeps to.
type threadBounds struct{ least, most int64 }

var threadCounts = []struct {
	name   string
	bounds threadBounds
}{
	{"NCCL_LL128_NTHREADS", threadBounds{160, 640}},
	{"NCCL_NTHREADS", threadBounds{64, 512}},
}

func threadRule(id, when, because string, clamp func(int64, threadBounds) int64) Rule {
	return Rule{ID: id, Effect: Clamped, When: when, Because: because,
		Source: "NVIDIA/nccl src/graph/tuning.cc (getNthreads)",
		rewrite: func(s situation) []rewrite {
			var changes []rewrite
			for _, count := range threadCounts {
				if n, ok := s.number(count.name); ok {
					if kept := clamp(n, count.bounds); kept != n {
						changes = append(changes, rewrite{name: count.name, value: strconv.FormatInt(kept, 10)})
					}
				}
			}
			return changes
		}}
}

func pick(condition bool, yes, no int64) int64 {
	if condition {
		return yes
	}
	return no
}

// dropLoser keeps the one of two aliases that counts. With NVLink the CTA
// variable also bounds NVLS, so both stay.
func (s situation) dropLoser(old, now string, oldWins func(old, now int64) bool) []rewrite {
	first, ok := s.number(old)
	second, both := s.number(now)
	if !ok || !both || s.NVLink != No {
		return nil
	}
	if oldWins(first, second) {
		return s.drop(now)
	}
	return s.drop(old)
}

// dropZero removes those of the names that are 0.
func (s situation) dropZero(sorted ...string) []rewrite {
	var changes []rewrite
	for _, name := range sorted {
		if s.is(name, "0") {
			changes = append(changes, rewrite{name: name})
		}
	}
	return changes
}

// searchInputs change which channels the topology search finds.
var searchInputs = []string{
	"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NVB_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_CROSS_NIC",
	"NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_C2C", "NCCL_PXN_DISABLE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_IB_HCA",
	"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MIN_NRINGS",
}

func (s situation) changesSearch() bool {
	for _, name := range searchInputs {
		if s.has(name) {
			return true
		}
	}
	return false
}
