package tuner

import (
	"context"
	"time"

	"nocturne/search"
	"nocturne/tuner/plan"
	"nocturne/tuner/spec"
)

// Plan says what a campaign that begins now would do, when a launch takes as
// long as estimated.
func Plan(campaign *spec.Campaign, estimate plan.Estimate) (plan.Plan, error) {
	r := &run{campaign: campaign}
	return r.planFor(estimate, time.Now())
}

func (r *run) plan(ctx context.Context) (plan.Plan, error) {
	return r.planFor(r.estimate(ctx), time.Now())
}

func (r *run) planFor(estimate plan.Estimate, at time.Time) (plan.Plan, error) {
	started := r.record.Created
	if started.IsZero() {
		started = at
	}
	return plan.Make(plan.Input{
		Budget: r.campaign.Budget, Confirm: r.campaign.Confirm, HasCurrent: r.hasCurrent(), Configurations: r.configurations(),
		Estimate: estimate, Started: started, Now: at,
	})
}

// planned is the number of trials that the campaign will have in all.
func (r *run) planned() int {
	references := r.references()
	finalists, relaunches := r.confirmation()
	return references + r.searchTrials() + (finalists+references)*relaunches
}

func (r *run) references() int {
	if r.hasCurrent() {
		return 2
	}
	return 1
}

// searchTrials is how many search trials there will be: the budget's, or as many
// as the space has configurations beside the references.
func (r *run) searchTrials() int {
	if configurations := r.configurations(); configurations > 0 {
		return min(r.campaign.Budget.Trials, configurations-r.references())
	}
	return r.campaign.Budget.Trials
}

// countedConfigurations bounds the count of a space in which many configurations
// come to one launch.
const countedConfigurations = 1 << 16

// configurations counts the different launches of the space as far as the
// budget reaches; 0 when there are more.
func (r *run) configurations() int {
	if r.counted.space != r.campaign.Space {
		r.counted = countedSpace{space: r.campaign.Space, launches: r.countLaunches()}
	}
	return r.counted.launches
}

// countedSpace keeps a count: it is asked for with each trial, and changes only
// when the campaign learns what NCCL makes of its space.
type countedSpace struct {
	space    *search.Space
	launches int
}

func (r *run) countLaunches() int {
	launches := map[string]bool{}
	looked := 0
	for values := range r.campaign.Space.Enumerate() {
		configuration, err := r.campaign.Configuration(values, r.facts())
		if looked++; err != nil || looked > countedConfigurations {
			return 0
		}
		if launches[configuration.Hash] = true; len(launches) > r.campaign.Budget.Trials+r.references() {
			return 0
		}
	}
	return len(launches)
}
