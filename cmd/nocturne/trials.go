package main

import (
	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) trials() *cobra.Command {
	return &cobra.Command{
		Use:   "trials CAMPAIGN",
		Short: "A row for each trial",
		Args:  exactly(1, "one campaign: a name, NAME@RUN, or the beginning of an id"),
		RunE: func(command *cobra.Command, args []string) error {
			return a.reading(command.Context(), func(s store.Store) error {
				campaign, err := find(command.Context(), s, args[0])
				if err != nil {
					return err
				}
				answer, err := output.TrialsOf(command.Context(), s, campaign)
				if err != nil {
					return err
				}
				return a.answer(answer, func(p *screen.Page) {
					p.Trials(answer, campaign.Objective.Metric, campaign.Objective.Minimize())
				})
			})
		},
	}
}
