package problems

import (
	"context"
	"errors"

	"nocturne/search"
)

// Run is what became of one campaign.
type Run struct {
	// Regret after each trial: that of the configuration with the best observed
	// value so far, noise-free. Trial 1 is the default.
	Regret  []float64
	Crashes int
	History []search.Observation
}

// After returns the regret after n trials, or after the last one when the space
// was exhausted before.
func (r *Run) After(n int) float64 { return r.Regret[min(n, len(r.Regret))-1] }

// Campaign lets a sampler work on a problem, one trial at a time.
func (p *Problem) Campaign(ctx context.Context, sampler search.Sampler, trials int, seed uint64) (*Run, error) {
	run := &Run{}
	best, chosen := 0.0, p.Space.Default()
	for trial := 1; trial <= trials; trial++ {
		values := p.Space.Default()
		if trial > 1 {
			proposal, err := sampler.Ask(ctx, search.Request{
				Space: p.Space, History: run.History, Remaining: trials - trial + 1, Seed: seed,
			})
			if errors.Is(err, search.ErrExhausted) {
				break
			}
			if err != nil {
				return nil, err
			}
			values = proposal.Values
		}
		observation := p.Observe(values, seed, trial)
		run.History = append(run.History, observation)
		switch {
		case observation.Outcome == search.Infeasible:
			run.Crashes++
		case observation.Value > best:
			best, chosen = observation.Value, values
		}
		run.Regret = append(run.Regret, p.Regret(chosen))
	}
	return run, nil
}
