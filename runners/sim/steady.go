package sim

import "time"

// The fault "steady" replaces the model's times by fixed ones.

func (p *performance) steady() (steady, bool) {
	text, on := p.options.faults[faultSteady]
	if !on {
		return steady{}, false
	}
	s, err := parseSteady(text)
	return s, err == nil
}

func (p *performance) steadyTokens() (int, bool) {
	s, on := p.steady()
	return s.tokens, on
}

func (p *performance) steadyStep() (float64, bool) {
	s, on := p.steady()
	return toMilliseconds(s.gap), on
}

func (p *performance) steadyFirst() (float64, bool) {
	s, on := p.steady()
	return toMilliseconds(s.first), on
}

func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
