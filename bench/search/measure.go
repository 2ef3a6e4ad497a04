package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"nocturne/search"
	"nocturne/search/problems"
)

// bench measures samplers in scenarios.
type bench struct {
	seeds    int
	first    uint64
	samplers []string // empty: those of each scenario
	trials   int      // 0: those of each scenario
	date     string
	optuna   *optuna
	progress io.Writer
}

// measured is a scenario with what it turned out to be.
type measured struct {
	scenario
	crashShare, start float64 // means over the problems
	results           results
}

// run measures the samplers one after the other, several problems at a time. A
// sampler that cannot be had is left out with a word about it.
func (b *bench) run(ctx context.Context, s scenario) (*measured, error) {
	if b.trials > 0 {
		s.trials = b.trials
	}
	if len(b.samplers) > 0 {
		s.samplers = b.samplers
	}
	drawn, err := b.draw(ctx, s)
	if err != nil {
		return nil, err
	}
	m := &measured{scenario: s}
	for _, p := range drawn {
		m.crashShare += p.CrashShare() / float64(len(drawn))
		m.start += p.Regret(p.Space.Default()) / float64(len(drawn))
	}
	for _, name := range s.samplers {
		began := time.Now()
		runs, err := b.compare(ctx, s, name, drawn)
		var missing *missingError
		if errors.As(err, &missing) {
			fmt.Fprintln(b.progress, missing)
			continue
		}
		if err != nil {
			return nil, err
		}
		r := summarize(runs, s.trials)
		if name == "auto" {
			if r.Model, err = b.modelChoices(ctx, s, runs); err != nil {
				return nil, fmt.Errorf("the model's choice in %s: %w", s.name, err)
			}
		}
		r.Scenario, r.Sampler, r.Date, r.Seeds, r.First, r.Trials = s.name, name, b.date, b.seeds, b.first, s.trials
		m.results = append(m.results, r)
		fmt.Fprintf(b.progress, "%-18s %-12s %4.0f s  after %d trials %.1f %%\n", s.name, name, time.Since(began).Seconds(), s.trials, r.after(s.trials))
	}
	return m, nil
}

func (b *bench) draw(ctx context.Context, s scenario) ([]*problems.Problem, error) {
	drawn := make([]*problems.Problem, b.seeds)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range drawn {
		group.Go(func() error {
			if ctx.Err() == nil {
				drawn[i] = s.draw(b.first + uint64(i))
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("drawing %s: %w", s.name, err)
	}
	return drawn, nil
}

func (b *bench) compare(ctx context.Context, s scenario, name string, drawn []*problems.Problem) ([]outcome, error) {
	runs := make([]outcome, len(drawn))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, problem := range drawn {
		group.Go(func() error {
			var err error
			if runs[i], err = b.campaign(ctx, s, name, problem, uint64(i)); err != nil {
				return fmt.Errorf("%s on %s of %s: %w", name, problem.Name, s.name, err)
			}
			return nil
		})
	}
	return runs, group.Wait()
}

// outcome is a campaign with the problem as its sampler was told it.
type outcome struct {
	*problems.Run
	problem *problems.Problem
}

// campaign runs one campaign, and before it the earlier one if there is one.
func (b *bench) campaign(ctx context.Context, s scenario, name string, problem *problems.Problem, seed uint64) (outcome, error) {
	if s.earlier != nil {
		run, err := b.runOne(ctx, name, s.earlier(problem), s.trials, seed)
		if err != nil {
			return outcome{}, fmt.Errorf("earlier campaign: %w", err)
		}
		problem = problem.WithEarlier(run)
	}
	run, err := b.runOne(ctx, name, problem, s.trials, seed)
	return outcome{run, problem}, err
}

// modelChoices are the medians of the distance of what the model holds for the
// best, by the number of trials, in percent.
func (b *bench) modelChoices(ctx context.Context, s scenario, runs []outcome) (map[int]float64, error) {
	choices := make(map[int]float64)
	for _, n := range checkpoints(s.trials) {
		regrets := make([]float64, len(runs))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, run := range runs {
			group.Go(func() (err error) {
				if err = ctx.Err(); err == nil {
					regrets[i], err = run.problem.ModelRegret(run.Run, n)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		slices.Sort(regrets)
		choices[n] = rounded(100 * regrets[len(regrets)/2])
	}
	return choices, nil
}

func (b *bench) runOne(ctx context.Context, name string, problem *problems.Problem, trials int, seed uint64) (*problems.Run, error) {
	sampler, release, err := b.sampler(name)
	if err != nil {
		return nil, err
	}
	defer release()
	return problem.Campaign(ctx, sampler, trials, seed)
}

// sampler makes one for a campaign.
func (b *bench) sampler(name string) (sampler search.Sampler, release func(), err error) {
	if kind, ok := optunaSamplers[name]; ok {
		return b.optuna.lease(name, kind)
	}
	sampler, err = search.New(name)
	return sampler, func() {}, err
}
