package search

import (
	"context"
	"slices"
)

// knowledge is a request made ready for a sampler: repeats of a configuration
// are merged, values are turned so that more is better and put on one scale.
type knowledge struct {
	space   *Space
	seed    uint64
	dice    dice                // of this ask
	taken   map[string]struct{} // keys that were measured, failed or are pending
	trials  []trial             // distinct configurations, in order of first appearance
	pending []point
	acting  map[string]point // what acts in place of a point, by the point; see effective
	factors []Factor
	length  int     // of the history
	ratios  bool    // scores are logarithms of ratios
	sign    float64 // -1 when the objective is minimized
}

// trial is what is known of one configuration.
type trial struct {
	at      point
	key     string
	crashed bool
	pruned  bool
	broken  bool   // a limit, on average of its measurements
	failure string // the latest cause of a crash
	// score is the objective, more is better: the logarithm of the ratio to the
	// first measured configuration that keeps the limits when all values are positive (so 0.01 is
	// about one percent), else the difference to it over the largest magnitude.
	score    float64
	noise    float64 // standard error of score; 0 when not known
	count    int     // measurements behind score
	last     int     // position in the history of the latest one
	measures []measure
	margins  map[string]float64 // by limit, means
}

// measure is one measurement of a configuration, on the scale of scores.
type measure struct {
	score, noise float64
	position     int       // in the history
	factors      []float64 // logarithms, as in the request; NaN when not read
}

// newKnowledge reads a request. Observations that do not fit the space (a level
// or a knob that it no longer has) only keep their configuration from being
// proposed; a knob that they lack counts as at its default.
func newKnowledge(request Request) *knowledge {
	k := &knowledge{space: request.Space, seed: request.Seed, dice: newDice(request), factors: request.Factors,
		length: len(request.History), taken: make(map[string]struct{}, len(request.History)+len(request.Pending))}
	raws := k.merge(request.History)
	for i := range raws {
		k.trials = append(k.trials, raws[i].trial)
	}
	k.scale(raws, request.Minimize)
	for _, values := range request.Pending {
		k.taken[k.space.Key(values)] = struct{}{}
		if p, err := k.space.pointOf(values); err == nil {
			k.pending = append(k.pending, p)
		}
	}
	return k
}

// isNew reports whether the configuration is legal and was neither tried nor is
// pending.
func (k *knowledge) isNew(p point) bool {
	if !k.space.legal(p) {
		return false
	}
	_, taken := k.taken[k.space.pointKey(p)]
	return !taken
}

// best returns the measured trial with the highest score, of those that keep the
// limits if there are any; false when nothing was measured. Earlier trials win
// ties.
func (k *knowledge) best() (trial, bool) {
	best := -1
	for i := range k.trials {
		t := &k.trials[i]
		if t.crashed || t.pruned {
			continue
		}
		if best < 0 || (k.trials[best].broken && !t.broken) ||
			(k.trials[best].broken == t.broken && t.score > k.trials[best].score) {
			best = i
		}
	}
	if best < 0 {
		return trial{}, false
	}
	return k.trials[best], true
}

// worstScore is the lowest score seen, the value that a crash is told as.
func (k *knowledge) worstScore() float64 {
	worst := 0.0
	for i := range k.trials {
		if !k.trials[i].crashed {
			worst = min(worst, k.trials[i].score)
		}
	}
	return worst
}

// noise returns the standard deviation of a score over launches: the median of
// what the trials report, but at least the usual spread of a launch, since the
// rounds within one launch agree better than two launches do.
func (k *knowledge) noise() float64 {
	const usual = 0.01
	var errors []float64
	for i := range k.trials {
		if k.trials[i].noise > 0 {
			errors = append(errors, k.trials[i].noise)
		}
	}
	if len(errors) == 0 {
		return usual
	}
	slices.Sort(errors)
	return max(usual, errors[len(errors)/2])
}

// anyNew finds a configuration that is new, at random when that is quick and by
// a complete search when it is not. It returns ErrExhausted when there is none.
func (k *knowledge) anyNew(ctx context.Context, d dice) (point, error) {
	const draws = 128
	for n := range uint64(draws) {
		if p, ok := k.space.randomPoint(d.next(n)); ok && k.isNew(p) {
			return p, nil
		}
	}
	return k.firstNew(ctx, k.space.randomOrder(d.named("order")))
}

// sameLaunches is how many steps a search for a new configuration takes where
// configurations can come to the same launch: of a space in which hardly any
// setting acts, astronomically many do.
const sameLaunches = 1 << 19

// firstNew is the first new configuration in an order of levels.
func (k *knowledge) firstNew(ctx context.Context, order func(int, point) []int) (point, error) {
	var found point
	budget := unlimited
	if k.space.canonicalize != nil {
		budget = sameLaunches
	}
	w := walker{space: k.space, positions: k.space.allPositions(), order: order, budget: budget, ctx: ctx,
		visit: func(p point) bool {
			if k.isNew(p) {
				found = slices.Clone(p)
			}
			return found == nil
		}}
	whole := w.walk()
	switch {
	case found != nil:
		return found, nil
	case !whole && ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, ErrExhausted
}

// proposal wraps a point.
func (k *knowledge) proposal(p point, reason string) Proposal {
	return Proposal{Values: k.space.values(p), Reason: reason}
}

// differences names what a point changes against another, for reasons in words.
func (k *knowledge) differences(p, from point) string {
	text := ""
	for _, i := range k.space.given {
		if p[i] == from[i] {
			continue
		}
		if text != "" {
			text += ", "
		}
		if p[i] == inactive {
			text += k.space.knobs[i].ID + " no longer matters"
			continue
		}
		text += k.space.labels[i][p[i]]
	}
	return text
}
