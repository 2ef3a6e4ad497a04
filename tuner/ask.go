package tuner

import (
	"context"
	"fmt"
	"math"
	"time"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
	"nocturne/tuner/spec"
)

// ask gets a proposal whose launch the campaign does not have yet. Two
// configurations can come to one launch (a group with an empty bundle, say);
// the sampler is then asked again, with the known one as pending.
func (r *run) ask(ctx context.Context, left int) (search.Proposal, error) {
	sampler, err := r.tuner.sampler(r.campaign.Sampler)
	if err != nil {
		return search.Proposal{}, err
	}
	request, err := r.request(ctx, left)
	if err != nil {
		return search.Proposal{}, err
	}
	for {
		proposed, err := sampler.Ask(ctx, request)
		if err != nil {
			return search.Proposal{}, fmt.Errorf("sampler %s: %w", sampler.Name(), err)
		}
		configuration, err := r.campaign.Configuration(proposed.Values, r.facts())
		if err != nil {
			return search.Proposal{}, fmt.Errorf("sampler %s: %w", sampler.Name(), err)
		}
		if !r.has(configuration.Hash) {
			return proposed, nil
		}
		request.Pending = append(request.Pending, proposed.Values)
	}
}

func (t *Tuner) sampler(name string) (search.Sampler, error) {
	if t.NewSampler == nil {
		return search.New(name)
	}
	return t.NewSampler(name)
}

// request is everything that the sampler is told: the campaign's own trials, and
// what is known from elsewhere.
func (r *run) request(ctx context.Context, left int) (search.Request, error) {
	request := knowledge.Request(r.campaign, r.trials)
	request.Remaining = left
	if err := r.lookElsewhere(ctx); err != nil {
		return search.Request{}, err
	}
	for _, start := range r.elsewhere.starts {
		request.Starts = append(request.Starts, search.Start{Values: start.Values, Reason: start.Reason})
	}
	request.Related = r.elsewhere.related
	return request, nil
}

// elsewhere is what a campaign knows beside its own trials. Other sources of
// measurements (a screening by a cheap benchmark) add to related.
type elsewhere struct {
	hardwareKey string // of the machine that it holds for; empty before it was read
	starts      []knowledge.Start
	related     []search.Related
}

// lookElsewhere reads what is known of the machine, once: nothing that is
// measured after the campaign began counts. The machine is known for certain
// only when the first launch has told of it, since a simulated one brings its own.
func (r *run) lookElsewhere(ctx context.Context) error {
	if r.elsewhere.hardwareKey == r.record.HardwareKey {
		return nil
	}
	found := elsewhere{hardwareKey: r.record.HardwareKey}
	place := knowledge.Place{
		CampaignID: r.record.ID, HardwareKey: r.record.HardwareKey, ModelKey: r.record.ModelKey, WorkloadKey: r.record.WorkloadKey,
		Begun: r.record.Created,
	}
	var err error
	if r.campaign.History {
		if found.related, err = knowledge.Related(ctx, r.tuner.Store, r.campaign, place); err != nil {
			return err
		}
	}
	if found.starts, err = startsOf(ctx, r.tuner.Store, r.campaign, place, r.hardwareOnRecord()); err != nil {
		return err
	}
	r.elsewhere = found
	return nil
}

// startsOf are the early trials of a campaign; without a store only recipes are
// known.
func startsOf(ctx context.Context, s store.Store, campaign *spec.Campaign, place knowledge.Place, hardware runners.Hardware) ([]knowledge.Start, error) {
	var incumbents, published []knowledge.Start
	var err error
	if campaign.History && s != nil {
		if incumbents, err = knowledge.Incumbents(ctx, s, campaign, place); err != nil {
			return nil, err
		}
	}
	if campaign.Recipes {
		published = knowledge.Recipes(campaign, hardware)
	}
	return knowledge.Starts(incumbents, published, campaign.Budget.Trials), nil
}

// Starts are the configurations that a campaign which begins now would try first
// on a machine, beside its hints. s may be nil. There are none on a machine that
// lacks the campaign's GPUs, nor on a simulated one, which is not known before its
// first launch.
func Starts(ctx context.Context, s store.Store, campaign *spec.Campaign, machine runners.Hardware) ([]knowledge.Start, error) {
	if campaign.ServingScale > 1 {
		return nil, nil
	}
	hardware, err := hardwareUsed(machine, campaign)
	if err != nil {
		return nil, nil //nolint:nilerr // checking a file on another machine is no fault
	}
	place := knowledge.Place{HardwareKey: hardware.Key, ModelKey: campaign.ModelKey(), WorkloadKey: campaign.WorkloadKey(), Begun: time.Now()}
	return startsOf(ctx, s, campaign, place, hardware)
}

// expectedOf is the prediction as it is stored; nil for none, and for one that is
// no number.
func expectedOf(expected *search.Expected) *store.Expected {
	if expected == nil {
		return nil
	}
	for _, number := range []float64{expected.Ratio, expected.Interval[0], expected.Interval[1], expected.Improvement, expected.Crash} {
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return nil
		}
	}
	return &store.Expected{Ratio: expected.Ratio, Interval: expected.Interval, Improvement: expected.Improvement, Crash: expected.Crash}
}
