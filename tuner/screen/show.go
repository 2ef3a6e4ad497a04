package screen

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"nocturne/store"
	"nocturne/tuner/output"
)

// Show shows where a campaign is and what it found.
func (p *Page) Show(show output.Show) {
	head := fmt.Sprintf("%s run %d: %s", show.Campaign, show.Run, show.State)
	if show.Ended != nil {
		head += ", ended " + clock(*show.Ended)
	} else {
		head += ", begun " + clock(show.Created)
	}
	p.lines(head)
	var about []string
	if show.Hardware != nil {
		about = append(about, show.Hardware.Name)
	}
	if show.Model != "" {
		about = append(about, "model "+show.Model)
	}
	p.lines(strings.Join(about, "; "))
	for _, stack := range show.Stacks {
		if text := stackText(stack); text != "" {
			p.lines(text)
		}
	}
	p.lines("")
	p.state(show)
	if show.Verdict != nil {
		p.lines(VerdictLines(*show.Verdict, show.Best, show.Objective.Metric)...)
	} else {
		p.soFar(show)
	}
	p.references(show)
	p.limits(show)
	p.lines("", "trials: "+counts(show.Trials))
	p.failures(show)
	if show.Trials[string(store.TrialComplete)] >= tellingTrials {
		p.importance(show.Importance)
		p.tied(show)
	}
	p.lines(fmt.Sprintf("time: %s in all; loading %s, measuring %s, overhead %s", Seconds(show.Time.TotalS),
		Seconds(show.Time.LoadingS), Seconds(show.Time.MeasuringS), Seconds(show.Time.OverheadS)))
	p.next(show)
}

// state says what the campaign is doing, or why it does nothing.
func (p *Page) state(show output.Show) {
	if r := show.Running; r != nil {
		again := ""
		if r.Attempt > 1 {
			again = fmt.Sprintf(", attempt %d", r.Attempt)
		}
		p.lines(fmt.Sprintf("trial %d (%s%s): %s, begun %s, %s ago", r.Trial, r.Role, again, orDash(string(r.Stage)),
			r.Started.Local().Format("15:04:05"), Span(time.Since(r.Started))), "")
	}
	if show.Cause != nil && show.State != store.CampaignComplete && *show.Cause != string(show.State) {
		p.lines("why it is " + string(show.State) + ":")
		p.lines(indented("  ", *show.Cause)...)
		p.lines("")
	}
}

// soFar is the best of a campaign without a verdict.
func (p *Page) soFar(show output.Show) {
	if show.Best == nil || show.Best.Value == nil {
		p.lines("no verdict yet, nothing measured so far")
		return
	}
	line := "no verdict yet; best so far " + Measure(*show.Best.Value, show.Objective.Metric)
	if show.Baseline != nil {
		if gain := gainOver(show.Best.Value, show.Baseline.Value, show.Objective.Direction == "minimize"); gain != "" {
			line += " (" + gain + " against the baseline)"
		}
	}
	p.lines(line + ", not confirmed by fresh launches")
	p.lines(ConfigurationLines("    ", show.Best.Configuration)...)
}

func (p *Page) references(show output.Show) {
	for _, reference := range []struct {
		name     string
		measured *output.Measured
	}{{"baseline", show.Baseline}, {"current", show.Current}} {
		if m := reference.measured; m != nil && m.Value != nil {
			p.lines(fmt.Sprintf("  %-9s %s over %s", reference.name, Measure(*m.Value, show.Objective.Metric), count(m.Launches, "launch", "launches")))
		}
	}
}

func (p *Page) limits(show output.Show) {
	for _, limit := range show.Limits {
		var bounds []string
		if limit.Max != nil {
			bounds = append(bounds, "at most "+Measure(*limit.Max, limit.Metric))
		}
		if limit.Min != nil {
			bounds = append(bounds, "at least "+Measure(*limit.Min, limit.Metric))
		}
		met := "not measured"
		if limit.Met != nil {
			met = map[bool]string{true: "met", false: "NOT met"}[*limit.Met]
		}
		p.lines(fmt.Sprintf("  limit     %s %s: %s (best %s, baseline %s)", limit.Metric, strings.Join(bounds, " and "), met,
			measureOrDash(limit.Best, limit.Metric), measureOrDash(limit.Baseline, limit.Metric)))
	}
}

// failures tells each kind of failure once, in the words of its first trial.
func (p *Page) failures(show output.Show) {
	for _, failure := range show.FailureDetails {
		numbers := make([]string, len(failure.Trials))
		for i, number := range failure.Trials {
			numbers[i] = fmt.Sprint(number)
		}
		noun := "trial"
		if len(numbers) > 1 {
			noun = "trials"
		}
		p.lines(fmt.Sprintf("%s (%s): %s %s", failure.Reason, failure.Class, noun, strings.Join(numbers, ", ")))
		p.lines(indented("    ", failure.Message)...)
		if failure.LogPath != "" {
			p.lines("    log " + failure.LogPath)
		}
	}
}

// With fewer trials than tellingTrials, knobs that changed together cannot be
// told apart. importantShare is the share of the effects below which a knob is not
// shown, barWidth the width of the whole.
const tellingTrials, importantShare, mostImportant, barWidth = 8, 0.03, 6, 20

// importance draws how much each knob matters, and what its values do against
// their mean, the best first.
func (p *Page) importance(importance []output.Importance) {
	var rows [][]string
	for _, knob := range importance {
		if knob.Share < importantShare || len(rows) == mostImportant {
			continue
		}
		interval := ""
		if knob.Interval != nil {
			interval = fmt.Sprintf("%.0f to %.0f %%", knob.Interval[0]*100, knob.Interval[1]*100)
		}
		bar := strings.Repeat("#", int(math.Round(knob.Share*barWidth)))
		rows = append(rows, []string{strings.TrimPrefix(knob.Knob, "flag."), fmt.Sprintf("%-*s", barWidth, bar),
			fmt.Sprintf("%.0f %%", knob.Share*100), interval, curveText(knob.Curve)})
	}
	if len(rows) > 0 {
		p.table([]column{{head: "knob"}, {head: "share of the effects"}, {head: "", right: true}, {head: "95 % interval"}, {head: "values"}}, rows)
	}
}

// tied says what else would do as well as the best.
func (p *Page) tied(show output.Show) {
	tied := show.Tied
	at := slices.IndexFunc(tied, func(t output.Tied) bool { return t.Simplest })
	if show.Best == nil || len(tied) < 2 || at < 0 {
		return
	}
	// The best itself is among them.
	others := "1 configuration is"
	if len(tied) > 2 {
		others = fmt.Sprintf("%d configurations are", len(tied)-1)
	}
	simplest := "the simplest changes " + count(tied[at].Changes, "knob", "knobs")
	switch {
	case at == 0:
		simplest = "the best is the simplest of them"
	case tied[at].Changes == 0:
		simplest = "the simplest is the baseline"
	}
	p.lines(fmt.Sprintf("%s tied with the best; %s", others, simplest))
}

// curveText lists the values of a knob by their effect.
func curveText(curve []output.Effect) string {
	sorted := slices.Clone(curve)
	slices.SortStableFunc(sorted, func(a, b output.Effect) int { return cmp.Compare(b.Effect, a.Effect) })
	parts := make([]string, len(sorted))
	for i, point := range sorted {
		parts[i] = point.Value.String() + " " + Ratio(point.Effect)
	}
	return strings.Join(parts, ", ")
}

// next says what a person can do now.
func (p *Page) next(show output.Show) {
	name := fmt.Sprintf("%s@%d", show.Campaign, show.Run)
	switch show.State {
	case store.CampaignRunning, store.CampaignWaiting, store.CampaignRestoring:
		p.lines("", fmt.Sprintf("should its tuner be gone, `nocturne resume %s` goes on (and refuses while one is at work)", show.Campaign))
	case store.CampaignPaused:
		p.lines("", fmt.Sprintf("nothing is lost; once the cause is mended, `nocturne resume %s` goes on", show.Campaign))
	case store.CampaignInterrupted:
		p.lines("", fmt.Sprintf("nothing is lost; `nocturne resume %s` goes on", show.Campaign))
	case store.CampaignFailed:
		p.lines("", "mend the cause in the campaign file, then: nocturne tune FILE --new-run")
	default:
		if show.Best != nil && show.Best.Value != nil {
			p.lines("", pasteLine(name, show.Confirmed))
		}
	}
}

// counts lists numbers by name, the total first.
func counts(numbers map[string]int) string {
	var parts []string
	if total, ok := numbers["total"]; ok {
		parts = append(parts, fmt.Sprintf("%d in all", total))
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if name != "total" {
			parts = append(parts, fmt.Sprintf("%d %s", numbers[name], name))
		}
	}
	return strings.Join(parts, ", ")
}
