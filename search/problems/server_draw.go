package problems

import (
	"math"
	"math/rand/v2"
	"slices"
)

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

func newServer(l layout, random *rand.Rand) *server {
	n := l.sizes
	s := &server{
		layout: l,
		proto:  factors(random, n[proto], 0.5), algo: factors(random, n[algo], 0.4), p2p: factors(random, n[p2p], 0.35),
		threads: factors(random, n[threads], 0.2), attention: factors(random, n[attention], 0.06), numa: factors(random, 2, 0.02),
		channels: curves(random, n[proto], l.channelPlace, 0.15, 0.5), buffer: curves(random, n[algo], l.bufferPlace, 0.08, 0.25),
		acceptanceRate: 0.36 + 0.14*random.Float64(), decay: 0.75 + 0.15*random.Float64(),
		topkGain: peaked(random, n[topk], 0.05), draftGain: peaked(random, n[draft], 0.06),
		draftCost: 2.6 + 1.2*random.Float64(),
	}
	s.pair = make([][]float64, n[proto])
	for i := range s.pair {
		s.pair[i] = uniform(random, 1, 1.3, n[algo])
	}
	s.badAlgo = l.fragile[random.IntN(len(l.fragile))]
	s.badProtoA = random.IntN(n[proto])
	s.badProtoB = (s.badProtoA + 1 + random.IntN(n[proto]-1)) % n[proto]
	s.badBackend, s.badTopk = random.IntN(n[attention]), 1+random.IntN(n[topk]-1)
	s.hangP2P, s.hangChannels, s.hangThreads = random.IntN(n[p2p]), float64(4+random.IntN(4))/9, random.IntN(4)
	if l.rules != nil {
		s.withoutP2P = 1 + 0.35*random.Float64()
	}
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

// curves draws rows of factors that rise from 1 at a random place, a row for each
// level of another knob; places are those of the levels, from 0 to 1.
func curves(random *rand.Rand, rows int, places []float64, least, most float64) [][]float64 {
	list := make([][]float64, rows)
	for row := range list {
		peak := random.Float64()
		width := least + (most-least)*random.Float64()
		for _, place := range places {
			list[row] = append(list[row], 1+4*width*(place-peak)*(place-peak))
		}
	}
	return list
}

// calibrate raises the factors so that the default spends about three times the
// best communication time, and the memory limit so that about 17 % crash.
func (s *server) calibrate(start []int, random *rand.Rand) bool {
	at := slices.Clone(start)
	best := math.Inf(1)
	for range 4000 {
		for i := range steps {
			at[i] = random.IntN(s.sizes[i])
		}
		best = min(best, s.communication(s.rules.acting(at)))
	}
	ratio := s.communication(s.rules.acting(start)) / best
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
		for i, n := range s.sizes {
			at[i] = random.IntN(n)
		}
		if !s.speculates(at) {
			at[topk], at[draft] = absent, absent
		}
		if s.crashes(at) {
			crashed++
		}
	}
	return float64(crashed) / draws
}

// redrawn draws other effects and crashes for the same knobs.
func (s *server) redrawn(random *rand.Rand, start []int) drawn {
	for {
		if other := newServer(s.layout, random); other.calibrate(start, random) {
			return other
		}
	}
}

// jittered has the same crashes. The levels of knobs without order are off
// independently; curves stay smooth: they are off as a whole and by a tilt. The
// small effects on compute time are off by the share of themselves, since the share
// of compute time itself would bury them. At 5 % the sibling's optimum loses about
// 2 % here, at 15 % about 8 %.
func (s *server) jittered(random *rand.Rand, share float64) drawn {
	off := func() float64 { return math.Exp(share * random.NormFloat64()) }
	apart := func(factors []float64) []float64 {
		list := slices.Clone(factors)
		for i := range list {
			list[i] *= off()
		}
		return list
	}
	smooth := func(factors []float64) []float64 {
		list := slices.Clone(factors)
		whole, tilt := share*random.NormFloat64(), share*random.NormFloat64()
		for i := range list {
			list[i] *= math.Exp(whole + tilt*(2*float64(i)/float64(len(list)-1)-1))
		}
		return list
	}
	relative := func(factors []float64) []float64 {
		list := slices.Clone(factors)
		for i := range list {
			list[i] = math.Pow(list[i], off())
		}
		return list
	}
	other := *s
	other.proto, other.algo, other.p2p, other.threads = apart(s.proto), apart(s.algo), apart(s.p2p), apart(s.threads)
	other.attention, other.numa = relative(s.attention), relative(s.numa)
	other.pair, other.channels, other.buffer = each(s.pair, apart), each(s.channels, smooth), each(s.buffer, smooth)
	other.acceptanceRate, other.decay = s.acceptanceRate*off(), min(1, s.decay*off())
	other.topkGain, other.draftGain = smooth(s.topkGain), smooth(s.draftGain)
	other.draftCost, other.withoutP2P = s.draftCost*off(), s.withoutP2P*off()
	return &other
}

func each(rows [][]float64, change func([]float64) []float64) [][]float64 {
	list := make([][]float64, len(rows))
	for i := range rows {
		list[i] = change(rows[i])
	}
	return list
}
