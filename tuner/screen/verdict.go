package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/plan"
)

// PlanLines says what fits into the time, launch by launch.
func PlanLines(made plan.Plan) []string {
	var parts []string
	for _, item := range made.Items {
		parts = append(parts, fmt.Sprintf("%d %s", item.Count, item.Role))
	}
	launches := 0
	for _, item := range made.Items {
		launches += item.Count
	}
	lines := []string{fmt.Sprintf("plan     %s = %d launches (confirmation: %s, %d launches each)",
		strings.Join(parts, " + "), launches, finalists(made.Finalists), made.Relaunches)}
	if made.MinutesEach == nil {
		lines = append(lines, "         minutes for each launch: "+made.Source)
	} else {
		each := time.Duration(*made.MinutesEach * float64(time.Minute))
		lines = append(lines, fmt.Sprintf("         %s each (%s), %s in all", Span(each), made.Source, Span(each*time.Duration(launches))))
	}
	if made.End != nil {
		lines = append(lines, fmt.Sprintf("         launches are allowed from %s to %s", made.Start.Local().Format("Mon 15:04 MST"), made.End.Local().Format("Mon 15:04 MST")))
	}
	if !made.Fits {
		lines = append(lines, fmt.Sprintf("         %d of %d search trials fit; all of them would need %d nights", made.Searchable, made.Search, made.Nights))
	}
	return lines
}

func finalists(count int) string {
	if count == 1 {
		return "the best one and the references"
	}
	return fmt.Sprintf("the best %d and the references", count)
}

// claims puts each claim into words, with what follows from it.
var claims = map[string]struct{ headline, advice string }{
	"improved":    {"IMPROVED, and confirmed by fresh launches", ""},
	"no_effect":   {"NO EFFECT: the best configuration makes no difference that matters", "keep what runs today"},
	"tie":         {"TIE: undecided, the launches cannot tell the difference from noise", "keep what runs today; more relaunches (confirm.relaunches) would tell"},
	"unconfirmed": {"UNCONFIRMED: the time ended before fresh launches could confirm anything", "a new run with more time, or with fewer trials, would tell"},
	"none":        {"NO GAIN: nothing beat the reference", "keep what runs today"},
}

// shownEffect is the smallest detectable effect worth a line.
const shownEffect = 0.0005

// VerdictLines says what a campaign may claim.
func VerdictLines(verdict output.Verdict, best *output.Measured, metric string) []string {
	claim, known := claims[verdict.Claim]
	if !known {
		claim.headline = verdict.Claim
	}
	lines := []string{claim.headline}
	for _, comparison := range verdict.Comparisons {
		line := fmt.Sprintf("  against %-9s %8s", comparison.Against, Ratio(comparison.Speedup))
		if comparison.Interval != nil {
			line += fmt.Sprintf("   95 %% interval %s to %s, %s", Ratio(comparison.Interval[0]), Ratio(comparison.Interval[1]),
				count(comparison.Launches, "fresh launch", "fresh launches"))
		}
		lines = append(lines, line)
	}
	if len(verdict.Comparisons) == 0 {
		lines = append(lines, "  "+verdict.Reason)
	}
	if verdict.MinimalDetectable != nil && *verdict.MinimalDetectable > shownEffect {
		lines = append(lines, fmt.Sprintf("  these launches would have shown an effect of %.1f %% or more (launch noise %.1f %%)", *verdict.MinimalDetectable*100, *verdict.LaunchNoise*100))
	}
	if c := verdict.Candidate; c != nil && (best == nil || best.Configuration.Hash != c.Hash) {
		lines = append(lines, "  the candidate was: "+strings.Join(ConfigurationLines("", *c), " "))
	}
	if claim.advice != "" {
		lines = append(lines, "  "+claim.advice)
	}
	if best != nil && best.Value != nil {
		line := fmt.Sprintf("  best known: %s", Measure(*best.Value, metric))
		if best.Interval != nil {
			line += fmt.Sprintf(" [%s, %s]", Number(best.Interval[0]), Number(best.Interval[1]))
		}
		lines = append(lines, line)
		lines = append(lines, ConfigurationLines("    ", best.Configuration)...)
	}
	return lines
}

// ConfigurationLines lists what a configuration does to a launch.
func ConfigurationLines(indent string, configuration store.Configuration) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(configuration.Env)) {
		lines = append(lines, indent+name+"="+configuration.Env[name])
	}
	if len(configuration.Args) > 0 {
		lines = append(lines, indent+strings.Join(configuration.Args, " "))
	}
	if len(lines) == 0 {
		lines = append(lines, indent+"all defaults: no variable and no flag beyond the base command")
	}
	return lines
}

func (p *Progress) verdict(campaign store.Campaign, e output.VerdictReached) {
	p.line("")
	for i, line := range VerdictLines(e.Verdict, e.Best, p.metric) {
		if i == 0 {
			line = p.paint("1", line)
		}
		p.line("%s", line)
	}
	p.line("")
	if e.Best != nil && e.Best.Value != nil {
		p.line("%s", pasteLine(fmt.Sprintf("%s@%d", campaign.Name, campaign.Run), e.Best.Launches > 1))
	}
	p.line("all of it: nocturne show %s", campaign.Name)
}
