package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// NewDescent returns a coordinate descent from the default, as a patient expert
// would do it by hand: one knob at a time from the best configuration so far,
// neighbouring levels of ordered knobs first and further in a direction that
// pays, then what looked worse under other settings, then pairs of knobs.
//
// It keeps no state: what has been compared is read from the history, where two
// trials that differ in one knob say something about that knob. So it goes on
// from any history, also one that other samplers made.
func NewDescent() Sampler { return descent{} }

type descent struct{}

func (descent) Name() string { return "descent" }

func (descent) Ask(ctx context.Context, request Request) (Proposal, error) {
	k := newKnowledge(request)
	start, measured := k.best()
	if !measured {
		start.at = k.space.defaultPoint()
		if k.isNew(start.at) {
			return k.proposal(start.at, "the baseline"), nil
		}
	}
	d := descender{knowledge: k, from: start.at, doubt: k.newSuspicion(), noise: k.noise()}
	d.compare()
	moves := d.moves()
	moves = append(moves, d.pairs()...)
	slices.SortStableFunc(moves, compareMoves)
	if len(moves) > 0 {
		return k.proposal(moves[0].to, moves[0].reason), nil
	}
	p, err := k.restart(ctx, &d.doubt)
	if err != nil {
		return Proposal{}, err
	}
	return k.proposal(p, "restart at random: all changes of one and two knobs are known"), nil
}

// restart finds a new point at random, the least suspect of a few.
func (k *knowledge) restart(ctx context.Context, doubt *suspicion) (point, error) {
	const draws = 64
	var best point
	for n := range uint64(draws) {
		p, ok := k.space.randomPoint(k.dice.named("restart").next(n))
		if ok && k.isNew(p) && (best == nil || doubt.of(p) < doubt.of(best)) {
			best = p
		}
	}
	if best != nil {
		return best, nil
	}
	return k.anyNew(ctx, k.dice.named("restart"))
}

// descender is one ask of the descent.
type descender struct {
	*knowledge
	from  point
	doubt suspicion
	noise float64
	// loss by knob and level: by how much the level fell short of the best
	// level it was compared with, all other knobs equal; NaN when it never was.
	loss [][]float64
}

// A move is a candidate with what decides when its turn comes.
type move struct {
	to      point
	stage   stage
	suspect bool
	gain    float64 // expected, from comparisons under other settings
	rank    uint64  // breaks ties
	reason  string
	knob    int // for moves of one knob
}

// stage is the order in which moves are tried.
type stage uint8

const (
	follow  stage = iota // on in a direction that paid
	explore              // levels never compared
	revisit              // levels that were not clearly worse, under the new settings
	couple               // two knobs together
	distant              // levels far away, or clearly worse before
)

func compareMoves(a, b move) int {
	if a.suspect != b.suspect {
		if b.suspect {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(b.gain, a.gain), cmp.Compare(a.rank, b.rank))
}

// recent bounds the trials that are compared with each other.
const recent = 512

// compare fills in the losses from trials that differ in one knob, the later
// comparison replacing the earlier one.
func (d *descender) compare() {
	trials := d.trials[max(0, len(d.trials)-recent):]
	d.loss = make([][]float64, len(d.space.knobs))
	for i := range d.loss {
		d.loss[i] = make([]float64, len(d.space.knobs[i].Levels))
		for level := range d.loss[i] {
			d.loss[i][level] = math.NaN()
		}
		groups := make(map[uint64][]*trial)
		for t := range trials {
			if trials[t].at[i] != inactive {
				rest := d.space.hashWithout(trials[t].at, i)
				groups[rest] = append(groups[rest], &trials[t])
			}
		}
		for t := range trials {
			if trials[t].at[i] == inactive {
				continue
			}
			// The group is judged when its latest member comes up, so that a
			// later group wins whatever the order of the map.
			group := groups[d.space.hashWithout(trials[t].at, i)]
			if group[len(group)-1] == &trials[t] {
				d.judge(i, group)
			}
		}
	}
}

// judge compares trials that differ in knob i only.
func (d *descender) judge(i int, group []*trial) {
	if len(group) < 2 {
		return
	}
	best := math.Inf(-1)
	for _, t := range group {
		if !t.crashed {
			best = max(best, t.score)
		}
	}
	for _, t := range group {
		switch {
		case t.crashed:
			d.loss[i][t.at[i]] = math.Inf(1)
		default:
			d.loss[i][t.at[i]] = best - t.score
		}
	}
}

// hashWithout is a hash of the point without knob i and the knobs whose
// activity depends on it.
func (s *Space) hashWithout(p point, i int) uint64 {
	hash := uint64(i)
	skipped := make([]bool, len(p))
	skipped[i] = true
	for j, level := range p {
		if parent := s.activity[j].parent; parent >= 0 && skipped[parent] {
			skipped[j] = true
		}
		if !skipped[j] {
			hash = mix(hash ^ uint64(level+1) ^ uint64(j)<<32)
		}
	}
	return hash
}

// moves lists the new configurations that differ from the best in one knob.
func (d *descender) moves() []move {
	var moves []move
	for i := range d.space.knobs {
		if d.from[i] == inactive {
			continue
		}
		for level := range d.space.knobs[i].Levels {
			if level == d.from[i] {
				continue
			}
			to := d.space.with(d.from, i, level)
			if !d.isNew(to) {
				continue
			}
			m := d.judgeMove(i, level)
			m.to, m.knob = to, i
			m.suspect = d.doubt.of(to) > d.doubt.of(d.from)
			m.reason = m.reason + d.differences(to, d.from)
			moves = append(moves, m)
		}
	}
	return moves
}

// rank breaks ties: knobs in the order of the file, where people put first what
// they expect most of, and within a knob a seeded order of its levels.
func (d *descender) rank(i, level int) uint64 {
	seeded := dice(mix(d.seed)).named(d.space.labels[i][level]).intN(1 << 31)
	return uint64(slices.Index(d.space.given, i))<<32 | uint64(seeded)
}

func (d *descender) judgeMove(i, level int) move {
	loss := d.loss[i][level]
	m := move{rank: d.rank(i, level)}
	switch {
	case math.IsNaN(loss):
		m.stage, m.reason = d.untried(i, level)
	case loss > 3*d.noise:
		m.stage, m.gain, m.reason = distant, -loss, "was clearly worse before, under other settings: "
	default:
		m.stage, m.gain, m.reason = revisit, -loss, "was close before, under other settings: "
	}
	return m
}

// untried says when the turn of a level comes that was never compared.
func (d *descender) untried(i, level int) (stage, string) {
	knob := &d.space.knobs[i]
	from := d.from[i]
	if !knob.ordered() || knob.Levels[level].IsUnset() {
		return explore, "never tried: "
	}
	if knob.Levels[from].IsUnset() {
		return d.untriedFromUnset(i, level)
	}
	step := 1
	if level < from {
		step = -1
	}
	for between := from + step; between != level; between += step {
		if loss := d.loss[i][between]; math.IsNaN(loss) || loss > d.noise {
			return distant, "far from what is known: "
		}
	}
	if behind := from - step; behind >= 0 && behind < len(knob.Levels) && d.loss[i][behind] > 0 && d.loss[i][from] == 0 {
		return follow, "the last step this way paid: "
	}
	return explore, "never tried: "
}

// untriedFromUnset begins in the middle of an ordered knob that is absent: where
// the server's own choice lies is not known.
func (d *descender) untriedFromUnset(i, level int) (stage, string) {
	levels := len(d.space.knobs[i].Levels)
	middle := (levels + 1) / 2
	switch {
	case level == middle:
		return explore, "never tried, the middle of its levels: "
	case math.IsNaN(d.loss[i][middle]):
		return distant, "never tried: "
	case level == (1+middle)/2 || level == (middle+levels)/2:
		return explore, "never tried: "
	}
	return distant, "never tried: "
}

// pairs combines the moves that look best, two at a time.
func (d *descender) pairs() []move {
	const partners = 12
	singles := d.promising(partners)
	var pairs []move
	for a := range singles {
		for b := range a {
			first, second := singles[a], singles[b]
			if first.knob == second.knob || first.to[second.knob] == inactive {
				continue
			}
			to := d.space.with(first.to, second.knob, second.to[second.knob])
			if to[first.knob] != first.to[first.knob] || to[second.knob] != second.to[second.knob] || !d.isNew(to) {
				continue
			}
			pairs = append(pairs, move{
				to: to, stage: couple, gain: first.gain + second.gain, rank: first.rank ^ second.rank,
				suspect: d.doubt.of(to) > d.doubt.of(d.from),
				reason:  fmt.Sprintf("two knobs together: %s", d.differences(to, d.from)),
			})
		}
	}
	return pairs
}

// promising lists changes of one knob that were compared and lost least, tried
// from here or not.
func (d *descender) promising(limit int) []move {
	var singles []move
	for i := range d.space.knobs {
		if d.from[i] == inactive {
			continue
		}
		for level, loss := range d.loss[i] {
			if level != d.from[i] && loss <= 5*d.noise {
				singles = append(singles, move{to: d.space.with(d.from, i, level), knob: i, gain: -loss, rank: d.rank(i, level)})
			}
		}
	}
	slices.SortFunc(singles, func(a, b move) int { return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.rank, b.rank)) })
	return singles[:min(len(singles), limit)]
}
