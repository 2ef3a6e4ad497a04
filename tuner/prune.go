package tuner

import (
	"slices"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
)

// How far two launches of one configuration are apart, as a standard deviation:
// about half a percent without speculation, and up to 11 % from one to another
// with it. A trial that is cut short must be worse by more than that.
const launchNoise, speculativeLaunchNoise = 0.01, 0.035

// hopeless reports whether a running trial can be stopped after a round, because
// even the bound on what it can still turn out to have leaves it behind the
// finalists. References, controls and the confirmation always run to their end:
// their numbers are compared with.
func (r *run) hopeless(trial *store.Trial, round runners.Round, measured []search.Round) bool {
	if !isCandidate(trial.Role) || !r.moreToMeasure(round) {
		return false
	}
	last, known := r.lastFinalist()
	if !known {
		return false
	}
	pruner, err := r.pruner(trial)
	if err != nil {
		return false
	}
	stop, err := search.ShouldPrune(pruner, r.campaign.Objective.Minimize(), last, measured)
	if err != nil {
		r.tuner.Log.Warn().Err(err).Int("trial", trial.Number).Msg("the pruner failed; the trial goes on")
		return false
	}
	return stop
}

// moreToMeasure reports whether stopping now saves anything for sure. After the
// least number of rounds an automatic series may be at its end.
func (r *run) moreToMeasure(round runners.Round) bool {
	if round.Point < len(r.campaign.Workload.Points)-1 {
		return true
	}
	rounds := r.campaign.Workload.Rounds
	return round.Number < max(rounds.Fixed, rounds.Min)
}

// lastFinalist is the worst of the trials that would be confirmed now; false while
// there are fewer than that.
func (r *run) lastFinalist() (search.Round, bool) {
	finalists, _ := r.confirmation()
	ranking := r.ranking()
	if len(ranking) < finalists {
		return search.Round{}, false
	}
	last := search.Round{Value: *ranking[finalists-1].Value}
	if known := ranking[finalists-1].StandardError; known != nil {
		last.StandardError = *known
	}
	return last, true
}

func (r *run) pruner(trial *store.Trial) (*search.Pruner, error) {
	noise := launchNoise
	if len(r.campaign.SpeculationKnobs()) > 0 && !r.campaign.IdleSpeculation(trial.Configuration.Values) {
		noise = speculativeLaunchNoise
	}
	return search.NewPruner(search.PrunerOptions{Launch: noise})
}

// countedPoint is the index of the load point whose metric alone is the objective;
// -1 when several are.
func (r *run) countedPoint() int {
	objective, points := r.campaign.Objective, r.campaign.Workload.Points
	switch {
	case objective.At != nil:
		return slices.IndexFunc(points, func(p runners.LoadPoint) bool { return p.Concurrency == *objective.At })
	case objective.Aggregate != "" && len(points) > 1:
		return -1
	}
	return 0
}

// fillBound gives a trial that was stopped the best value that it can have: that
// is known of it, and its mean is not.
func (r *run) fillBound(trial *store.Trial) {
	counted := r.countedPoint()
	last, known := r.lastFinalist()
	pruner, err := r.pruner(trial)
	if err != nil || !known || counted < 0 || counted >= len(trial.Points) {
		return
	}
	var measured []search.Round
	for _, round := range trial.Points[counted].Rounds {
		measured = append(measured, search.Round{Value: round.Metrics[r.campaign.Objective.Metric]})
	}
	if bound, ok := pruner.Bound(r.campaign.Objective.Minimize(), last, measured); ok && bound > 0 {
		trial.Value, trial.StandardError = &bound, nil
	}
}
