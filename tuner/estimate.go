package tuner

import (
	"context"
	"fmt"
	"time"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/plan"
	"nocturne/tuner/spec"
)

// usualLaunch is what one trial of a large model takes when nothing is known:
// a load of 15 to 20 minutes and some measuring.
const usualLaunch = 20 * time.Minute

// EarlierEstimate is how long a launch takes by the latest earlier campaign of
// the same model on this machine; failing that, what is usual for a model
// server. For commands and simulated servers nothing is assumed.
func EarlierEstimate(ctx context.Context, s store.Store, campaign *spec.Campaign, hardware runners.Hardware) plan.Estimate {
	if s != nil {
		earlier, err := s.Campaigns(ctx, store.CampaignFilter{Instance: hardware.Instance, Limit: 50})
		if err == nil {
			for _, record := range earlier {
				if record.ModelKey != campaign.ModelKey() || record.WorkloadKey != campaign.WorkloadKey() {
					continue
				}
				trials, err := s.Trials(ctx, record.ID, store.TrialFilter{Summary: true})
				if err != nil {
					continue
				}
				if median, count := medianLaunch(trials); count > 0 {
					return plan.Estimate{Launch: median, Source: fmt.Sprintf("median of %d launches of campaign %s run %d", count, record.Name, record.Run)}
				}
			}
		}
	}
	if campaign.Kind == "command" || campaign.ServingScale > 1 {
		return plan.Estimate{Source: "not known before the first launch"}
	}
	return plan.Estimate{Launch: usualLaunch, Source: "assumed: no earlier launch of this model on this machine"}
}

// facts are what is known of NCCL on this machine by the measured trials.
func (r *run) facts() nccl.Context { return r.campaign.Facts() }
