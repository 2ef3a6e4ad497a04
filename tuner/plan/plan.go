// Package plan says what fits into the time of a campaign, launch by launch.
package plan

import (
	"errors"
	"fmt"
	"time"

	"nocturne/tuner/spec"
)

// Estimate is how long one launch takes, and how that is known.
type Estimate struct {
	Launch time.Duration
	// Source says in words where the figure comes from.
	Source string
}

// Item is a group of launches of one role.
type Item struct {
	Role  string `json:"role"`
	Count int    `json:"count"`
	// Minutes of all of them together; null when not known.
	Minutes *float64 `json:"minutes"`
}

// Plan is what a campaign will do with its time.
type Plan struct {
	Items []Item `json:"items"`
	// Asked is budget.trials. Search is less where the space has fewer
	// configurations than that.
	Asked int `json:"asked"`
	// Search and Confirm are numbers of launches; Finalists times Relaunches
	// are the candidates' share of the confirmation.
	Search     int `json:"search"`
	Confirm    int `json:"confirm"`
	Finalists  int `json:"finalists"`
	Relaunches int `json:"relaunches"`
	Launches   int `json:"launches"`

	MinutesEach  *float64   `json:"minutes_each"`
	Source       string     `json:"source"` // where MinutesEach comes from
	TotalMinutes *float64   `json:"total_minutes"`
	Start        time.Time  `json:"start"`
	End          *time.Time `json:"end"` // of the window; null when nothing limits it
	// Fits is false when the wish needs more nights than the budget allows; the
	// search is then cut short, never the confirmation.
	Fits   bool `json:"fits"`
	Nights int  `json:"nights"` // that the wish needs; 1 without a window
	// Searchable is the number of search trials that fit into the time.
	Searchable int `json:"searchable"`
}

// Input is what a plan is made from.
type Input struct {
	Budget     spec.Budget
	Confirm    spec.Confirm
	HasCurrent bool
	// Configurations is how many different launches the space has, references
	// included; 0 when there are more than the budget can use, or nobody counted.
	Configurations int
	Estimate       Estimate
	Started        time.Time // of the campaign; equal to Now for a new one
	Now            time.Time
}

func (in Input) references() int {
	if in.HasCurrent {
		return 2
	}
	return 1
}

// Make plans a campaign from its beginning. It is an error when the space holds
// nothing beside the references, and when not even the baseline, one search
// trial and one confirmation fit into the time.
func Make(in Input) (Plan, error) {
	span, err := Next(in.Budget, in.Started, in.Now)
	if err != nil {
		return Plan{}, err
	}
	references := in.references()
	search := in.Budget.Trials
	if in.Configurations > 0 {
		if search = min(search, in.Configurations-references); search < 1 {
			return Plan{}, nothingToTune(in)
		}
	}
	start := span.Start
	if in.Now.After(start) {
		start = in.Now
	}
	plan := Plan{Asked: in.Budget.Trials, Search: search, Start: start.UTC(), Source: in.Estimate.Source, Fits: true, Nights: 1}
	plan.Finalists, plan.Relaunches = Confirmation(in.Confirm, in.Budget.Trials, references)
	plan.Confirm = (plan.Finalists + references) * plan.Relaunches
	plan.Launches = references + plan.Search + plan.Confirm
	plan.Searchable = plan.Search
	if !span.Unlimited() {
		end := span.End.UTC()
		plan.End = &end
	}
	if each := in.Estimate.Launch; each > 0 {
		if err := plan.fit(each, references, span, in); err != nil {
			return Plan{}, err
		}
	}
	plan.items(references, in.HasCurrent)
	return plan, nil
}

func nothingToTune(in Input) error {
	if in.Configurations == 1 {
		return errors.New("nothing to tune: the space has one configuration, which is the baseline; give a knob another value, or measure this one with `nocturne try`")
	}
	return errors.New("nothing to tune: the space has two configurations, which are the baseline and current; give a knob another value")
}

// Note says in words that the plan is smaller than the budget because the space
// is; empty when it is not.
func (p Plan) Note() string {
	if p.Search == p.Asked {
		return ""
	}
	trials := "1 search trial measures"
	if p.Search > 1 {
		trials = fmt.Sprintf("%d search trials measure", p.Search)
	}
	return fmt.Sprintf("budget.trials is %d, more than the space has to offer: beside the references, %s all of it", p.Asked, trials)
}

// fit checks the wish against the time, given the duration of one launch.
func (p *Plan) fit(each time.Duration, references int, span Span, in Input) error {
	minutes, total := each.Minutes(), (each * time.Duration(p.Launches)).Minutes()
	p.MinutesEach, p.TotalMinutes = &minutes, &total
	if span.Unlimited() {
		return nil
	}
	available, nights := room(in, span, each, p.Launches)
	if fixed := references + p.Confirm; available < fixed+1 {
		return fmt.Errorf("nothing sensible fits: there is room for %d launches of %s each before %s, but the reference launches, one search trial and the confirmation need %d; lengthen the window, add nights, or lower confirm.relaunches",
			available, each.Round(time.Second), span.End.Format("2006-01-02 15:04 MST"), fixed+1)
	}
	p.Nights = nights
	if p.Launches > available {
		p.Fits = false
		p.Searchable = available - references - p.Confirm
	}
	return nil
}

// room counts the launches that fit into the nights allowed, from now on, and
// the nights that the wish would need if there were more of them.
func room(in Input, span Span, each time.Duration, wish int) (available, nights int) {
	const farthest = 400 // nights, beyond which the wish is hopeless
	total := 0
	for night := 1; night <= farthest; night++ {
		from := span.Start
		if in.Now.After(from) {
			from = in.Now
		}
		total += max(int(span.End.Sub(from)/each), 0)
		if night <= max(in.Budget.Nights, 1) {
			available = total
		}
		if total >= wish {
			return available, night
		}
		next, err := Next(in.Budget, in.Started, span.End)
		if in.Budget.Window == nil || err != nil || !next.Start.After(span.Start) {
			return available, night
		}
		span = next
	}
	return available, farthest
}

func (p *Plan) items(references int, hasCurrent bool) {
	add := func(role string, count int) {
		item := Item{Role: role, Count: count}
		if p.MinutesEach != nil {
			minutes := *p.MinutesEach * float64(count)
			item.Minutes = &minutes
		}
		p.Items = append(p.Items, item)
	}
	add("baseline", 1)
	if hasCurrent {
		add("current", 1)
	}
	add("search", p.Searchable)
	add("confirm", p.Confirm)
}

// Confirmation chooses how many finalists are relaunched and how often. An
// automatic confirmation takes at most a fifth of all launches: it prefers
// three launches each over two, then two finalists over one. Two launches of
// one finalist and of each reference are the least that gives an interval, so a
// very small campaign spends more than a fifth.
func Confirmation(confirm spec.Confirm, search, references int) (finalists, relaunches int) {
	if !confirm.Auto {
		return confirm.Top, confirm.Relaunches
	}
	limit := (references + search) / 4 // a fifth of the whole is a quarter of the rest
	for _, choice := range [][2]int{{2, 3}, {1, 3}, {1, 2}} {
		if (choice[0]+references)*choice[1] <= limit {
			return choice[0], choice[1]
		}
	}
	return 1, 2
}
