package search

import (
	"math"

	"github.com/c-bata/goptuna"
)

// toldScores lists what is known as complete trials whose value, to be minimized,
// is the negative score. goptuna's CMA-ES minimizes whatever the direction of the
// study; its estimator passes over failed trials and would go on proposing what
// always crashes, so a crash counts as the worst score seen.
func (k *knowledge) toldScores() []told {
	worst := k.worstScore()
	trials := make([]told, len(k.trials))
	for i := range k.trials {
		score := k.trials[i].score
		if k.trials[i].crashed {
			score = worst
		}
		trials[i] = told{at: k.trials[i].at, state: goptuna.TrialStateComplete, value: -score}
	}
	return trials
}

// toldRequest lists the trials of a request as they are: measured ones complete,
// pending ones running. What does not fit the space is left out.
func toldRequest(request *Request) []told {
	trials := make([]told, 0, len(request.History)+len(request.Pending))
	for i := range request.History {
		o := &request.History[i]
		if p, ok := request.Space.fitted(o.Values); ok {
			state, value := stateOf(o)
			trials = append(trials, told{at: p, state: state, value: value})
		}
	}
	for _, values := range request.Pending {
		if p, ok := request.Space.fitted(values); ok {
			trials = append(trials, told{at: p, state: goptuna.TrialStateRunning})
		}
	}
	return trials
}

// fitted is pointOf without the faults. A history consists of whole configurations
// but for a few from other spaces, and those need no list of what is wrong.
func (s *Space) fitted(values Values) (point, bool) {
	p := s.tolerantPoint(values)
	given := 0
	for i, level := range p {
		_, present := values[s.knobs[i].ID]
		if present != (level != inactive) {
			given = -1
			break
		}
		if present {
			given++
		}
	}
	if given == len(values) {
		return p, true
	}
	p, err := s.pointOf(values)
	return p, err == nil
}

// stateOf is the goptuna state and value of an observation. A value that is not
// finite counts as a failure: goptuna would take NaN for its best value for ever.
func stateOf(o *Observation) (goptuna.TrialState, float64) {
	switch {
	case o.Outcome == Infeasible || math.IsNaN(o.Value) || math.IsInf(o.Value, 0):
		return goptuna.TrialStateFail, 0
	case o.Outcome == Pruned:
		return goptuna.TrialStatePruned, o.Value
	}
	return goptuna.TrialStateComplete, o.Value
}
