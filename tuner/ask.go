package tuner

import (
	"context"
	"fmt"
	"math"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
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
	var incumbents, published []knowledge.Start
	if r.campaign.History {
		place := knowledge.Place{
			CampaignID: r.record.ID, HardwareKey: r.record.HardwareKey, ModelKey: r.record.ModelKey, WorkloadKey: r.record.WorkloadKey,
			Begun: r.record.Created,
		}
		var err error
		if found.related, err = knowledge.Related(ctx, r.tuner.Store, r.campaign, place); err != nil {
			return err
		}
		if incumbents, err = knowledge.Incumbents(ctx, r.tuner.Store, r.campaign, place); err != nil {
			return err
		}
	}
	if r.campaign.Recipes {
		published = knowledge.Recipes(r.campaign, r.hardwareOnRecord())
	}
	found.starts = knowledge.Starts(incumbents, published, r.campaign.Budget.Trials)
	r.elsewhere = found
	return nil
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
