package tuner

import (
	"context"
	"encoding/json"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/verdict"
)

// tellLateEnd is tellEnd for a campaign that nobody goes on with. The answer that
// it has ended does not depend on it.
func (r *run) tellLateEnd(ctx context.Context) {
	err := r.takeLease(ctx)
	if err == nil {
		err = r.tellEnd(ctx)
	}
	if err != nil {
		r.tuner.Log.Warn().Err(err).Msg("whether the campaign's last event is there could not be found out")
	}
}

// tellEnd stores the last event of a tuner that was killed after it had stored
// how the campaign ended and before it told so. The caller has the lease, so it
// is stored once. It is not handed on: it belongs to what the dead one printed.
func (r *run) tellEnd(ctx context.Context) error {
	exit, ended := storedExit(r.record)
	if !ended {
		return nil
	}
	events, err := r.tuner.Store.Events(ctx, r.record.ID, 0, 0)
	if err != nil || len(events) > 0 && events[len(events)-1].Name == output.EventCampaignFinished {
		return err
	}
	text, err := json.Marshal(output.CampaignFinished{State: r.record.State, ExitStatus: exit, Cause: r.record.Cause})
	if err != nil {
		return err
	}
	_, err = r.tuner.Store.AppendEvent(ctx, r.record.ID, output.EventCampaignFinished, r.record.Updated, text)
	return err
}

// storedExit is the exit status of the tuner that left the campaign as it is on
// record; false when it left without an end.
func storedExit(record store.Campaign) (exit int, ended bool) {
	switch record.State {
	case store.CampaignComplete:
		var reached output.Verdict
		_ = json.Unmarshal(record.Verdict, &reached) // a verdict that cannot be read shows no gain
		return exitOf(verdict.Claim(reached.Claim)), true
	case store.CampaignPaused:
		return ExitPaused, true
	case store.CampaignInterrupted:
		return ExitInterrupted, true
	case store.CampaignFailed:
		return ExitFailed, true
	case store.CampaignStopped:
		return ExitUnconfirmed, true
	}
	return 0, false
}
