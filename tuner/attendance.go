package tuner

import (
	"context"
	"slices"

	"nocturne/store"
)

const leftAlone = "its tuner is gone without a word (killed, or cut off from the store), and its lease has ended"

// AsTheyAre corrects the states of campaigns for readers: one that is on record
// as going on although nobody holds its lease is interrupted. Nothing is stored;
// the next tuner of the campaign does that.
func AsTheyAre(ctx context.Context, s store.Store, campaigns []store.Campaign) error {
	alone, err := s.Unattended(ctx)
	if err != nil {
		return err
	}
	for i := range campaigns {
		campaign := &campaigns[i]
		if _, found := slices.BinarySearch(alone, campaign.ID); found {
			campaign.State, campaign.Cause = store.CampaignInterrupted, leftAlone
		}
	}
	return nil
}
