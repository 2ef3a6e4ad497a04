package spec

import (
	"encoding/json"
	"regexp"
	"slices"

	"nocturne/search"
)

// speculationWord finds the words by which servers name the settings of
// speculative decoding: --speculative-num-steps of SGLang, --speculative-config
// of vLLM, speculative_config.* of TensorRT-LLM, --draft-max and --spec-type of
// llama.cpp.
var speculationWord = regexp.MustCompile(`(?i)(^|[^a-z])(spec|speculation|speculative|draft)([^a-z]|$)`)

// SpeculationKnobs lists the ids of the knobs that say how the server speculates:
// those of `space.speculative`, and variables, flags and bundles that are named
// so. The acceptance of drafted tokens depends on them and on nothing else that
// is tuned.
func (c *Campaign) SpeculationKnobs() []string {
	var ids []string
	for _, knob := range c.launch.knobs {
		if c.launch.bindings[knob.ID].speculates() {
			ids = append(ids, knob.ID)
		}
	}
	return ids
}

func (b binding) speculates() bool {
	if b.kind == bindSpeculative || speculationWord.MatchString(b.name) {
		return true
	}
	for _, choice := range b.bundles {
		if slices.ContainsFunc(choice.Args, speculationWord.MatchString) {
			return true
		}
		for name := range choice.Env {
			if speculationWord.MatchString(name) {
				return true
			}
		}
	}
	return false
}

// IdleSpeculation reports whether a configuration decodes without speculation, as
// far as `space.speculative` tells: each step of the model then yields one token.
func (c *Campaign) IdleSpeculation(values search.Values) bool {
	steps, active := values[idSteps]
	return c.launch.speculation != nil && active && steps == search.Int(0)
}

// SpeculationMethod is the method of `space.speculative`; empty without one.
func (c *Campaign) SpeculationMethod() string {
	if c.launch.speculation == nil {
		return ""
	}
	return c.launch.speculation.Method
}

// FixedEnvironment is what all launches of the campaign have in common of their
// environment.
func (c *Campaign) FixedEnvironment() map[string]string { return c.launch.env }

// FixedEnvironment is that of a stored campaign; nil where it cannot be read.
func FixedEnvironment(resolved Resolved) map[string]string {
	var fixed struct {
		Server struct {
			Env map[string]string `json:"env"`
		} `json:"server"`
	}
	if json.Unmarshal(resolved.Fixed, &fixed) != nil {
		return nil
	}
	return fixed.Server.Env
}
