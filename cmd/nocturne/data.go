package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/store/open"
)

func (a *app) export() *cobra.Command {
	return &cobra.Command{
		Use:     "export [CAMPAIGN ...]",
		Short:   "Write campaigns as JSON lines",
		Long:    "Writes campaigns (all of them when none is named) as JSON, one a line, for\n`nocturne import` on another machine. No secret is in them.",
		Example: "  nocturne export k25-sim > k25.jsonl",
		RunE: func(command *cobra.Command, args []string) error {
			return a.withStore(command.Context(), func(s store.Store) error {
				campaigns, err := chosen(command.Context(), s, args)
				if err != nil {
					return err
				}
				encoder := json.NewEncoder(a.stdout)
				for _, campaign := range campaigns {
					archive, err := s.Export(command.Context(), campaign.ID)
					if err != nil {
						return err
					}
					if err := encoder.Encode(archive); err != nil {
						return fmt.Errorf("campaign %s: %w", campaign.ID, err)
					}
				}
				return nil
			})
		},
	}
}

func chosen(ctx context.Context, s store.Store, references []string) ([]store.Campaign, error) {
	if len(references) == 0 {
		return s.Campaigns(ctx, store.CampaignFilter{})
	}
	var campaigns []store.Campaign
	for _, reference := range references {
		campaign, err := find(ctx, s, reference)
		if err != nil {
			return nil, err
		}
		campaigns = append(campaigns, campaign)
	}
	return campaigns, nil
}

func (a *app) importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import [FILE ...]",
		Short: "Add exported campaigns to this store",
		Long:  "Reads campaigns that `nocturne export` wrote, from files or stdin. A campaign that\nis here already is left as it is.",
		RunE: func(command *cobra.Command, args []string) error {
			return a.withStore(command.Context(), func(s store.Store) error {
				if len(args) == 0 {
					return a.importFrom(command.Context(), s, "stdin", command.InOrStdin())
				}
				for _, path := range args {
					file, err := os.Open(path)
					if err != nil {
						return usage(err)
					}
					err = a.importFrom(command.Context(), s, path, file)
					if err = errors.Join(err, file.Close()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func (a *app) importFrom(ctx context.Context, s store.Store, name string, from io.Reader) error {
	decoder := json.NewDecoder(bufio.NewReader(from))
	added, known := 0, 0
	for number := 1; ; number++ {
		var archive store.Archive
		err := decoder.Decode(&archive)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return usage(fmt.Errorf("%s: campaign %d is not what `nocturne export` writes: %w", name, number, err))
		}
		fresh, err := s.Import(ctx, archive)
		if err != nil {
			return fmt.Errorf("%s: campaign %s: %w", name, archive.Campaign.Name, err)
		}
		if fresh {
			added++
		} else {
			known++
		}
	}
	if a.json {
		return a.document(map[string]int{"schema": 1, "added": added, "known": known})
	}
	a.printf("%s: %d campaigns added, %d were here already\n", name, added, known)
	return nil
}

func (a *app) dbCommand() *cobra.Command {
	command := &cobra.Command{Use: "db", Short: "The store: migrate, status, copy"}
	status := &cobra.Command{
		Use: "status", Short: "Engine, place and schema version of the store", Args: exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error { return a.dbStatus(command.Context(), false) },
	}
	migrate := &cobra.Command{
		Use: "migrate", Short: "Bring the schema up to date", Args: exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error { return a.dbStatus(command.Context(), true) },
	}
	copying := &cobra.Command{
		Use: "copy URL", Short: "Copy every campaign of this store into another one", Args: exactly(1, "one store, "+open.Forms),
		RunE: func(command *cobra.Command, args []string) error { return a.dbCopy(command.Context(), args[0]) },
	}
	command.AddCommand(status, migrate, copying)
	return command
}

func (a *app) dbStatus(ctx context.Context, migrate bool) (err error) {
	url, err := a.databaseURL()
	if err != nil {
		return err
	}
	opened, err := open.Store(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if migrate {
		if err := opened.Migrate(ctx); err != nil {
			return err
		}
	}
	status, err := opened.Status(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.document(struct {
			Schema int `json:"schema"`
			store.Status
		}{1, status})
	}
	a.printf("%s at %s\nschema version %d, this program knows %d\n", status.Engine, status.Location, status.Version, status.Known)
	for _, warning := range status.Warnings {
		a.printf("warning: %s\n", warning)
	}
	return nil
}

func (a *app) dbCopy(ctx context.Context, url string) error {
	return a.withStore(ctx, func(from store.Store) (err error) {
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
		added := 0
		for _, campaign := range campaigns {
			archive, err := from.Export(ctx, campaign.ID)
			if err != nil {
				return err
			}
			fresh, err := to.Import(ctx, archive)
			if err != nil {
				return fmt.Errorf("campaign %s: %w", campaign.Name, err)
			}
			if fresh {
				added++
			}
		}
		a.printf("%d of %d campaigns copied, the others were there already\n", added, len(campaigns))
		return nil
	})
}
