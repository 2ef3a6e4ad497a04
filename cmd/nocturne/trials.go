package main

import (
	"context"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) trials() *cobra.Command {
	return a.about("trials", "A row for each trial",
		func(ctx context.Context, s store.Store, campaign store.Campaign) error {
			answer, err := output.TrialsOf(ctx, s, campaign)
			if err != nil {
				return err
			}
			objective := campaign.Objective
			return a.answer(answer, func(p *screen.Page) { p.Trials(answer, objective.Metric, objective.Minimize()) })
		})
}
