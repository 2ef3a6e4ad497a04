package problems

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"nocturne/search"
)

// Positions of the server's knobs.
const (
	proto = iota
	algo
	p2p
	channels
	buffer
	threads
	steps
	topk
	draft
	attention
	memory
	graph
	numa
	serverKnobs
)

// server holds the drawn parameters of one Server problem. Factors are at least
// 1, and 1 at their best level.
type server struct {
	proto, algo, p2p, threads, attention, numa []float64
	pair                                       [][]float64 // by protocol and algorithm
	channels                                   [][]float64 // by protocol
	buffer                                     [][]float64 // by algorithm
	acceptance, decay                          float64
	topkGain, draftGain                        []float64
	draftCost                                  float64
	badAlgo, badProtoA, badProtoB              int
	badBackend, badTopk                        int
	hang                                       [3]int // p2p, channels above, threads
	memoryLimit                                float64
}

// Server draws a problem of the server family.
func Server(seed uint64) *Problem {
	random := rand.New(rand.NewPCG(seed, 1))
	for {
		s := drawServer(random)
		knobs := s.knobs(random)
		start := make([]int, serverKnobs)
		for i, knob := range knobs {
			for level, value := range knob.Levels {
				if value == knob.Default {
					start[i] = level
				}
			}
		}
		start[topk], start[draft] = absent, absent
		if !s.calibrate(start, random) {
			continue
		}
		problem := newProblem(fmt.Sprintf("server-%d", seed), seed, knobs, s.truth)
		if !problem.defaultBetween(0.30, 0.42, 2) {
			continue
		}
		problem.findOptimum(16)
		if problem.defaultBetween(0.30, 0.42, 0) {
			return problem
		}
	}
}

func (s *server) knobs(random *rand.Rand) []search.Knob {
	speculating := search.Condition{Knob: "speculative.steps", In: []search.Value{search.Int(0)}, Not: true}
	list := []search.Knob{
		proto:     named("NCCL_PROTO", 4),
		algo:      named("NCCL_ALGO", 5),
		p2p:       named("NCCL_P2P_LEVEL", 6),
		channels:  numbers("NCCL_MAX_NCHANNELS", search.Ordinal, 2, 4, 6, 8, 12, 16, 20, 24, 32),
		buffer:    numbers("NCCL_BUFFSIZE", search.Log2, 1<<19, 1<<20, 1<<21, 1<<22, 1<<23, 1<<24, 1<<25, 1<<26),
		threads:   numbers("NCCL_NTHREADS", search.Log2, 64, 128, 256, 512),
		steps:     numbers("speculative.steps", search.Integer, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
		topk:      numbers("speculative.topk", search.Ordinal, 1, 2, 4, 8),
		draft:     numbers("speculative.draft_tokens", search.Ordinal, 2, 4, 8, 16, 32),
		attention: named("attention", 4),
		memory:    numbers("flag.mem_percent", search.Ordinal, 80, 84, 88, 90, 92, 94),
		graph:     numbers("flag.cuda_graph_max_bs", search.Ordinal, 1, 2, 4, 8, 16),
		numa:      named("numa", 2),
	}
	list[topk].When, list[draft].When = speculating, speculating
	for _, i := range []int{proto, algo, p2p, channels, buffer, threads, attention, graph, numa} {
		list[i].Default = list[i].Levels[random.IntN(len(list[i].Levels))]
	}
	list[memory].Default = list[memory].Levels[2]
	return list
}

func named(id string, n int) search.Knob {
	levels := make([]search.Value, n)
	for i := range levels {
		levels[i] = search.Text(string(rune('a' + i)))
	}
	return search.Knob{ID: id, Kind: search.Categorical, Levels: levels, Default: levels[0]}
}

func numbers(id string, kind search.KnobKind, values ...int64) search.Knob {
	levels := make([]search.Value, len(values))
	for i, value := range values {
		levels[i] = search.Int(value)
	}
	return search.Knob{ID: id, Kind: kind, Levels: levels, Default: levels[0]}
}

// factors draws n factors from 1 to 1+spread, the best at a random place.
func factors(random *rand.Rand, n int, spread float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = 1 + spread*float64(i)/float64(max(1, n-1))*(0.6+0.8*random.Float64())
	}
	random.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func uniform(random *rand.Rand, lo, hi float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = lo + (hi-lo)*random.Float64()
	}
	return list
}

func drawServer(random *rand.Rand) *server {
	s := &server{
		proto: factors(random, 4, 0.5), algo: factors(random, 5, 0.4), p2p: factors(random, 6, 0.35),
		threads: factors(random, 4, 0.2), attention: factors(random, 4, 0.06), numa: factors(random, 2, 0.02),
		channels: curves(random, 4, 9, 0.15, 0.5), buffer: curves(random, 5, 8, 0.08, 0.25),
		acceptance: 0.36 + 0.14*random.Float64(), decay: 0.75 + 0.15*random.Float64(),
		topkGain: peaked(random, 4, 0.05), draftGain: peaked(random, 5, 0.06),
		draftCost: 2.6 + 1.2*random.Float64(),
	}
	s.pair = make([][]float64, 4)
	for i := range s.pair {
		s.pair[i] = uniform(random, 1, 1.3, 5)
	}
	s.badAlgo = random.IntN(5)
	s.badProtoA = random.IntN(4)
	s.badProtoB = (s.badProtoA + 1 + random.IntN(3)) % 4
	s.badBackend, s.badTopk = random.IntN(4), 1+random.IntN(3)
	s.hang = [3]int{random.IntN(6), 3 + random.IntN(4), random.IntN(4)}
	return s
}

// peaked draws factors of at most 1 that fall away from a random peak.
func peaked(random *rand.Rand, n int, depth float64) []float64 {
	peak := random.Float64() * float64(n-1)
	list := make([]float64, n)
	for i := range list {
		distance := (float64(i) - peak) / float64(n-1)
		list[i] = 1 - depth*4*distance*distance
	}
	return list
}

// curves draws rows of factors that rise from 1 at a random peak, a row for each
// level of another knob.
func curves(random *rand.Rand, rows, n int, least, most float64) [][]float64 {
	list := make([][]float64, rows)
	for row := range list {
		peak := random.Float64() * float64(n-1)
		width := least + (most-least)*random.Float64()
		for level := range n {
			distance := (float64(level) - peak) / float64(n-1)
			list[row] = append(list[row], 1+4*width*distance*distance)
		}
	}
	return list
}

// communication is the product of the communication factors.
func (s *server) communication(at []int) float64 {
	return s.proto[at[proto]] * s.algo[at[algo]] * s.p2p[at[p2p]] * s.threads[at[threads]] *
		s.pair[at[proto]][at[algo]] * s.channels[at[proto]][at[channels]] * s.buffer[at[algo]][at[buffer]]
}

// raise takes all communication factors to a power.
func (s *server) raise(exponent float64) {
	rows := [][]float64{s.proto, s.algo, s.p2p, s.threads}
	rows = slices.Concat(rows, s.pair, s.channels, s.buffer)
	for _, row := range rows {
		for i := range row {
			row[i] = math.Pow(row[i], exponent)
		}
	}
}

// calibrate raises the factors so that the default spends about three times the
// best communication time, and the memory limit so that about 17 % crash.
func (s *server) calibrate(start []int, random *rand.Rand) bool {
	at := slices.Clone(start)
	best := math.Inf(1)
	for range 4000 {
		for i, n := range []int{4, 5, 6, 9, 8, 4} {
			at[i] = random.IntN(n)
		}
		best = min(best, s.communication(at))
	}
	ratio := s.communication(start) / best
	if ratio < 1.5 {
		return false
	}
	exponent := math.Log(2.6+random.Float64()) / math.Log(ratio)
	if exponent > 2.5 {
		return false
	}
	s.raise(exponent)
	s.memoryLimit = 1
	for step := 0; step < 60 && s.crashShare(random) < 0.165; step++ {
		s.memoryLimit -= 0.005
	}
	return !s.crashes(start)
}

func (s *server) crashShare(random *rand.Rand) float64 {
	const draws = 2000
	at := make([]int, serverKnobs)
	crashed := 0
	for range draws {
		for i, n := range []int{4, 5, 6, 9, 8, 4, 11, 4, 5, 4, 6, 5, 2} {
			at[i] = random.IntN(n)
		}
		if at[steps] == 0 {
			at[topk], at[draft] = absent, absent
		}
		if s.crashes(at) {
			crashed++
		}
	}
	return float64(crashed) / draws
}

func (s *server) crashes(at []int) bool {
	if at[algo] == s.badAlgo && (at[proto] == s.badProtoA || at[proto] == s.badProtoB) {
		return true
	}
	if at[topk] != absent && at[attention] == s.badBackend && at[topk] >= s.badTopk && at[draft] >= 3 {
		return true
	}
	if at[p2p] == s.hang[0] && at[channels] > s.hang[1] && at[threads] == s.hang[2] {
		return true
	}
	used := []float64{0.80, 0.84, 0.88, 0.90, 0.92, 0.94}[at[memory]] +
		0.05/float64(int(1)<<(7-at[buffer]))*float64(at[channels]+1)/9
	if at[draft] != absent {
		used += 0.01 * float64(at[draft])
	}
	return used > s.memoryLimit
}

// truth is the rate in tokens per second.
func (s *server) truth(at []int) (float64, bool) {
	if s.crashes(at) {
		return 0, false
	}
	compute := 9.4 * s.attention[at[attention]] * s.numa[at[numa]]
	transfer := 1.75 * s.communication(at)
	if at[steps] == 0 {
		return 1000 / (compute + transfer), true
	}
	n := float64(at[steps])
	accepted, rate := 0.0, s.acceptance
	for range at[steps] {
		accepted += rate
		rate *= s.acceptance * s.decay
	}
	accepted *= s.topkGain[at[topk]] * s.draftGain[at[draft]]
	cycle := compute*1.12 + 1.15*transfer + n*s.draftCost*0.45
	return 1000 * (1 + accepted) / cycle, true
}
