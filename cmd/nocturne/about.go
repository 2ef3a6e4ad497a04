package main

import (
	"context"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner"
)

// oneCampaign is what commands about one campaign take.
const oneCampaign = "one campaign: a name, NAME@RUN, or the beginning of an id"

// about is a command that answers a question about one campaign, from the store.
func (a *app) about(name, short string, answer func(context.Context, store.Store, store.Campaign) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " CAMPAIGN",
		Short: short,
		Args:  exactly(1, oneCampaign),
		RunE: func(command *cobra.Command, args []string) error {
			ctx := command.Context()
			return a.reading(ctx, func(s store.Store) error {
				found, err := find(ctx, s, args[0])
				if err != nil {
					return err
				}
				campaigns := []store.Campaign{found}
				if err := tuner.AsTheyAre(ctx, s, campaigns); err != nil {
					return err
				}
				return answer(ctx, s, campaigns[0])
			})
		},
	}
}
