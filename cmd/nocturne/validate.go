package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/knowledge"
	"nocturne/tuner/output"
	"nocturne/tuner/plan"
	"nocturne/tuner/screen"
	"nocturne/tuner/spec"
)

func (a *app) validate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a campaign file; print its knobs, the size of its space and the plan",
		Long:  "Checks a campaign file and starts nothing. All faults are printed at once, as\nfile:line:column. Exit status: 0 good, 2 at fault.",
		Args:  exactly(1, "one campaign file"),
		RunE: func(command *cobra.Command, args []string) error {
			campaign, err := a.campaignFile(args[0], spec.Options{})
			if err != nil {
				return err
			}
			made, starts, err := a.plan(command.Context(), campaign)
			if err != nil {
				return err
			}
			answer, err := output.ValidateOf(command.Context(), campaign, made, starts)
			if err != nil {
				return err
			}
			return a.answer(answer, func(p *screen.Page) { p.Validate(answer) })
		},
	}
}

// plan says what fits and what is tried first, with durations and configurations
// of earlier campaigns when a store has any.
func (a *app) plan(ctx context.Context, campaign *spec.Campaign) (plan.Plan, []knowledge.Start, error) {
	found, err := a.machine(ctx)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	var estimate plan.Estimate
	var starts []knowledge.Start
	look := func(s store.Store) (err error) {
		estimate = tuner.EarlierEstimate(ctx, s, campaign, found.Hardware)
		starts, err = tuner.Starts(ctx, s, campaign, found.Hardware)
		return err
	}
	err = a.reading(ctx, look)
	var missing *missingStoreError
	if errors.As(err, &missing) || errors.Is(err, store.ErrNotMigrated) {
		err = look(nil)
	}
	if err != nil {
		return plan.Plan{}, nil, err
	}
	made, err := tuner.Plan(campaign, estimate)
	if err != nil {
		return plan.Plan{}, nil, usage(err)
	}
	if note := made.Note(); note != "" {
		fmt.Fprintf(a.stderr, "warning: %s\n", note)
	}
	return made, starts, nil
}
