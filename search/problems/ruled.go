package problems

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"

	"nocturne/nccl"
	"nocturne/search"
)

// ruledMachine is the one that the ruled family runs on: 8 GPUs on PCIe below an
// AMD processor, pairs of them bridged by NVLink, NCCL 2.28. So LL128 may be named,
// Ring and Tree are all there is, and NCCL finds 24 channels by itself.
var ruledMachine = nccl.Context{
	Version: nccl.Version{Major: 2, Minor: 28, Patch: 9}, NVSwitch: nccl.No, Farthest: "SYS",
	ComputeCapability: 80, CPU: nccl.AMDCPU, Nodes: 1, Ranks: 8, Channels: 24, RingSimpleThreads: 256,
}

// RuledServers returns a function that draws problems of the server family whose
// settings obey the rules of package nccl: the buffer size is inert where protocol Simple cannot be chosen,
// the P2P level where P2P is off, threads where LL128 alone is left; levels equal to
// NCCL's own choice, thread counts above the maximum and more channels than there are
// come to the same launch as others. The default sets none of them. Truth and crashes
// follow the settings that act, and the space has the canonicalize function. The
// problems share what they find out about settings; the function may be called by
// several goroutines.
func RuledServers() func(seed uint64) *Problem {
	rules := newCollectiveRules()
	return func(seed uint64) *Problem {
		return drawServer(fmt.Sprintf("ruled-%d", seed), seed, ruledLayout(rules), ruledKnobs, rules.canonicalize)
	}
}

func ruledKnobs(random *rand.Rand) []search.Knob {
	list := append(collectiveKnobs(), serverFlags()...)
	list = append(list, choices("NCCL_P2P_DISABLE", "1"))
	list[attention].Default = list[attention].Levels[random.IntN(4)]
	list[graph].Default = list[graph].Levels[random.IntN(5)]
	return list
}

// collectiveKnobs are the knobs before steps, unset by default.
func collectiveKnobs() []search.Knob {
	return []search.Knob{
		proto:    choices("NCCL_PROTO", "LL", "LL128", "Simple"),
		algo:     choices("NCCL_ALGO", "Ring", "Tree", "Tree,Ring"),
		p2p:      choices("NCCL_P2P_LEVEL", "LOC", "PIX", "PXB", "PHB", "SYS"),
		channels: optional("NCCL_MAX_NCHANNELS", search.Ordinal, 2, 4, 8, 12, 16, 24, 32, 64),
		buffer:   optional("NCCL_BUFFSIZE", search.Log2, 1<<20, 1<<21, 1<<22, 1<<23, 1<<24, 1<<25, 1<<26),
		threads:  optional("NCCL_NTHREADS", search.Log2, 64, 128, 256, 512, 1024),
	}
}

func choices(id string, texts ...string) search.Knob {
	return search.Knob{ID: id, Kind: search.Categorical, Levels: search.WithUnset(search.Choices(texts...)), Default: search.Unset}
}

func optional(id string, kind search.KnobKind, values ...int64) search.Knob {
	knob := numbers(id, kind, values...)
	knob.Levels, knob.Default = search.WithUnset(knob.Levels), search.Unset
	return knob
}

// ruledLayout has unset levels where NCCL's own choice lies: 24 channels, 4 MiB.
func ruledLayout(rules *collectiveRules) layout {
	l := layout{sizes: [serverKnobs]int{4, 4, 6, 9, 8, 6, 11, 4, 5, 4, 6, 5, 2}, fragile: []int{1, 2}, rules: rules}
	for _, n := range []float64{24, 2, 4, 8, 12, 16, 24, 32, 64} {
		l.channelPlace = append(l.channelPlace, math.Log2(n/2)/math.Log2(64/2))
		l.channelShare = append(l.channelShare, min(1, n/24))
	}
	for _, mebibytes := range []float64{4, 1, 2, 4, 8, 16, 32, 64} {
		l.bufferPlace = append(l.bufferPlace, math.Log2(mebibytes)/math.Log2(64))
		l.bufferShare = append(l.bufferShare, mebibytes/64)
	}
	return l
}

// collectiveRules map settings to those that act, and remember what they found:
// samplers ask for the same settings thousands of times.
type collectiveRules struct {
	knobs  []search.Knob
	places []int // of the knobs in a configuration
	levels []map[string]int

	mutex sync.RWMutex
	known map[int][]int // levels that act, by the number of the settings
}

func newCollectiveRules() *collectiveRules {
	r := &collectiveRules{known: make(map[int][]int)}
	for i, knob := range collectiveKnobs() {
		r.add(knob, i)
	}
	r.add(choices("NCCL_P2P_DISABLE", "1"), p2pOff)
	return r
}

func (r *collectiveRules) add(knob search.Knob, place int) {
	levels := make(map[string]int, len(knob.Levels))
	for level, value := range knob.Levels {
		levels[value.String()] = level
	}
	r.knobs, r.places, r.levels = append(r.knobs, knob), append(r.places, place), append(r.levels, levels)
}

// acting are the levels that act in place of those given; the same for the family
// without rules.
func (r *collectiveRules) acting(at []int) []int {
	if r == nil {
		return at
	}
	settings := make([]int, len(r.knobs))
	for k, place := range r.places {
		settings[k] = at[place]
	}
	acting := append([]int(nil), at...)
	for k, level := range r.of(settings) {
		acting[r.places[k]] = level
	}
	return acting
}

// canonicalize is the space's function of that name.
func (r *collectiveRules) canonicalize(values search.Values) search.Values {
	settings := make([]int, len(r.knobs))
	for k := range r.knobs {
		level, legal := r.levels[k][values[r.knobs[k].ID].String()]
		if !legal {
			return values
		}
		settings[k] = level
	}
	for k, level := range r.of(settings) {
		values[r.knobs[k].ID] = r.knobs[k].Levels[level]
	}
	return values
}

func (r *collectiveRules) of(settings []int) []int {
	number := 0
	for k, level := range settings {
		number = number*len(r.knobs[k].Levels) + level
	}
	r.mutex.RLock()
	acting, known := r.known[number]
	r.mutex.RUnlock()
	if !known {
		acting = r.work(settings)
		r.mutex.Lock()
		r.known[number] = acting
		r.mutex.Unlock()
	}
	return acting
}

// work asks NCCL's rules.
func (r *collectiveRules) work(settings []int) []int {
	asked := map[string]string{}
	for k, level := range settings {
		if value := r.knobs[k].Levels[level]; !value.IsUnset() {
			asked[r.knobs[k].ID] = value.String()
		}
	}
	found, _, err := nccl.Canonical(ruledMachine, maps.Clone(asked))
	if err != nil {
		panic("problems: " + err.Error()) // the levels are made here, not given
	}
	acting := make([]int, len(settings))
	for k := range r.knobs {
		text, set := found[r.knobs[k].ID]
		if !set {
			continue
		}
		level, legal := r.levels[k][text]
		if !legal {
			panic(fmt.Sprintf("problems: %s=%s acts and is no level", r.knobs[k].ID, text))
		}
		acting[k] = level
	}
	return acting
}
