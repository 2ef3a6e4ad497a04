package problems

import (
	"fmt"
	"math"
	"math/rand/v2"

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

	p2pOff = numa // of the ruled family
)

// server holds the drawn parameters of one problem of the server family. Factors
// are at least 1, and 1 at their best level.
type server struct {
	layout

	proto, algo, p2p, threads, attention, numa []float64
	pair                                       [][]float64 // by protocol and algorithm
	channels                                   [][]float64 // by protocol
	buffer                                     [][]float64 // by algorithm
	acceptanceRate, decay                      float64
	topkGain, draftGain                        []float64
	draftCost                                  float64
	badAlgo, badProtoA, badProtoB              int
	badBackend, badTopk                        int
	hangP2P, hangThreads                       int
	hangChannels                               float64 // share above which it hangs
	memoryLimit                                float64
	withoutP2P                                 float64 // in place of p2p in the ruled family
}

// layout is what the levels of the server's knobs mean.
type layout struct {
	sizes   [serverKnobs]int
	fragile []int // algorithms of which one crashes
	// Places of levels along the curves of channels and buffers, from 0 to 1.
	channelPlace, bufferPlace []float64
	// Shares of the most channels and of the largest buffer.
	channelShare, bufferShare []float64
	// rules, if any, say which levels act.
	rules *collectiveRules
}

// plainLayout has settings without rules.
func plainLayout() layout {
	l := layout{sizes: [serverKnobs]int{4, 5, 6, 9, 8, 4, 11, 4, 5, 4, 6, 5, 2}, fragile: []int{0, 1, 2, 3, 4}}
	for level := range l.sizes[channels] {
		l.channelPlace = append(l.channelPlace, float64(level)/8)
		l.channelShare = append(l.channelShare, float64(level+1)/9)
	}
	for level := range l.sizes[buffer] {
		l.bufferPlace = append(l.bufferPlace, float64(level)/7)
		l.bufferShare = append(l.bufferShare, 1/float64(int(1)<<(7-level)))
	}
	return l
}

// Server draws a problem of the server family.
func Server(seed uint64) *Problem {
	return drawServer(fmt.Sprintf("server-%d", seed), seed, plainLayout(), plainKnobs, nil)
}

// drawServer draws until the default is as far from the optimum as it was on the
// machine that the family follows.
func drawServer(name string, seed uint64, l layout, knobs func(*rand.Rand) []search.Knob, canonicalize func(search.Values) search.Values) *Problem {
	random := rand.New(rand.NewPCG(seed, 1))
	for {
		s := newServer(l, random)
		space := mustSpace(knobs(random), nil, canonicalize)
		problem := newProblem(name, seed, space, s)
		if !s.calibrate(problem.defaults(), random) || !problem.defaultBetween(0.30, 0.42, 2) {
			continue
		}
		problem.findOptimum(optimumStarts)
		if problem.defaultBetween(0.30, 0.42, 0) {
			return problem
		}
	}
}

func plainKnobs(random *rand.Rand) []search.Knob {
	list := append([]search.Knob{
		proto:    named("NCCL_PROTO", 4),
		algo:     named("NCCL_ALGO", 5),
		p2p:      named("NCCL_P2P_LEVEL", 6),
		channels: numbers("NCCL_MAX_NCHANNELS", search.Ordinal, 2, 4, 6, 8, 12, 16, 20, 24, 32),
		buffer:   numbers("NCCL_BUFFSIZE", search.Log2, 1<<19, 1<<20, 1<<21, 1<<22, 1<<23, 1<<24, 1<<25, 1<<26),
		threads:  numbers("NCCL_NTHREADS", search.Log2, 64, 128, 256, 512),
	}, serverFlags()...)
	list = append(list, named("numa", 2))
	for _, i := range []int{proto, algo, p2p, channels, buffer, threads, attention, graph, numa} {
		list[i].Default = list[i].Levels[random.IntN(len(list[i].Levels))]
	}
	return list
}

// serverFlags are the knobs from steps to graph. The default does not speculate.
func serverFlags() []search.Knob {
	speculating := search.Condition{Knob: "speculative.steps", In: []search.Value{search.Int(0)}, Not: true}
	list := []search.Knob{
		numbers("speculative.steps", search.Integer, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
		numbers("speculative.topk", search.Ordinal, 1, 2, 4, 8),
		numbers("speculative.draft_tokens", search.Ordinal, 2, 4, 8, 16, 32),
		named("attention", 4),
		numbers("flag.mem_percent", search.Ordinal, 80, 84, 88, 90, 92, 94),
		numbers("flag.cuda_graph_max_bs", search.Ordinal, 1, 2, 4, 8, 16),
	}
	list[topk-steps].When, list[draft-steps].When = speculating, speculating
	list[memory-steps].Default = list[memory-steps].Levels[2]
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

// communication is the product of the communication factors.
func (s *server) communication(at []int) float64 {
	direct := s.p2p[at[p2p]]
	if s.rules != nil && at[p2pOff] == 1 {
		direct = s.withoutP2P
	}
	return s.proto[at[proto]] * s.algo[at[algo]] * direct * s.threads[at[threads]] *
		s.pair[at[proto]][at[algo]] * s.channels[at[proto]][at[channels]] * s.buffer[at[algo]][at[buffer]]
}

func (s *server) crashes(at []int) bool {
	at = s.rules.acting(at)
	if at[algo] == s.badAlgo && (at[proto] == s.badProtoA || at[proto] == s.badProtoB) {
		return true
	}
	if at[topk] != absent && at[attention] == s.badBackend && at[topk] >= s.badTopk && at[draft] >= 3 {
		return true
	}
	if at[p2p] == s.hangP2P && s.channelShare[at[channels]] > s.hangChannels && at[threads] == s.hangThreads {
		return true
	}
	used := []float64{0.80, 0.84, 0.88, 0.90, 0.92, 0.94}[at[memory]] + 0.05*s.bufferShare[at[buffer]]*s.channelShare[at[channels]]
	if at[draft] != absent {
		used += 0.01 * float64(at[draft])
	}
	return used > s.memoryLimit
}

// value is the rate in tokens per second: tokens of a step by its time.
func (s *server) value(at []int) float64 {
	at = s.rules.acting(at)
	compute := 9.4 * s.attention[at[attention]]
	if s.rules == nil {
		compute *= s.numa[at[numa]]
	}
	transfer := 1.75 * s.communication(at)
	if !s.speculates(at) {
		return 1000 / (compute + transfer)
	}
	return 1000 * s.acceptance(at) / (compute*1.12 + 1.15*transfer + float64(at[steps])*s.draftCost*0.45)
}

func (s *server) speculates(at []int) bool { return at[steps] > 0 }

func (s *server) acceptance(at []int) float64 {
	if !s.speculates(at) {
		return 1
	}
	accepted, rate := 0.0, s.acceptanceRate
	for range at[steps] {
		accepted += rate
		rate *= s.acceptanceRate * s.decay
	}
	return 1 + accepted*s.topkGain[at[topk]]*s.draftGain[at[draft]]
}

// communicationRows are the communication factors.
func (s *server) communicationRows() [][]float64 {
	rows := [][]float64{s.proto, s.algo, s.p2p, s.threads}
	rows = append(rows, s.pair...)
	rows = append(rows, s.channels...)
	return append(rows, s.buffer...)
}

// raise takes all communication factors to a power.
func (s *server) raise(exponent float64) {
	for _, row := range s.communicationRows() {
		for i := range row {
			row[i] = math.Pow(row[i], exponent)
		}
	}
}
