package search

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// settledShare is the expected improvement, as a share of the noise of a launch,
// below which nothing is left to gain: no launch could show it.
const settledShare = 0.1

// settledTrials is how many more configurations than knobs must have been tried
// before nothing is left to gain: with fewer the model repeats its priors, or what
// it was told of other campaigns.
const settledTrials = 3

// expected puts a candidate into the terms of a proposal; nil when scores are no
// ratios.
func (b *belief) expected(c *candidate) *Expected {
	if !b.ratios {
		return nil
	}
	away := c.mean - b.bestMean
	improvement := unit * math.Exp(c.improvement) * (1 - c.crash) * math.Exp(b.keeps(c.x))
	return &Expected{
		Ratio:       math.Exp(unit * away),
		Interval:    [2]float64{math.Exp(unit * (away - 1.96*c.spread)), math.Exp(unit * (away + 1.96*c.spread))},
		Improvement: improvement,
		Crash:       c.crash,
		Settled: b.met && len(b.trials) >= len(b.knobs)+settledTrials &&
			improvement < settledShare*b.launchNoise(),
	}
}

// launchNoise is the fitted standard deviation of a score over launches of the
// best configuration.
func (b *belief) launchNoise() float64 {
	group := 0
	if ran, _ := b.split(); b.uneven(thin(ran, fitted)) {
		group = b.group(b.effective(b.bases[0]))
	}
	return unit * math.Sqrt(b.objective.Noise(group))
}

// reason says in words why a candidate was chosen.
func (b *belief) reason(c *candidate) string {
	gain := 100 * (math.Exp(unit*(c.mean-b.bestMean)) - 1)
	text := fmt.Sprintf("expected %+.1f ± %.1f %% against the best so far with %s", gain, 100*unit*c.spread, b.changes(c.at, b.bases[0]))
	if b.trusts() {
		text += "; by " + b.sources()
	}
	if c.crash > 0.1 {
		text += fmt.Sprintf("; may crash (%.0f %%)", 100*c.crash)
	}
	if len(b.limits) > 0 {
		if kept := math.Exp(b.keeps(c.x)); kept < 0.9 {
			text += fmt.Sprintf("; keeps the limits with %.0f %%", 100*kept)
		}
	}
	if e := b.expected(c); e != nil && e.Settled {
		text += "; nothing is left to gain that a launch could show"
	}
	return text
}

// changes names what a point changes, and which of it was never measured.
func (b *belief) changes(p, from point) string {
	var list []string
	for _, i := range b.space.given {
		switch {
		case p[i] == from[i]:
		case p[i] == inactive:
			list = append(list, b.space.knobs[i].ID+" no longer matters")
		case b.measuredWith(i, p[i]):
			list = append(list, b.space.labels[i][p[i]])
		default:
			list = append(list, b.space.labels[i][p[i]]+" (never measured)")
		}
	}
	return strings.Join(list, ", ")
}

func (b *belief) measuredWith(knob, level int) bool {
	return slices.ContainsFunc(b.trials, func(t trial) bool { return t.at[knob] == level && !t.crashed })
}

// sources names the related measurements.
func (b *belief) sources() string {
	var names []string
	for i := range b.related {
		if len(b.related[i].kept) > 0 {
			names = append(names, b.related[i].name)
		}
	}
	return strings.Join(names, ", ")
}
