package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"nocturne/store"
)

func (a *app) export() *cobra.Command {
	return &cobra.Command{
		Use:     "export [CAMPAIGN ...]",
		Short:   "Write campaigns as JSON lines",
		Long:    "Writes campaigns (all of them when none is named) as JSON, one a line, for\n`nocturne import` on another machine. No secret is in them.",
		Example: "  nocturne export k25-sim > k25.jsonl",
		RunE: func(command *cobra.Command, args []string) error {
			return a.reading(command.Context(), func(s store.Store) error {
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

// chosen are the campaigns that are named, else all.
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
