package tuner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
	"nocturne/tuner/spec"
)

func TestChangedFileIsRefusedWithTheDifference(t *testing.T) {
	s := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	host := &fakeHost{value: bowl, before: func(number int) {
		if number == 3 {
			cancel()
		}
	}}
	if _, err := newTuner(t, s, host, nil).Run(ctx, campaign(t, 10, ""), tuner.Options{}); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(fmt.Sprintf(campaignFile, "", 10), "command: [measure]", "command: [measure, --fast]", 1)
	parsed, _, err := spec.Parse("bowl.yaml", []byte(changed), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = newTuner(t, s, &fakeHost{value: bowl}, nil).Run(t.Context(), parsed, tuner.Options{})
	var difference *tuner.ChangedError
	if !errors.As(err, &difference) || !strings.Contains(err.Error(), "server.command") || !strings.Contains(err.Error(), "--new-run") {
		t.Errorf("got %v, want the difference in server.command and --new-run", err)
	}
	// A larger budget is no change of what is measured.
	host.before = nil
	if outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{}); outcome.State != store.CampaignComplete {
		t.Errorf("with a larger budget: %s (%s)", outcome.State, outcome.Cause)
	}
	_, err = newTuner(t, s, host, nil).Run(t.Context(), campaign(t, 12, ""), tuner.Options{})
	var finished *tuner.FinishedError
	if !errors.As(err, &finished) {
		t.Errorf("a finished run: got %v, want a FinishedError", err)
	}
	if outcome := run(t, newTuner(t, s, host, nil), campaign(t, 12, ""), tuner.Options{NewRun: true}); outcome.Campaign.Run != 2 {
		t.Errorf("--new-run began run %d, want 2", outcome.Campaign.Run)
	}
}

func TestEventsAreNumberedAndReadable(t *testing.T) {
	s, events := openStore(t), &recorder{}
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, events), campaign(t, 4, ""), tuner.Options{})
	for i, event := range events.events {
		line, err := output.Line(outcome.Campaign.Name, outcome.Campaign.Run, event)
		if err != nil {
			t.Fatal(err)
		}
		var header output.Header
		if err := json.Unmarshal(line, &header); err != nil {
			t.Fatalf("event %d is no JSON: %v\n%s", i, err, line)
		}
		if header.Seq != int64(i+1) || header.Schema != output.Schema || header.Run != 1 {
			t.Errorf("event %d has the header %+v", i, header)
		}
	}
}

func TestBusyHostLeavesNoCampaignBehind(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, locked: true}
	_, err := newTuner(t, s, host, nil).Run(t.Context(), campaign(t, 4, ""), tuner.Options{})
	var locked *runners.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("a busy host gave %v, want a LockedError", err)
	}
	left, err := s.Campaigns(t.Context(), store.CampaignFilter{})
	if err != nil || len(left) != 0 {
		t.Errorf("campaigns %v were left behind (%v)", left, err)
	}
}

// Whoever finds an attempt lost, or asks where a trial is, reads its stage.
func TestStageIsOnRecord(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl}
	host.measure = func(number int, job runners.Job) runners.Result {
		attempts, err := s.Attempts(t.Context(), job.CampaignID)
		if err != nil || len(attempts) != number || attempts[number-1].Stage != runners.Measuring {
			t.Errorf("launch %d measures, on record are %+v (%v)", number, attempts, err)
		}
		return runners.Result{}
	}
	run(t, newTuner(t, s, host, nil), campaign(t, 2, ""), tuner.Options{})
}

// A run of another machine must not be begun anew on this one.
func TestResumeElsewhereIsRefused(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl}
	first := run(t, newTuner(t, s, host, nil), campaign(t, 2, ""), tuner.Options{})
	for name, options := range map[string]struct {
		instance string
		id       string
	}{
		"other machine": {"box:other", first.Campaign.ID},
		"earlier run":   {"box:test", "01JAAAAAAAAAAAAAAAAAAAAAAA"},
	} {
		host := &fakeHost{value: bowl, instance: options.instance}
		_, err := newTuner(t, s, host, nil).Run(t.Context(), campaign(t, 2, ""), tuner.Options{Expected: options.id})
		var elsewhere *tuner.ElsewhereError
		if !errors.As(err, &elsewhere) || host.count() != 0 {
			t.Errorf("%s: %v after %d launches, want an ElsewhereError", name, err, host.count())
		}
	}
}

// `resume` keeps the instant that the command line set.
func TestStoredCampaignKeepsUntil(t *testing.T) {
	s := openStore(t)
	until := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	parsed, _, err := spec.Parse("bowl.yaml", fmt.Appendf(nil, campaignFile, "", 2), spec.Options{Until: &until})
	if err != nil {
		t.Fatal(err)
	}
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), parsed, tuner.Options{})
	stored, err := tuner.StoredCampaign(outcome.Campaign)
	if err != nil || stored.Budget.Until == nil || !stored.Budget.Until.Equal(until) {
		t.Errorf("the stored campaign ends at %v (%v), want %s", stored.Budget.Until, err, until)
	}
}
