package main

import (
	"errors"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) campaigns() *cobra.Command {
	return &cobra.Command{
		Use:   "campaigns",
		Short: "List campaigns, newest first",
		Args:  exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			var campaigns []store.Campaign
			err := a.reading(command.Context(), func(s store.Store) (err error) {
				campaigns, err = s.Campaigns(command.Context(), store.CampaignFilter{})
				if err != nil {
					return err
				}
				return tuner.AsTheyAre(command.Context(), s, campaigns)
			})
			var missing *missingStoreError
			if err != nil && !(errors.As(err, &missing) && missing.standard) {
				return err
			}
			answer := output.CampaignsOf(campaigns)
			return a.answer(answer, func(p *screen.Page) { p.Campaigns(answer) })
		},
	}
}
