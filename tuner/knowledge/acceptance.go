package knowledge

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"nocturne/runners/load"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/spec"
)

// acceptanceMetrics are the names under which the acceptance length of
// speculative decoding is reported: that of the load generator, and the one that
// a command may use. It is the mean number of tokens that a verification yields,
// the one that the target model adds included.
var acceptanceMetrics = []string{load.MetricAcceptanceLength, "acceptance_length"}

var (
	// tokenRate finds metrics that count tokens by time, and tokenRateUnit units.
	tokenRate     = regexp.MustCompile(`(?i)throughput|(^|_)(tps|tok(ens?)?_?(per_?)?s(ec(ond)?)?)(_|$)`)
	tokenRateUnit = regexp.MustCompile(`(?i)^tok(en)?s?\s*(/|per)\s*s(ec(ond)?)?$`)
	// timePerToken finds latencies of a token.
	timePerToken = regexp.MustCompile(`(?i)(^|_)(tpot|itl)(_|$)|(^|_)per_tok(en)?(_|$)`)
)

// acceptancePower is the exponent with which the acceptance length enters the
// objective: tokens come at (acceptance length) / (time of a step), so 1 for a
// rate of tokens and -1 for the time of one. Other objectives are no product of
// it (the time to the first token has no verification in it), and get 0.
func acceptancePower(campaign *spec.Campaign) float64 {
	metric := campaign.Objective.Metric
	if campaign.Objective.Minimize() {
		if timePerToken.MatchString(metric) && !strings.HasPrefix(metric, "std_") {
			return -1
		}
		return 0
	}
	for _, pattern := range campaign.Command.Patterns {
		if pattern.Metric == metric && tokenRateUnit.MatchString(pattern.Unit) {
			return 1
		}
	}
	if tokenRate.MatchString(metric) {
		return 1
	}
	return 0
}

// acceptance is the acceptance length as a factor of the objective; nil where it
// is none.
type acceptance struct {
	campaign *spec.Campaign
	factor   search.Factor
}

// newAcceptance returns nil where the objective is no product of the acceptance
// length, nothing of speculation is tuned, or no trial has told it.
func newAcceptance(campaign *spec.Campaign, trials []store.Trial) *acceptance {
	power, knobs := acceptancePower(campaign), campaign.SpeculationKnobs()
	if power == 0 || len(knobs) == 0 {
		return nil
	}
	a := &acceptance{campaign: campaign, factor: search.Factor{Name: "acceptance length", Knobs: knobs, Power: power}}
	reports := func(trial store.Trial) bool { _, told := a.reported(&trial); return told }
	if !slices.ContainsFunc(trials, reports) {
		return nil
	}
	return a
}

// of is the factor's value in a trial; nil where it is not known.
func (a *acceptance) of(trial *store.Trial) map[string]float64 {
	if a == nil {
		return nil
	}
	length, told := a.reported(trial)
	switch {
	case a.campaign.IdleSpeculation(trial.Configuration.Values):
		length = 1 // whatever a counter says that nothing moved
	case !told:
		return nil
	}
	return map[string]float64{a.factor.Name: length}
}

// reported is the acceptance length at the load points that count: their
// geometric mean, as the objective's.
func (a *acceptance) reported(trial *store.Trial) (float64, bool) {
	if trial.State != store.TrialComplete {
		return 0, false
	}
	counted, err := Counted(a.campaign.Objective, trial.Points)
	if err != nil {
		return 0, false
	}
	logs := 0.0
	for _, point := range counted {
		at := slices.IndexFunc(acceptanceMetrics, func(name string) bool { return point.Metrics[name] > 0 })
		if at < 0 {
			return 0, false
		}
		logs += math.Log(point.Metrics[acceptanceMetrics[at]])
	}
	return math.Exp(logs / float64(len(counted))), true
}
