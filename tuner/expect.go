package tuner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nocturne/store"
	"nocturne/tuner/output"
)

// shortfall is how far the baseline may be from what is expected of it: about
// what two launches of one configuration differ by at most, without speculation.
const shortfall = 0.03

// checkExpectation compares the baseline with what the file expects of it: a
// baseline that lost its settings makes every comparison wrong.
func (r *run) checkExpectation(ctx context.Context, baseline *store.Trial) error {
	message, short := r.disappointment(baseline)
	if message == "" {
		return nil
	}
	if short && r.campaign.Expect.OnShortfall == "pause" {
		return paused{cause: message}
	}
	r.warn(ctx, message)
	return nil
}

// checkExpectationAgain is checkExpectation for a run that goes on: its tuner may
// have been killed after it stored the baseline and before it said what is wrong
// with it. What was said once is on record and is not said again.
func (r *run) checkExpectationAgain(ctx context.Context) error {
	baseline := r.byRole(store.RoleBaseline)
	if len(baseline) == 0 || baseline[0].State != store.TrialComplete {
		return nil
	}
	message, _ := r.disappointment(baseline[0])
	if message == "" {
		return nil
	}
	events, err := r.tuner.Store.Events(ctx, r.record.ID, 0, 0)
	if err != nil || slices.ContainsFunc(events, func(event store.Event) bool { return tells(event, message) }) {
		return err
	}
	return r.checkExpectation(ctx, baseline[0])
}

// tells reports whether an event is a warning or an end with this message.
func tells(event store.Event, message string) bool {
	switch event.Name {
	case output.EventWarning:
		var warning output.Warning
		return json.Unmarshal(event.Payload, &warning) == nil && warning.Message == message
	case output.EventCampaignFinished:
		var finished output.CampaignFinished
		return json.Unmarshal(event.Payload, &finished) == nil && finished.Cause == message
	}
	return false
}

// disappointment says in words what of the expectation does not hold; empty when
// all does. short is false when that could not be found out.
func (r *run) disappointment(baseline *store.Trial) (message string, short bool) {
	expect := r.campaign.Expect
	if expect.Metric == "" {
		return "", false
	}
	found := metricAt(r.campaign.Objective, expect.Metric, baseline.Points)
	if found == nil {
		return fmt.Sprintf("the baseline reports no %s, so the expectation of %g cannot be checked", expect.Metric, expect.Value), false
	}
	minimize := strings.HasSuffix(expect.Metric, "_ms")
	if expect.Metric == r.campaign.Objective.Metric {
		minimize = r.campaign.Objective.Minimize()
	}
	short = *found < expect.Value*(1-shortfall)
	if minimize {
		short = *found > expect.Value*(1+shortfall)
	}
	if !short {
		return "", false
	}
	return fmt.Sprintf("the baseline falls short: %s is %.4g, and %.4g is expected; has this machine lost settings since that was measured?",
		expect.Metric, *found, expect.Value), true
}
