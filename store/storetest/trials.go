package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/store"
)

func testTrialLifecycle(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("night"))
	if _, _, err := s.ClaimTrial(t.Context(), lease, "local"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("claim of nothing: %v, want ErrNotFound", err)
	}
	proposal := store.Trial{
		Role: store.RoleBaseline, Configuration: configurationOf("a"), Reason: "the baseline comes first", HardwareKey: "hw1:a",
		Expected: &store.Expected{Ratio: 1.031, Interval: [2]float64{0.98, 1.08}, Improvement: 0.034, Crash: 0.02},
		State:    store.TrialComplete, Value: pointer(1.0), Attempt: 7, // not the proposer's to say
	}
	added, err := s.AddTrial(t.Context(), lease, proposal)
	if err != nil {
		t.Fatal(err)
	}
	want := store.Trial{ID: added.ID, CampaignID: campaign.ID, Number: 1, State: store.TrialPending, Role: store.RoleBaseline,
		Configuration: configurationOf("a"), Reason: proposal.Reason, Expected: proposal.Expected, HardwareKey: "hw1:a", Created: added.Created}
	if diff := differences(want, added); diff != "" || added.ID == "" || added.Created.IsZero() {
		t.Errorf("added trial (-want +got):\n%s", diff)
	}
	if second := add(t, s, lease, "b", store.RoleSearch); second.Number != 2 {
		t.Errorf("the second trial has number %d", second.Number)
	}

	claimed, attempt := claim(t, s, lease)
	want.State, want.Attempt, want.Host, want.Started = store.TrialRunning, 1, "local", claimed.Started
	if diff := differences(want, claimed); diff != "" || claimed.Started == nil {
		t.Errorf("claimed trial (-want +got):\n%s", diff)
	}
	launch := launchOf(4711)
	if err := s.RecordLaunch(t.Context(), lease, claimed.ID, attempt.Number, launch); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []runners.Stage{runners.Loading, runners.Measuring} {
		if err := s.RecordStage(t.Context(), lease, claimed.ID, attempt.Number, stage); err != nil {
			t.Fatal(err)
		}
	}
	done := finishedTrial(claimed)
	if err := s.FinishTrial(t.Context(), lease, done, attempt.Number); err != nil {
		t.Fatal(err)
	}
	trials, err := s.Trials(t.Context(), campaign.ID, store.TrialFilter{States: []store.TrialState{store.TrialComplete}})
	if diff := differences([]store.Trial{done}, trials); err != nil || diff != "" {
		t.Errorf("finished trial %v (-want +got):\n%s", err, diff)
	}
	attempts, err := s.Attempts(t.Context(), campaign.ID)
	wantAttempt := store.Attempt{TrialID: claimed.ID, CampaignID: campaign.ID, Number: 1, State: store.AttemptComplete, Host: "local",
		Launch: &launch, Stage: runners.Measuring, Started: attempt.Started, Ended: done.Ended}
	if diff := differences([]store.Attempt{wantAttempt}, attempts); err != nil || diff != "" {
		t.Errorf("attempt %v (-want +got):\n%s", err, diff)
	}
}

// finishedTrial returns the trial with an outcome in every field.
func finishedTrial(t store.Trial) store.Trial {
	metrics := runners.Metrics{"output_throughput": 88.8, "mean_ttft_ms": 0.1 + 0.2}
	t.State = store.TrialComplete
	t.Configuration.EquivalentTo = pointer("c1:canonical")
	t.StackKey, t.Stack = "st1:s", []byte(`{"driver":"580.82","nccl":"2.28.9"}`)
	t.Value, t.StandardError = pointer(88.8), pointer(0.4)
	t.BrokenLimits = []string{"p99_ttft_ms"}
	t.Points = []runners.PointResult{{Concurrency: 8, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}},
		Histograms: map[string]string{"ttft": "HISTFAAAA"}}}
	t.Proof = []runners.Proof{{Knob: "NCCL_PROTO", Requested: pointer("LL"), Observed: pointer("LL"), Status: runners.ProofApplied}}
	t.Effective = map[string]string{"acceptance": "0.47"}
	t.LogPath = "/var/log/trial.log"
	t.Started = pointer(time.Date(2026, 12, 1, 22, 0, 0, 123456000, time.UTC))
	t.Ended = pointer(time.Date(2026, 12, 1, 22, 16, 40, 1000, time.UTC))
	t.LoadingS, t.MeasuringS, t.OverheadS = pointer(900.5), pointer(60.25), pointer(0.03125)
	return t
}

func testFencing(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("night"))
	_, elsewhere := create(t, s, campaignOf("other"))
	pending := add(t, s, lease, "a", store.RoleSearch)
	ctx := t.Context()
	calls := map[string]func(lease store.Lease, trial string, attempt int) error{
		"launch": func(l store.Lease, trial string, attempt int) error {
			return s.RecordLaunch(ctx, l, trial, attempt, launchOf(1))
		},
		"stage": func(l store.Lease, trial string, attempt int) error {
			return s.RecordStage(ctx, l, trial, attempt, runners.Loading)
		},
		"finish": func(l store.Lease, trial string, attempt int) error {
			return s.FinishTrial(ctx, l, store.Trial{ID: trial, State: store.TrialComplete, Value: pointer(666.0)}, attempt)
		},
		"requeue": func(l store.Lease, trial string, attempt int) error {
			return s.RequeueTrial(ctx, l, trial, attempt, store.AttemptLost, nil)
		},
	}
	refused := func(when string, lease store.Lease, trial string, attempt int, want error) {
		t.Helper()
		before, err := s.Export(ctx, campaign.ID)
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			if err := call(lease, trial, attempt); !errors.Is(err, want) {
				t.Errorf("%s %s: %v, want %v", name, when, err, want)
			}
		}
		after, err := s.Export(ctx, campaign.ID)
		if diff := differences(before, after); err != nil || diff != "" {
			t.Errorf("%s: something changed: %v\n%s", when, err, diff)
		}
	}
	refused("of a pending trial", lease, pending.ID, 0, store.ErrFenced)
	trial, attempt := claim(t, s, lease)
	refused("of a later attempt", lease, trial.ID, attempt.Number+1, store.ErrFenced)
	refused("of an unknown trial", lease, "01JD0000000000000000000001", 1, store.ErrNotFound)
	refused("under another campaign's lease", elsewhere, trial.ID, attempt.Number, store.ErrNotFound)
	if err := s.RequeueTrial(ctx, lease, trial.ID, attempt.Number, store.AttemptFailed, nil); err != nil {
		t.Fatal(err)
	}
	refused("of a queued trial", lease, trial.ID, attempt.Number, store.ErrFenced)
	trial, second := claim(t, s, lease)
	refused("of an earlier attempt", lease, trial.ID, attempt.Number, store.ErrFenced)
	trial.State = store.TrialPruned
	if err := s.FinishTrial(ctx, lease, trial, second.Number); err != nil {
		t.Fatal(err)
	}
	refused("of a finished trial", lease, trial.ID, second.Number, store.ErrFenced)

	// A trial that ends as lost leaves a lost attempt.
	add(t, s, lease, "b", store.RoleSearch)
	trial, attempt = claim(t, s, lease)
	trial.State = store.TrialLost
	trial.Configuration.Hash = "c1:another"
	invalid := (*store.InvalidError)(nil)
	if err := s.FinishTrial(ctx, lease, trial, attempt.Number); !errors.As(err, &invalid) || invalid.Field != "configuration.hash" {
		t.Errorf("finish with another configuration: %v, want an InvalidError", err)
	}
	trial.Configuration = store.Configuration{} // as it was
	if err := s.FinishTrial(ctx, lease, trial, attempt.Number); err != nil {
		t.Fatal(err)
	}
	attempts, err := s.Attempts(ctx, campaign.ID)
	if err != nil || attempts[2].State != store.AttemptLost {
		t.Errorf("attempts %+v, %v: want the last one lost", attempts, err)
	}
	trials, err := s.Trials(ctx, campaign.ID, store.TrialFilter{})
	if err != nil || trials[1].Configuration.Hash != "c1:b" || trials[1].Ended == nil {
		t.Errorf("trials %+v, %v: want the configuration kept and the end set", trials, err)
	}
}

func testRepeats(t *testing.T, place Place) {
	s := New(t, place)
	_, lease := create(t, s, campaignOf("night"))
	first := add(t, s, lease, "a", store.RoleSearch)
	add(t, s, lease, "b", store.RoleSearch)
	again := store.Trial{Role: store.RoleConfirm, Configuration: configurationOf("a")}
	repeat := (*store.RepeatError)(nil)
	if _, err := s.AddTrial(t.Context(), lease, again); !errors.As(err, &repeat) || repeat.Number != first.Number {
		t.Errorf("the same configuration: %v, want a RepeatError that names trial %d", err, first.Number)
	}
	for _, wrong := range []int{2, 3, -1} {
		again.RepeatOf = wrong
		invalid := (*store.InvalidError)(nil)
		if _, err := s.AddTrial(t.Context(), lease, again); !errors.As(err, &invalid) || invalid.Field != "repeat_of" {
			t.Errorf("a repeat of %d: %v, want an InvalidError of repeat_of", wrong, err)
		}
	}
	for want := 3; want <= 4; want++ {
		again.RepeatOf = first.Number
		added, err := s.AddTrial(t.Context(), lease, again)
		if err != nil || added.RepeatOf != first.Number || added.Number != want {
			t.Errorf("a deliberate repeat: %+v, %v", added, err)
		}
	}
	// Another campaign knows nothing of these.
	_, other := create(t, s, campaignOf("other"))
	add(t, s, other, "a", store.RoleSearch)
}

func testTrialFilters(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("night"))
	for i, role := range []store.Role{store.RoleBaseline, store.RoleSearch, store.RoleSearch} {
		trial := add(t, s, lease, fmt.Sprint(i), role)
		if i == 2 {
			break
		}
		claimed, attempt := claim(t, s, lease)
		if err := s.FinishTrial(t.Context(), lease, finishedTrial(claimed), attempt.Number); err != nil {
			t.Fatal(trial.Number, err)
		}
	}
	tests := map[string]struct {
		filter store.TrialFilter
		want   string
	}{
		"all":      {store.TrialFilter{}, "1 2 3"},
		"states":   {store.TrialFilter{States: []store.TrialState{store.TrialPending, store.TrialRunning}}, "3"},
		"roles":    {store.TrialFilter{Roles: []store.Role{store.RoleSearch}}, "2 3"},
		"together": {store.TrialFilter{Roles: []store.Role{store.RoleSearch}, States: []store.TrialState{store.TrialComplete}}, "2"},
		"summary":  {store.TrialFilter{Summary: true}, "1 2 3"},
	}
	for name, test := range tests {
		trials, err := s.Trials(t.Context(), campaign.ID, test.filter)
		var numbers []string
		for _, trial := range trials {
			numbers = append(numbers, fmt.Sprint(trial.Number))
			whole := trial.State == store.TrialComplete && !test.filter.Summary
			if (trial.Points != nil) != whole || (trial.Proof != nil) != whole || (trial.Effective != nil) != whole {
				t.Errorf("%s: trial %d has points %v, proof %v, effective %v", name, trial.Number, trial.Points, trial.Proof, trial.Effective)
			}
		}
		if got := strings.Join(numbers, " "); err != nil || got != test.want {
			t.Errorf("%s: trials %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func testRunningAttempts(t *testing.T, place Place) {
	s := New(t, place)
	for _, instance := range []string{"box-a", "box-b"} {
		campaign := campaignOf("night")
		campaign.Instance = instance
		_, lease := create(t, s, campaign)
		add(t, s, lease, "a", store.RoleSearch)
		add(t, s, lease, "b", store.RoleSearch)
		claim(t, s, lease)
	}
	for instance, want := range map[string]int{"": 2, "box-a": 1, "box-c": 0} {
		if attempts, err := s.RunningAttempts(t.Context(), instance); err != nil || len(attempts) != want {
			t.Errorf("%q has %d running attempts, %v; want %d", instance, len(attempts), err, want)
		}
	}
}

// testNonFinite is a benchmark that reports infinite and undefined values.
func testNonFinite(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("night"))
	measure(t, s, lease, trialOf("one", 1))
	measure(t, s, lease, trialOf("two", 2))
	broken := map[string]func(*store.Trial){
		"value":                            func(t *store.Trial) { t.Value = pointer(math.Inf(-1)) },
		"standard_error":                   func(t *store.Trial) { t.StandardError = pointer(math.NaN()) },
		"loading_s":                        func(t *store.Trial) { t.LoadingS = pointer(math.Inf(1)) },
		"points[0].metrics.mean_tpot_ms":   func(t *store.Trial) { t.Points[0].Metrics = runners.Metrics{"mean_tpot_ms": math.NaN()} },
		"points[0].rounds[0].metrics.rate": func(t *store.Trial) { t.Points[0].Rounds[0].Metrics = runners.Metrics{"rate": math.Inf(1)} },
	}
	add(t, s, lease, "broken", store.RoleSearch)
	trial, attempt := claim(t, s, lease)
	for field, breaks := range broken {
		done := finishedTrial(trial)
		breaks(&done)
		refused := (*store.NonFiniteError)(nil)
		if err := s.FinishTrial(t.Context(), lease, done, attempt.Number); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("finish with a broken %s: %v, want a NonFiniteError that names it", field, err)
		}
	}
	trial.State, trial.Failure = store.TrialFailed, &runners.Failure{Class: runners.ClassInfeasible, Reason: "non_finite", Message: "-Infinity"}
	if err := s.FinishTrial(t.Context(), lease, trial, attempt.Number); err != nil {
		t.Fatal(err)
	}
	wrong := conclusionOf("two", math.NaN(), true)
	refused := (*store.NonFiniteError)(nil)
	if err := s.Conclude(t.Context(), lease, wrong); !errors.As(err, &refused) || refused.Field != "value" {
		t.Errorf("conclude with NaN: %v, want a NonFiniteError", err)
	}
	best, err := s.Best(t.Context(), store.BestFilter{Unconfirmed: true, CampaignID: campaign.ID})
	if err != nil || len(best) != 1 || best[0].Value != 2 {
		t.Errorf("best %+v, %v: want 2", best, err)
	}
}

func testEvents(t *testing.T, place Place) {
	s := New(t, place)
	campaign, err := s.CreateCampaign(t.Context(), campaignOf("night"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 1, 22, 0, 0, 123456789, time.UTC)
	var want []store.Event
	for i, payload := range []string{`{"b":1,"a":[1.0,1e2,12345678901234567890]}`, "", `{}`} {
		event, err := s.AppendEvent(t.Context(), campaign.ID, fmt.Sprintf("event_%d", i), at, []byte(payload))
		if err != nil || event.Seq != int64(i+1) || event.CampaignID != campaign.ID || !event.Time.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("event %d is %+v, %v", i, event, err)
		}
		want = append(want, event)
	}
	if got := normalJSON(t, want[0].Payload); got != `{"a":[1,100,12345678901234567890],"b":1}` {
		t.Errorf("the payload is %s", got)
	}
	if want[1].Payload != nil {
		t.Errorf("no payload is %s", want[1].Payload)
	}
	for after, limit := range map[int64]int{0: 0, 1: 1, 2: 5, 3: 0, 9: 0} {
		expected := want[min(after, 3):]
		if limit > 0 && len(expected) > limit {
			expected = expected[:limit]
		}
		events, err := s.Events(t.Context(), campaign.ID, after, limit)
		if diff := differences(append([]store.Event(nil), expected...), events); err != nil || diff != "" {
			t.Errorf("events after %d, at most %d: %v (-want +got):\n%s", after, limit, err, diff)
		}
	}
	if _, err := s.AppendEvent(t.Context(), "01JD0000000000000000000001", "x", at, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an event of no campaign: %v, want ErrNotFound", err)
	}
	if event, err := s.AppendEvent(t.Context(), campaign.ID, "undated", time.Time{}, nil); err != nil || event.Time.IsZero() {
		t.Errorf("an event without a time is %+v, %v", event, err)
	}
}

// testRestart closes the store in the middle of a trial and goes on.
func testRestart(t *testing.T, place Place) {
	url := place(t)
	s := openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	campaign, lease := create(t, s, campaignOf("night"))
	measure(t, s, lease, trialOf("a", 1))
	add(t, s, lease, "b", store.RoleSearch)
	trial, attempt := claim(t, s, lease)
	if err := s.RecordStage(t.Context(), lease, trial.ID, attempt.Number, runners.Warming); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEvent(t.Context(), campaign.ID, "stage", time.Time{}, []byte(`{"stage":"warming"}`)); err != nil {
		t.Fatal(err)
	}
	before, err := s.Export(t.Context(), campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := s.Export(t.Context(), campaign.ID)
	if diff := differences(before, after); err != nil || diff != "" {
		t.Errorf("after opening again: %v (-before +after):\n%s", err, diff)
	}
	trial.State, trial.Value = store.TrialComplete, pointer(2.0)
	if err := s.FinishTrial(t.Context(), lease, trial, attempt.Number); err != nil {
		t.Errorf("the lease and the attempt did not last: %v", err)
	}
}

// normalJSON returns a document without what a database may change of it: spaces
// and the order of keys.
func normalJSON(t testing.TB, document json.RawMessage) string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
