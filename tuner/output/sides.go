package output

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nocturne/store"
)

// NoSidesError says that no two campaigns stand for two driver versions.
type NoSidesError struct {
	From, To string
	// Known lists the drivers under which campaigns have ended.
	Known []string
	// Apart is true when both drivers are known, but from campaigns of different
	// machines, models, workloads or objectives.
	Apart bool
}

// Error says what there is.
func (e *NoSidesError) Error() string {
	if e.Apart {
		return fmt.Sprintf("campaigns have ended under driver %s and under %s, but none of the same machine, model, workload and objective: name two campaigns instead", e.From, e.To)
	}
	known := "none"
	if len(e.Known) > 0 {
		known = strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("no campaigns have ended under both driver %s and driver %s; known are: %s", e.From, e.To, known)
}

// SidesByDriver finds the latest campaigns under two driver versions that did
// the same on the same hardware: machine, model, workload and objective.
// *NoSidesError when there are none. Filter selects the machine.
func SidesByDriver(ctx context.Context, s store.Store, filter store.BestFilter, from, to string) (a, b store.Campaign, err error) {
	filter.Unconfirmed = true
	known, err := s.Best(ctx, filter)
	if err != nil {
		return a, b, err
	}
	slices.SortStableFunc(known, func(x, y store.Conclusion) int { return y.Time.Compare(x.Time) })
	before, after, drivers := map[string]string{}, map[string]string{}, []string{}
	for _, conclusion := range known { // newest first
		group := strings.Join([]string{conclusion.HardwareKey, conclusion.ModelKey, conclusion.WorkloadKey, conclusion.Objective.String()}, "\x00")
		if conclusion.Driver != "" {
			drivers = append(drivers, conclusion.Driver)
		}
		if conclusion.Driver == from && before[group] == "" {
			before[group] = conclusion.CampaignID
		}
		if conclusion.Driver == to && after[group] == "" {
			after[group] = conclusion.CampaignID
		}
		if before[group] == "" || after[group] == "" {
			continue
		}
		if a, err = s.Campaign(ctx, before[group]); err != nil {
			return a, b, err
		}
		b, err = s.Campaign(ctx, after[group])
		return a, b, err
	}
	slices.Sort(drivers)
	return a, b, &NoSidesError{From: from, To: to, Known: slices.Compact(drivers), Apart: len(before) > 0 && len(after) > 0}
}
