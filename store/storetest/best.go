package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nocturne/store"
)

// conclusionOf returns a conclusion of the campaign of campaignOf.
func conclusionOf(configuration string, value float64, confirmed bool) store.Conclusion {
	campaign := campaignOf("")
	return store.Conclusion{
		HardwareKey: campaign.HardwareKey, Instance: campaign.Instance, Hardware: campaign.Hardware,
		StackKey: "st1:s", Stack: json.RawMessage(`{"driver":"580.82"}`), Driver: "580.82",
		Model: campaign.Model, ModelKey: campaign.ModelKey, Workload: campaign.Workload, WorkloadKey: campaign.WorkloadKey,
		Objective: campaign.Objective, Configuration: configurationOf(configuration),
		Value: value, Interval: &[2]float64{value - 1, value + 1}, Speedup: pointer(1.4), Launches: 3, Confirmed: confirmed,
		Claim: "improved", Time: time.Date(2026, 12, 2, 7, 0, 0, 0, time.UTC),
	}
}

func conclude(t testing.TB, s store.Store, lease store.Lease, configuration string, value float64, confirmed bool) {
	t.Helper()
	if err := s.Conclude(t.Context(), lease, conclusionOf(configuration, value, confirmed)); err != nil {
		t.Fatal(err)
	}
}

// concluded adds a campaign with a conclusion that change may change.
func concluded(t testing.TB, s store.Store, name string, value float64, change func(*store.Conclusion)) {
	t.Helper()
	_, lease := create(t, s, campaignOf(name))
	conclusion := conclusionOf(name, value, true)
	if change != nil {
		change(&conclusion)
	}
	if err := s.Conclude(t.Context(), lease, conclusion); err != nil {
		t.Fatal(err)
	}
}

// names lists answers as "campaign value".
func names(conclusions []store.Conclusion) string {
	var list []string
	for _, conclusion := range conclusions {
		list = append(list, fmt.Sprintf("%s %v", conclusion.Campaign, conclusion.Value))
	}
	return strings.Join(list, ", ")
}

func testBestOrder(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("night"))
	conclude(t, s, lease, "first", 1, false)
	conclude(t, s, lease, "night", 90, true) // replaces it
	want := conclusionOf("night", 90, true)
	want.CampaignID, want.Campaign, want.Run = campaign.ID, "night", 1
	if best, err := s.Best(t.Context(), store.BestFilter{}); err != nil || differences([]store.Conclusion{want}, best) != "" {
		t.Errorf("best: %v (-want +got):\n%s", err, differences([]store.Conclusion{want}, best))
	}

	day := func(n int) time.Time { return time.Date(2026, 12, n, 7, 0, 0, 0, time.UTC) }
	concluded(t, s, "higher", 94, nil)
	concluded(t, s, "luck", 99, func(c *store.Conclusion) { c.Confirmed = false })
	latency := func(n int) func(*store.Conclusion) {
		return func(c *store.Conclusion) {
			c.Objective, c.Time = store.Objective{Metric: "mean_tpot_ms", Direction: "minimize"}, day(n)
		}
	}
	concluded(t, s, "slow", 12, latency(4))
	concluded(t, s, "quick", 11, latency(1))
	concluded(t, s, "other model", 500, func(c *store.Conclusion) { c.ModelKey, c.Time = "m1:other", day(3) })
	tests := map[string]struct {
		filter store.BestFilter
		want   string
	}{
		"confirmed":   {store.BestFilter{}, "quick 11, slow 12, other model 500, higher 94, night 90"},
		"unconfirmed": {store.BestFilter{Unconfirmed: true}, "quick 11, slow 12, other model 500, higher 94, night 90, luck 99"},
		"per group":   {store.BestFilter{PerGroup: 1}, "quick 11, other model 500, higher 94"},
		"limit":       {store.BestFilter{Limit: 2}, "quick 11, slow 12"},
		"both limits": {store.BestFilter{PerGroup: 1, Limit: 2}, "quick 11, other model 500"},
	}
	for name, test := range tests {
		if best, err := s.Best(t.Context(), test.filter); err != nil || names(best) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, names(best), err, test.want)
		}
	}
}

func testBestFilters(t *testing.T, place Place) {
	s := New(t, place)
	concluded(t, s, "a", 1, nil)
	concluded(t, s, "b", 2, func(c *store.Conclusion) { c.HardwareKey, c.Instance = "hw1:b", "box-b" })
	concluded(t, s, "c", 3, func(c *store.Conclusion) { c.Model, c.ModelKey, c.Driver = "other", "m1:other", "570" })
	concluded(t, s, "d", 4, func(c *store.Conclusion) { c.Workload, c.WorkloadKey = []byte(`{"name":"code"}`), "wl1:code" })
	campaign, err := s.Campaign(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		filter store.BestFilter
		want   string
	}{
		"hardware":                {store.BestFilter{HardwareKeys: []string{"hw1:b"}}, "b 2"},
		"several kinds":           {store.BestFilter{HardwareKeys: []string{"hw1:b", "hw1:none"}}, "b 2"},
		"instance":                {store.BestFilter{Instance: "box-b"}, "b 2"},
		"hardware or instance":    {store.BestFilter{HardwareKeys: []string{"hw1:none"}, Instance: "box-b"}, "b 2"},
		"hardware and model":      {store.BestFilter{HardwareKeys: []string{"hw1:b"}, Model: "other"}, ""},
		"model":                   {store.BestFilter{Model: "other"}, "c 3"},
		"model key":               {store.BestFilter{Model: "m1:other"}, "c 3"},
		"workload":                {store.BestFilter{Workload: "code"}, "d 4"},
		"workload key":            {store.BestFilter{Workload: "wl1:code"}, "d 4"},
		"driver":                  {store.BestFilter{Driver: "570"}, "c 3"},
		"campaign":                {store.BestFilter{CampaignID: campaign.ID}, "d 4"},
		"nothing known":           {store.BestFilter{HardwareKeys: []string{"hw1:none"}}, ""},
		"nothing known, however":  {store.BestFilter{HardwareKeys: []string{"hw1:none"}, Unconfirmed: true}, ""},
		"instance and unknown hw": {store.BestFilter{HardwareKeys: []string{"hw1:none"}, Instance: "box-c"}, ""},
	}
	for name, test := range tests {
		if best, err := s.Best(t.Context(), test.filter); err != nil || names(best) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, names(best), err, test.want)
		}
	}
}

// testBestUnconfirmed asks while campaigns are still going on.
func testBestUnconfirmed(t *testing.T, place Place) {
	s := New(t, place)
	campaign, lease := create(t, s, campaignOf("going on"))
	withStack := func(configuration string, value float64, driver string) store.Trial {
		trial := trialOf(configuration, value)
		trial.Stack = []byte(`{"driver":"` + driver + `"}`)
		return trial
	}
	measure(t, s, lease, withStack("a", 80, "570"))
	best := measure(t, s, lease, withStack("b", 90, "580"))
	again := withStack("b", 85, "580")
	again.RepeatOf, again.Role = best.Number, store.RoleControl
	measure(t, s, lease, again)
	slow := withStack("c", 95, "580")
	slow.BrokenLimits = []string{"p99_ttft_ms"}
	measure(t, s, lease, slow)
	manual := withStack("d", 99, "580")
	manual.Role = store.RoleManual
	measure(t, s, lease, manual)
	add(t, s, lease, "e", store.RoleSearch)
	pruned, attempt := claim(t, s, lease)
	pruned.State, pruned.Value = store.TrialPruned, pointer(98.0)
	if err := s.FinishTrial(t.Context(), lease, pruned, attempt.Number); err != nil {
		t.Fatal(err)
	}
	latency := campaignOf("latency")
	latency.Objective = store.Objective{Metric: "mean_tpot_ms", Direction: "minimize"}
	_, other := create(t, s, latency)
	measure(t, s, other, trialOf("a", 12))
	measure(t, s, other, trialOf("b", 11))
	create(t, s, campaignOf("nothing measured yet"))

	answers, err := s.Best(t.Context(), store.BestFilter{Unconfirmed: true})
	if err != nil || names(answers) != "latency 11, going on 90" {
		t.Fatalf("unconfirmed: %q, %v", names(answers), err)
	}
	trials, err := s.Trials(t.Context(), campaign.ID, store.TrialFilter{})
	if err != nil {
		t.Fatal(err)
	}
	want := store.Conclusion{
		CampaignID: campaign.ID, Campaign: "going on", Run: 1,
		HardwareKey: campaign.HardwareKey, Instance: campaign.Instance, Hardware: campaign.Hardware,
		Stack: json.RawMessage(`{"driver":"580"}`), Driver: "580", Model: campaign.Model, ModelKey: campaign.ModelKey,
		Workload: campaign.Workload, WorkloadKey: campaign.WorkloadKey, Objective: campaign.Objective,
		Configuration: configurationOf("b"), Value: 90, Launches: 2, Claim: "unconfirmed", Time: *trials[best.Number-1].Ended,
	}
	if diff := differences(want, answers[1]); diff != "" {
		t.Errorf("the answer of a campaign without a conclusion (-want +got):\n%s", diff)
	}
	for name, test := range map[string]struct {
		filter store.BestFilter
		want   string
	}{
		"confirmed only": {store.BestFilter{}, ""},
		"driver":         {store.BestFilter{Unconfirmed: true, Driver: "570"}, "going on 80"},
		"campaign":       {store.BestFilter{Unconfirmed: true, CampaignID: campaign.ID}, "going on 90"},
	} {
		if answers, err := s.Best(t.Context(), test.filter); err != nil || names(answers) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, names(answers), err, test.want)
		}
	}
	// A conclusion takes the place of the trials, whatever it says.
	conclude(t, s, lease, "b", 86, false)
	if answers, err := s.Best(t.Context(), store.BestFilter{Unconfirmed: true, CampaignID: campaign.ID}); err != nil || names(answers) != "going on 86" {
		t.Errorf("after the conclusion: %q, %v", names(answers), err)
	}
}
