package problems

import (
	"math"
	"math/rand/v2"

	"nocturne/search"
)

// AcceptanceLength is the factor that WithCounters reports.
const AcceptanceLength = "acceptance_length"

// Observe launches a configuration as the given trial of a campaign. The noise
// depends on the problem's seed, the campaign and the trial alone: adding
// knowledge to a problem changes no observed value.
func (p *Problem) Observe(values search.Values, campaign uint64, trial int) search.Observation {
	observation := search.Observation{Trial: trial, Values: values}
	at := p.at(values)
	if p.model.crashes(at) {
		observation.Outcome = search.Infeasible
		return observation
	}
	random := rand.New(rand.NewPCG(p.seed^campaign<<32, uint64(trial)))
	noise := p.noise(at)
	deviation, counters, second := random.NormFloat64(), random.NormFloat64(), random.NormFloat64()
	observation.Value = p.model.value(at) * (1 + noise*deviation) * (1 + p.Drift*float64(trial)/100)
	observation.StandardError = p.RoundShare * noise * observation.Value
	if len(p.Factors) > 0 {
		length := p.model.(speculating).acceptance(at) * math.Exp(p.acceptanceError(at, deviation, counters))
		observation.Factors = map[string]float64{AcceptanceLength: length}
	}
	if p.limit != nil {
		observation.Margins = map[string]float64{p.limit.name: p.limit.margin(at) - p.limit.noise*second}
	}
	return observation
}

// noise is the relative standard deviation of launches of a configuration.
func (p *Problem) noise(at []int) float64 {
	if s, ok := p.model.(speculating); ok && p.SpeculationNoise > 0 && s.speculates(at) {
		return p.SpeculationNoise
	}
	return p.Noise
}

// acceptanceError splits the deviation of a launch into that of the acceptance
// length and that of the step time. The two are independent, with 0.8 and 0.6 of
// the deviation's size, and add up to it: at 1.5 % noise the acceptance length
// varies by 1.2 % and the step time by 0.9 %, and the observed throughput is the
// same to the last digit as without counters. Without speculation the acceptance
// length is 1 and the step time has the whole deviation.
func (p *Problem) acceptanceError(at []int, deviation, counters float64) float64 {
	if !p.model.(speculating).speculates(at) {
		return 0
	}
	return p.noise(at) * 0.8 * (0.8*deviation + 0.6*counters)
}

// WithCounters adds the acceptance length to what the server reports. The problem
// must be of the server family.
func (p *Problem) WithCounters() *Problem {
	counted := *p
	counted.Factors = []search.Factor{{Name: AcceptanceLength, Knobs: p.knobsNamed(isSpeculative), Power: 1}}
	return &counted
}

// knobsNamed lists the ids of the knobs that match.
func (p *Problem) knobsNamed(match func(id string) bool) []string {
	var ids []string
	for i := range p.knobs {
		if match(p.knobs[i].ID) {
			ids = append(ids, p.knobs[i].ID)
		}
	}
	return ids
}
