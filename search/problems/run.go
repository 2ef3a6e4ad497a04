package problems

import (
	"context"
	"errors"
	"time"

	"nocturne/search"
)

// Run is what became of one campaign.
type Run struct {
	// Regret after each trial: that of the configuration with the best observed
	// value so far, noise-free. Trial 1 is the default.
	Regret  []float64
	Crashes int
	// Broken trials ran and broke the limit.
	Broken int
	// Duplicates were proposed although they, or what comes to the same launch, had
	// been measured or were pending; Violations although a constraint rejects them.
	Duplicates, Violations int
	// Asks is how long each proposal took.
	Asks    []time.Duration
	History []search.Observation
}

// After returns the regret after n trials, or after the last one when the space
// was exhausted before.
func (r *Run) After(n int) float64 { return r.Regret[min(n, len(r.Regret))-1] }

// ModelRegret is the distance, after the first n trials, of the configuration that
// the model of package search holds for the best of those measured, whatever it was
// observed to be; that of the default where the model has too little to go by.
func (p *Problem) ModelRegret(run *Run, n int) (float64, error) {
	leaders, err := search.Leaders(search.Request{
		Space: p.Space, Minimize: p.Minimize, History: run.History[:min(n, len(run.History))], Related: p.Related, Factors: p.Factors,
	})
	switch {
	case errors.Is(err, search.ErrTooLittle) || err == nil && len(leaders) == 0:
		return p.Regret(p.Space.Default()), nil
	case err != nil:
		return 0, err
	}
	return p.Regret(leaders[0].Values), nil
}

// Campaign lets a sampler work on a problem. Trial 1 is the default. With several
// hosts a configuration is asked for as soon as one of them is free, while the
// others are still busy; all trials take the same time.
func (p *Problem) Campaign(ctx context.Context, sampler search.Sampler, trials int, seed uint64) (*Run, error) {
	c := campaign{problem: p, sampler: sampler, trials: trials, seed: seed, run: &Run{}, seen: make(map[string]bool, trials)}
	for more := true; more || len(c.busy) > 0; c.end() {
		for more && len(c.busy) < max(1, p.Hosts) {
			var err error
			if more, err = c.start(ctx); err != nil {
				return nil, err
			}
		}
	}
	return c.run, nil
}

// campaign is one that is under way.
type campaign struct {
	problem *Problem
	sampler search.Sampler
	trials  int
	seed    uint64

	run     *Run
	started int
	busy    []search.Values // what the hosts measure, the longest running first
	seen    map[string]bool // keys of what was started
	best    *search.Observation
}

// start asks for a configuration and gives it to a free host; false when the
// budget is spent or the space exhausted.
func (c *campaign) start(ctx context.Context) (bool, error) {
	if c.started == c.trials {
		return false, nil
	}
	values := c.problem.Space.Default()
	if c.started > 0 {
		began := time.Now()
		proposal, err := c.sampler.Ask(ctx, c.request())
		if errors.Is(err, search.ErrExhausted) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		c.run.Asks = append(c.run.Asks, time.Since(began))
		values = proposal.Values
	}
	if c.problem.Space.Check(values) != nil {
		c.run.Violations++
	}
	key := c.problem.Space.Key(values)
	if c.seen[key] {
		c.run.Duplicates++
	}
	c.seen[key] = true
	c.started++
	c.busy = append(c.busy, values)
	return true, nil
}

func (c *campaign) request() search.Request {
	p := c.problem
	return search.Request{
		Space: p.Space, Minimize: p.Minimize, History: c.run.History, Pending: c.busy,
		Starts: p.Starts, Related: p.Related, Factors: p.Factors,
		Remaining: c.trials - c.started, Seed: c.seed,
	}
}

// end measures the trial that has run longest.
func (c *campaign) end() {
	if len(c.busy) == 0 {
		return
	}
	observation := c.problem.Observe(c.busy[0], c.seed, len(c.run.History)+1)
	c.busy = append([]search.Values(nil), c.busy[1:]...)
	c.run.History = append(c.run.History, observation)
	switch {
	case observation.Outcome == search.Infeasible:
		c.run.Crashes++
	case breaksLimit(&observation):
		c.run.Broken++
	case c.best == nil || c.problem.better(observation.Value, c.best.Value):
		c.best = &observation
	}
	chosen := c.problem.Space.Default()
	if c.best != nil {
		chosen = c.best.Values
	}
	c.run.Regret = append(c.run.Regret, c.problem.Regret(chosen))
}

func breaksLimit(observation *search.Observation) bool {
	for _, margin := range observation.Margins {
		if margin < 0 {
			return true
		}
	}
	return false
}

func (p *Problem) better(value, than float64) bool { return (value > than) != p.Minimize }
