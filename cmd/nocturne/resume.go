package main

import (
	"context"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/spec"
)

func (a *app) resume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume CAMPAIGN",
		Short: "Go on with an unfinished run from the store alone",
		Long:  "Goes on with an unfinished run as it was stored, without its campaign file.\n" + campaignExits,
		Args:  exactly(1, oneCampaign),
		RunE: func(command *cobra.Command, args []string) error {
			campaign, record, err := a.storedCampaign(command.Context(), args[0])
			if err != nil {
				return err
			}
			return a.runCampaign(command.Context(), campaign, tuner.Options{Expected: record.ID})
		},
	}
}

// storedCampaign reads a campaign back from the store.
func (a *app) storedCampaign(ctx context.Context, reference string) (*spec.Campaign, store.Campaign, error) {
	var record store.Campaign
	err := a.reading(ctx, func(s store.Store) (err error) {
		record, err = find(ctx, s, reference)
		return err
	})
	if err != nil {
		return nil, record, err
	}
	campaign, err := tuner.StoredCampaign(record)
	if err != nil {
		return nil, record, usage(err)
	}
	return campaign, record, nil
}
