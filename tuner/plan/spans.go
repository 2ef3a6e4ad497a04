package plan

import (
	"fmt"
	"time"

	"nocturne/tuner/spec"
)

// Span is a stretch of time in which launches are allowed.
type Span struct {
	Start time.Time
	// End is zero when nothing limits the span.
	End time.Time
}

// Unlimited reports whether the span has no end.
func (s Span) Unlimited() bool { return s.End.IsZero() }

// Contains reports whether launches are allowed at t.
func (s Span) Contains(t time.Time) bool {
	return !t.Before(s.Start) && (s.Unlimited() || t.Before(s.End))
}

// Next returns the span that contains now or, failing that, the next one.
// A window that crosses a change of daylight saving time is as long as the
// night really is. started is when the campaign began: budget.time counts from
// there.
func Next(budget spec.Budget, started, now time.Time) (Span, error) {
	span := Span{Start: now}
	if budget.Window != nil {
		window, err := nextWindow(*budget.Window, now)
		if err != nil {
			return Span{}, err
		}
		span = window
	}
	limit := func(end time.Time) {
		if span.Unlimited() || end.Before(span.End) {
			span.End = end
		}
	}
	if budget.Until != nil {
		limit(*budget.Until)
	}
	if budget.Time > 0 {
		limit(started.Add(budget.Time))
	}
	if !span.Unlimited() && !span.End.After(span.Start) {
		return Span{}, fmt.Errorf("the budget's time ended at %s", span.End.Format(time.RFC3339))
	}
	return span, nil
}

// nextWindow looks for the first window that ends after now. Whether it goes
// past midnight is decided by the clock as written; a window whose hours do not
// exist on the day that the clock is put forward is left out.
func nextWindow(window spec.Window, now time.Time) (Span, error) {
	zone, err := time.LoadLocation(window.Zone)
	if err != nil {
		return Span{}, fmt.Errorf("budget.window: time zone %q: %w", window.Zone, err)
	}
	overnight := 0
	if window.End.Hour*60+window.End.Minute <= window.Start.Hour*60+window.Start.Minute {
		overnight = 1
	}
	local := now.In(zone)
	at := func(day int, clock spec.Clock) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()+day, clock.Hour, clock.Minute, 0, 0, zone)
	}
	for day := -1; day <= 2; day++ {
		start, end := at(day, window.Start), at(day+overnight, window.End)
		if end.After(start) && end.After(now) {
			return Span{Start: start, End: end}, nil
		}
	}
	return Span{}, fmt.Errorf("budget.window: no window found after %s", now.Format(time.RFC3339))
}
