package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/store/open"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) db() *cobra.Command {
	command := &cobra.Command{
		Use: "db", Short: "The store: migrate, status, copy",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("unknown command %q for %q; see `%s --help`", args[0], command.CommandPath(), command.CommandPath()))
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	status := &cobra.Command{
		Use: "status", Short: "Engine, place and schema version of the store", Args: exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) (err error) {
			opened, err := a.existing(command.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, opened.Close()) }()
			return a.dbStatus(command.Context(), opened)
		},
	}
	migrate := &cobra.Command{
		Use: "migrate", Short: "Make the store if there is none, and bring its schema up to date", Args: exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.writing(command.Context(), func(s store.Store) error { return a.dbStatus(command.Context(), s) })
		},
	}
	copying := &cobra.Command{
		Use: "copy URL", Short: "Copy every campaign of this store into another one",
		Long: "Copies every campaign of this store into the one at URL, which is made when there is\nnone. Campaigns that are there already are left as they are.",
		Args: exactly(1, "one store, "+open.Forms),
		RunE: func(command *cobra.Command, args []string) error { return a.dbCopy(command.Context(), args[0]) },
	}
	command.AddCommand(status, migrate, copying)
	return command
}

func (a *app) dbStatus(ctx context.Context, s store.Store) error {
	status, err := s.Status(ctx)
	if err != nil {
		return err
	}
	return a.answer(output.StoreStatus{Schema: output.Schema, Status: status}, func(p *screen.Page) { p.Status(status) })
}

func (a *app) dbCopy(ctx context.Context, url string) error {
	return a.reading(ctx, func(from store.Store) (err error) {
		to, err := open.Store(ctx, url)
		if err != nil {
			return usage(err)
		}
		defer func() { err = errors.Join(err, to.Close()) }()
		if err := to.Migrate(ctx); err != nil {
			return err
		}
		campaigns, err := from.Campaigns(ctx, store.CampaignFilter{})
		if err != nil {
			return err
		}
		answer := output.Moved{Schema: output.Schema}
		for _, campaign := range campaigns {
			archive, err := from.Export(ctx, campaign.ID)
			if err != nil {
				return err
			}
			added, err := to.Import(ctx, archive)
			if err != nil {
				return fmt.Errorf("campaign %s run %d: %w", campaign.Name, campaign.Run, err)
			}
			answer.Count(added)
		}
		return a.answer(answer, func(p *screen.Page) { p.Moved(answer) })
	})
}
