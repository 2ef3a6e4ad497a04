package plan_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"nocturne/tuner/plan"
	"nocturne/tuner/spec"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

var night = &spec.Window{Start: spec.Clock{Hour: 22}, End: spec.Clock{Hour: 7}, Zone: "Europe/Berlin"}

func TestNextSpan(t *testing.T) {
	tests := map[string]struct {
		window     *spec.Window
		now        string
		start, end string
		hours      float64
	}{
		"before the window":                 {night, "2026-12-01T15:00:00+01:00", "2026-12-01T22:00:00+01:00", "2026-12-02T07:00:00+01:00", 9},
		"inside, before midnight":           {night, "2026-12-01T23:30:00+01:00", "2026-12-01T22:00:00+01:00", "2026-12-02T07:00:00+01:00", 9},
		"inside, after midnight":            {night, "2026-12-02T06:59:00+01:00", "2026-12-01T22:00:00+01:00", "2026-12-02T07:00:00+01:00", 9},
		"at its end":                        {night, "2026-12-02T07:00:00+01:00", "2026-12-02T22:00:00+01:00", "2026-12-03T07:00:00+01:00", 9},
		"asked in another zone":             {night, "2026-12-01T20:59:00Z", "2026-12-01T22:00:00+01:00", "2026-12-02T07:00:00+01:00", 9},
		"the night that is an hour shorter": {night, "2026-03-28T23:00:00+01:00", "2026-03-28T22:00:00+01:00", "2026-03-29T07:00:00+02:00", 8},
		"the night that is an hour longer":  {night, "2026-10-24T23:00:00+02:00", "2026-10-24T22:00:00+02:00", "2026-10-25T07:00:00+01:00", 10},
		"a window within a day": {&spec.Window{Start: spec.Clock{Hour: 9, Minute: 30}, End: spec.Clock{Hour: 17}, Zone: "UTC"},
			"2026-12-01T08:00:00Z", "2026-12-01T09:30:00Z", "2026-12-01T17:00:00Z", 7.5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := at(t, test.now)
			span, err := plan.Next(spec.Budget{Window: test.window}, now, now)
			if err != nil {
				t.Fatal(err)
			}
			if !span.Start.Equal(at(t, test.start)) || !span.End.Equal(at(t, test.end)) {
				t.Errorf("got %s to %s, want %s to %s", span.Start, span.End, test.start, test.end)
			}
			if hours := span.End.Sub(span.Start).Hours(); hours != test.hours {
				t.Errorf("the span has %g hours, want %g", hours, test.hours)
			}
		})
	}
}

func TestSpanLimits(t *testing.T) {
	now := at(t, "2026-12-01T23:00:00+01:00")
	until := at(t, "2026-12-02T05:00:00+01:00")
	span, err := plan.Next(spec.Budget{Window: night, Until: &until}, now, now)
	if err != nil || !span.End.Equal(until) {
		t.Errorf("got end %s, %v, want that of until", span.End, err)
	}
	span, err = plan.Next(spec.Budget{Time: 3 * time.Hour}, now, now.Add(time.Hour))
	if err != nil || !span.End.Equal(now.Add(3*time.Hour)) {
		t.Errorf("got end %s, %v: budget.time counts from the beginning of the campaign", span.End, err)
	}
	if _, err = plan.Next(spec.Budget{Until: &now}, now, now.Add(time.Minute)); err == nil {
		t.Error("an instant in the past gave a span")
	}
	if span, err = plan.Next(spec.Budget{}, now, now); err != nil || !span.Unlimited() || !span.Contains(now) {
		t.Errorf("no limit gave %+v, %v", span, err)
	}
}

// Every span contains now or begins after it, and is not empty.
func TestSpanProperties(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}
	rapid.Check(t, func(t *rapid.T) {
		clock := rapid.Custom(func(t *rapid.T) spec.Clock {
			return spec.Clock{Hour: rapid.IntRange(0, 23).Draw(t, "hour"), Minute: rapid.IntRange(0, 59).Draw(t, "minute")}
		})
		window := &spec.Window{Start: clock.Draw(t, "start"), End: clock.Draw(t, "end"), Zone: rapid.SampledFrom(zones).Draw(t, "zone")}
		if window.Start == window.End {
			return
		}
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "now"), 0)
		span, err := plan.Next(spec.Budget{Window: window}, now, now)
		if err != nil {
			t.Fatal(err)
		}
		if !span.End.After(now) || !span.End.After(span.Start) || span.End.Sub(span.Start) > 25*time.Hour {
			t.Fatalf("at %s window %+v gave %s to %s", now, window, span.Start, span.End)
		}
		if span.Start.Sub(now) > 25*time.Hour {
			t.Fatalf("at %s the next window begins only at %s", now, span.Start)
		}
	})
}

func TestConfirmationTakesAtMostAFifth(t *testing.T) {
	for search := 1; search <= 400; search++ {
		for references := 1; references <= 2; references++ {
			finalists, relaunches := plan.Confirmation(spec.Confirm{Auto: true}, search, references)
			confirm := (finalists + references) * relaunches
			total := references + search + confirm
			least := (1 + references) * 2
			if confirm > least && confirm*5 > total {
				t.Errorf("%d search trials, %d references: %d of %d launches confirm", search, references, confirm, total)
			}
			if finalists < 1 || relaunches < 2 {
				t.Errorf("%d search trials: %d finalists, %d relaunches", search, finalists, relaunches)
			}
		}
	}
	if finalists, relaunches := plan.Confirmation(spec.Confirm{Top: 4, Relaunches: 5}, 10, 1); finalists != 4 || relaunches != 5 {
		t.Error("the numbers of the file were not taken")
	}
}

func TestPlan(t *testing.T) {
	now := at(t, "2026-12-01T22:00:00+01:00")
	tests := map[string]struct {
		input      plan.Input
		refused    string
		searchable int
		fits       bool
		nights     int
	}{
		"no limit":             {plan.Input{Budget: spec.Budget{Trials: 40}, Estimate: plan.Estimate{Launch: 20 * time.Minute}}, "", 40, true, 1},
		"duration not known":   {plan.Input{Budget: spec.Budget{Trials: 40, Window: night}}, "", 40, true, 1},
		"cut to the night":     {plan.Input{Budget: spec.Budget{Trials: 40, Window: night}, Estimate: plan.Estimate{Launch: 20 * time.Minute}, HasCurrent: true}, "", 27 - 2 - 9, false, 2},
		"two nights hold more": {plan.Input{Budget: spec.Budget{Trials: 40, Window: night, Nights: 2}, Estimate: plan.Estimate{Launch: 20 * time.Minute}, HasCurrent: true}, "", 40, true, 2},
		"nothing fits":         {plan.Input{Budget: spec.Budget{Trials: 40, Window: night}, Estimate: plan.Estimate{Launch: 2 * time.Hour}}, "nothing sensible fits", 0, false, 0},
		"longer than a night":  {plan.Input{Budget: spec.Budget{Trials: 4, Window: night}, Estimate: plan.Estimate{Launch: 10 * time.Hour}}, "nothing sensible fits", 0, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.input.Now, test.input.Started, test.input.Confirm = now, now, spec.Confirm{Auto: true}
			made, err := plan.Make(test.input)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v, want a refusal with %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if made.Start.Location() != time.UTC || made.End != nil && made.End.Location() != time.UTC {
				t.Errorf("times are not UTC: %s, %s", made.Start, made.End)
			}
			if made.Searchable != test.searchable || made.Fits != test.fits || made.Nights != test.nights {
				t.Errorf("searchable %d, fits %t, nights %d; want %d, %t, %d", made.Searchable, made.Fits, made.Nights, test.searchable, test.fits, test.nights)
			}
		})
	}
}

// The sampler never proposes a configuration twice, nor a reference, so a plan
// of more trials than that is not true.
func TestPlanIsNoLargerThanTheSpace(t *testing.T) {
	now := at(t, "2026-12-01T22:00:00+01:00")
	tests := map[string]struct {
		configurations int
		current        bool
		search         int
		said           string
		refused        string
	}{
		"not counted":               {0, false, 40, "", ""},
		"as large as the budget":    {41, false, 40, "", ""},
		"smaller":                   {6, false, 5, "budget.trials is 40, more than the space has to offer: beside the references, 5 search trials measure all of it", ""},
		"smaller, with current":     {6, true, 4, "4 search trials measure all of it", ""},
		"two":                       {2, false, 1, "1 search trial measures all of it", ""},
		"one":                       {1, false, 0, "", "nothing to tune: the space has one configuration, which is the baseline"},
		"baseline and current only": {2, true, 0, "", "nothing to tune: the space has two configurations, which are the baseline and current"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			made, err := plan.Make(plan.Input{Budget: spec.Budget{Trials: 40}, Confirm: spec.Confirm{Auto: true}, HasCurrent: test.current,
				Configurations: test.configurations, Started: now, Now: now})
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v, want a refusal with %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			launches := 0
			for _, item := range made.Items {
				launches += item.Count
			}
			if made.Asked != 40 || made.Search != test.search || made.Searchable != test.search || made.Launches != launches {
				t.Errorf("asked %d, search %d, searchable %d, launches %d of %d; want 40, %d, %d and all", made.Asked, made.Search, made.Searchable, made.Launches, launches, test.search, test.search)
			}
			if note := made.Note(); (note == "") != (test.said == "") || !strings.Contains(note, test.said) {
				t.Errorf("said %q, want %q", note, test.said)
			}
		})
	}
}

// A plan made in the middle of a window counts from now.
func TestPlanInTheMiddleOfAWindow(t *testing.T) {
	now := at(t, "2026-12-02T06:00:00+01:00")
	input := plan.Input{Budget: spec.Budget{Trials: 10, Window: night}, Confirm: spec.Confirm{Auto: true},
		Estimate: plan.Estimate{Launch: 20 * time.Minute}, Started: now, Now: now}
	if _, err := plan.Make(input); err == nil || !strings.Contains(err.Error(), "room for 3 launches") {
		t.Errorf("got %v, want a refusal: one hour is left", err)
	}
	input.Budget.Nights = 2
	made, err := plan.Make(input)
	if err != nil {
		t.Fatal(err)
	}
	if made.Searchable != 10 || made.Nights != 2 || !made.Start.Equal(now) {
		t.Errorf("searchable %d in %d nights from %s, want all 10 in 2 from now", made.Searchable, made.Nights, made.Start)
	}
}

// The hour from 2 to 3 does not exist in the night in which clocks go forward.
func TestWindowInTheHourThatDoesNotExist(t *testing.T) {
	window := &spec.Window{Start: spec.Clock{Hour: 2}, End: spec.Clock{Hour: 3}, Zone: "Europe/Berlin"}
	now := at(t, "2026-03-29T00:30:00+01:00")
	span, err := plan.Next(spec.Budget{Window: window}, now, now)
	if err != nil {
		t.Fatal(err)
	}
	if span.End.Sub(span.Start) != time.Hour || !span.Start.Equal(at(t, "2026-03-30T02:00:00+02:00")) {
		t.Errorf("got %s to %s, want the next night's hour", span.Start, span.End)
	}
}
