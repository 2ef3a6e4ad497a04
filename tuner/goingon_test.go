package tuner_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// interrupted runs a campaign whose tuner is stopped at its n-th launch.
func interrupted(t *testing.T, s store.Store, n int, options tuner.Options) tuner.Outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	host := &fakeHost{value: bowl, before: func(number int) {
		if number == n {
			cancel()
		}
	}}
	outcome, err := newTuner(t, s, host, nil).Run(ctx, campaign(t, 6, ""), options)
	if err != nil || outcome.State != store.CampaignInterrupted {
		t.Fatalf("ended %s, %v", outcome.State, err)
	}
	return outcome
}

// The latest run is the one with the highest number, also when the clock was
// put back after an earlier run began.
func TestLatestRunByItsNumber(t *testing.T) {
	s := openStore(t)
	first := interrupted(t, s, 3, tuner.Options{})
	future := first.Campaign
	future.ID, future.Created, future.State = "", time.Now().Add(24*time.Hour), store.CampaignComplete
	if _, err := s.CreateCampaign(t.Context(), future); err != nil {
		t.Fatal(err)
	}
	third := interrupted(t, s, 3, tuner.Options{NewRun: true})
	if third.Campaign.Run != 3 {
		t.Fatalf("a new run has the number %d, want 3", third.Campaign.Run)
	}
	outcome := run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaign(t, 6, ""), tuner.Options{})
	if outcome.Campaign.ID != third.Campaign.ID || outcome.State != store.CampaignComplete {
		t.Errorf("went on with run %d (%s), want run 3", outcome.Campaign.Run, outcome.State)
	}
}

// mortalStore is the store as a tuner sees it that is killed at some moment:
// nothing that it would have written afterwards gets there.
type mortalStore struct {
	store.Store
	// dies reports whether the tuner is dead before this write, or after the end of
	// a trial with this role.
	dies func(moment string) bool
	dead bool
}

var errKilled = errors.New("the tuner is dead")

func (m *mortalStore) at(moment string) error {
	if m.dead = m.dead || m.dies != nil && m.dies(moment); m.dead {
		return errKilled
	}
	return nil
}

func (m *mortalStore) AppendEvent(ctx context.Context, id, name string, at time.Time, payload json.RawMessage) (store.Event, error) {
	if err := m.at("event " + name); err != nil {
		return store.Event{}, err
	}
	return m.Store.AppendEvent(ctx, id, name, at, payload)
}

func (m *mortalStore) FinishTrial(ctx context.Context, lease store.Lease, trial store.Trial, attempt int) error {
	if err := m.at("finish " + string(trial.Role)); err != nil {
		return err
	}
	err := m.Store.FinishTrial(ctx, lease, trial, attempt)
	_ = m.at("after " + string(trial.Role))
	return err
}

func (m *mortalStore) UpdateCampaign(ctx context.Context, lease store.Lease, change store.CampaignChange) error {
	if err := m.at("update"); err != nil {
		return err
	}
	return m.Store.UpdateCampaign(ctx, lease, change)
}

// moment is a tuner's last one.
func moment(last string) func(string) bool {
	return func(now string) bool { return now == last }
}

// ends are the campaign_finished events of the campaign's only run.
func ends(t *testing.T, s store.Store) (found []output.CampaignFinished, last bool) {
	t.Helper()
	record, err := s.Campaign(t.Context(), "bowl")
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Events(t.Context(), record.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if last = event.Name == output.EventCampaignFinished; last {
			var finished output.CampaignFinished
			if err := json.Unmarshal(event.Payload, &finished); err != nil {
				t.Fatal(err)
			}
			found = append(found, finished)
		}
	}
	return found, last
}

// A tuner that was killed after it stored the end and before it told so: the
// next one that looks at the campaign tells it, once.
func TestKillBeforeTheLastEvent(t *testing.T) {
	s := openStore(t)
	mortal := &mortalStore{Store: s, dies: moment("event " + output.EventCampaignFinished)}
	run(t, newTuner(t, mortal, &fakeHost{value: bowl}, nil), campaign(t, 6, ""), tuner.Options{})
	if found, _ := ends(t, s); len(found) > 0 {
		t.Fatalf("the dead tuner told its end: %+v", found)
	}
	for range 2 {
		_, err := newTuner(t, s, &fakeHost{value: bowl}, nil).Run(t.Context(), campaign(t, 6, ""), tuner.Options{})
		if finished := (*tuner.FinishedError)(nil); !errors.As(err, &finished) {
			t.Fatalf("got %v, want a FinishedError", err)
		}
		if found, last := ends(t, s); len(found) != 1 || !last || found[0].State != store.CampaignComplete || found[0].ExitStatus != tuner.ExitImproved {
			t.Errorf("the ends on record are %+v (one of them the last event: %t), want one, complete and improved", found, last)
		}
	}
}

// shortfall is a campaign whose baseline, at 60, is far below what is expected.
func shortfall(t *testing.T, onShortfall string) (s store.Store, goOn func(store.Store) (tuner.Outcome, *fakeHost, *recorder)) {
	t.Helper()
	s = openStore(t)
	return s, func(through store.Store) (tuner.Outcome, *fakeHost, *recorder) {
		t.Helper()
		host, events := &fakeHost{value: bowl}, &recorder{}
		c := campaign(t, 6, "expect: {score: 90, on_shortfall: "+onShortfall+"}")
		return run(t, newTuner(t, through, host, events), c, tuner.Options{}), host, events
	}
}

// A baseline that falls short pauses the campaign once, at whatever moment its
// tuner is killed.
func TestKillBeforeTheShortfallPauses(t *testing.T) {
	for name, dies := range map[string]func(string) bool{
		"not killed":                             nil,
		"before the baseline is stored":          moment("finish baseline"),
		"once the baseline is stored":            moment("after baseline"),
		"once the baseline is told of":           afterBaseline(),
		"once the pause is stored, but not told": moment("event " + output.EventCampaignFinished),
	} {
		t.Run(name, func(t *testing.T) {
			s, goOn := shortfall(t, "pause")
			goOn(&mortalStore{Store: s, dies: dies})
			stored, err := s.Campaign(t.Context(), "bowl")
			if err != nil {
				t.Fatal(err)
			}
			if stored.State != store.CampaignPaused {
				outcome, host, _ := goOn(s)
				if outcome.State != store.CampaignPaused || !strings.Contains(outcome.Cause, "falls short") || host.count() > 1 {
					t.Errorf("after the kill it ended %s (%s) with %d launches, want the pause before any but the baseline's", outcome.State, outcome.Cause, host.count())
				}
			}
			if outcome, _, _ := goOn(s); outcome.State != store.CampaignComplete {
				t.Errorf("somebody who went on got %s (%s), want no second pause", outcome.State, outcome.Cause)
			}
			found, _ := ends(t, s)
			if len(found) != 2 || found[0].State != store.CampaignPaused || found[0].ExitStatus != tuner.ExitPaused || !strings.Contains(found[0].Cause, "falls short") {
				t.Errorf("the ends on record are %+v, want one pause and the conclusion", found)
			}
		})
	}
}

// afterBaseline is the moment after the baseline's end was told.
func afterBaseline() func(string) bool {
	told := false
	return func(now string) bool {
		was := told
		told = told || now == "event "+output.EventTrialFinished
		return was
	}
}

// The warning of a campaign that goes on all the same is not lost either, and is
// given once.
func TestKillBeforeTheShortfallIsTold(t *testing.T) {
	s, goOn := shortfall(t, "continue")
	goOn(&mortalStore{Store: s, dies: moment("after baseline")})
	outcome, _, events := goOn(s)
	told := 0
	for _, warning := range payloads[output.Warning](t, events, output.EventWarning) {
		if strings.Contains(warning.Message, "falls short") {
			told++
		}
	}
	if outcome.State != store.CampaignComplete || told != 1 {
		t.Errorf("ended %s, told of the shortfall %d times; want complete, told once", outcome.State, told)
	}
}
