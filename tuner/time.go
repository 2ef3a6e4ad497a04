package tuner

import (
	"context"
	"fmt"
	"time"

	"nocturne/store"
	"nocturne/tuner/plan"
)

type openKind uint8

const (
	openNow   openKind = iota // the launches fit before the end of the span
	openLater                 // not now, but in a later window
	openNever                 // the campaign's time is over
)

// opening says whether launches may begin.
type opening struct {
	kind openKind
	at   time.Time
	why  string
}

func (o opening) wait() step {
	at := o.at.UTC()
	return step{until: &at, enter: phaseWaiting, why: o.why}
}

// opening looks whether this many launches, of the usual duration, fit into
// the present span. What does not fit is not begun.
func (r *run) opening(ctx context.Context, launches int) (opening, error) {
	now := time.Now()
	span, err := plan.Next(r.campaign.Budget, r.record.Created, now)
	if err != nil {
		return opening{kind: openNever}, nil //nolint:nilerr // the budget's time is over, which is an answer
	}
	if !span.Contains(now) {
		if r.nights(span) > max(r.campaign.Budget.Nights, 1) {
			return opening{kind: openNever}, nil
		}
		return opening{kind: openLater, at: span.Start, why: "waiting for the window"}, nil
	}
	needed := time.Duration(launches) * r.estimate(ctx).Launch
	if span.Unlimited() || !now.Add(needed).After(span.End) {
		return opening{kind: openNow}, nil
	}
	later, err := plan.Next(r.campaign.Budget, r.record.Created, span.End)
	if r.campaign.Budget.Window == nil || err != nil || r.nights(later) > max(r.campaign.Budget.Nights, 1) {
		return opening{kind: openNever}, nil //nolint:nilerr // no later window: an answer, not a fault
	}
	return opening{kind: openLater, at: later.Start, why: fmt.Sprintf("%d launches of %s each do not fit before %s",
		launches, r.estimate(ctx).Launch.Round(time.Second), span.End.Format("15:04 MST"))}, nil
}

// laterNight reports whether another window is left after the present one.
func (r *run) laterNight() bool {
	if r.campaign.Budget.Window == nil {
		return false
	}
	span, err := plan.Next(r.campaign.Budget, r.record.Created, time.Now())
	if err != nil || span.Unlimited() {
		return false
	}
	later, err := plan.Next(r.campaign.Budget, r.record.Created, span.End)
	return err == nil && r.nights(later) <= max(r.campaign.Budget.Nights, 1)
}

// nights counts windows from that of the campaign's beginning to this one.
func (r *run) nights(span plan.Span) int {
	first, err := plan.Next(r.campaign.Budget, r.record.Created, r.record.Created)
	if err != nil {
		return 1
	}
	return 1 + int(span.Start.Sub(first.Start).Round(24*time.Hour)/(24*time.Hour))
}

// ifOpen delays a step of references or of a queued trial until launches may
// begin; a campaign whose time is over concludes.
func (r *run) ifOpen(ctx context.Context, next step, err error, launches int) (step, error) {
	if err != nil {
		return step{}, err
	}
	return r.whenOpen(ctx, next, launches)
}

func (r *run) whenOpen(ctx context.Context, next step, launches int) (step, error) {
	opening, err := r.opening(ctx, launches)
	if err != nil {
		return step{}, err
	}
	switch opening.kind {
	case openLater:
		return opening.wait(), nil
	case openNever:
		return step{conclude: true}, nil
	}
	return next, nil
}

// wait sleeps until the window opens.
func (r *run) wait(ctx context.Context, until time.Time) error {
	waiting := store.CampaignWaiting
	if err := r.tuner.Store.UpdateCampaign(ctx, r.lease.current(), store.CampaignChange{State: &waiting}); err != nil {
		return err
	}
	// The wall clock is asked again and again: a timer alone would oversleep by
	// the time that the machine was suspended, or that its clock was put forward.
	for {
		left := time.Until(until.Round(0))
		if left <= 0 {
			break
		}
		timer := time.NewTimer(min(left, time.Minute))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	running := store.CampaignRunning
	return r.tuner.Store.UpdateCampaign(ctx, r.lease.current(), store.CampaignChange{State: &running})
}
