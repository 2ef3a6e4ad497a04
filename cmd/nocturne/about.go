package main

import (
	"context"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/screen"
)

// oneCampaign is what commands about one campaign take.
const oneCampaign = "one campaign: a name, NAME@RUN, or the beginning of an id"

// about is a command that answers a question about one campaign from the store:
// ask makes the document, show writes what a person reads in its place.
func about[T any](a *app, name, short string, ask func(context.Context, store.Store, store.Campaign) (T, error), show func(*screen.Page, T, store.Campaign)) *cobra.Command {
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
				answer, err := ask(ctx, s, campaigns[0])
				if err != nil {
					return err
				}
				return a.answer(answer, func(p *screen.Page) { show(p, answer, found) })
			})
		},
	}
}
