package spec

import (
	"errors"
	"fmt"
	"strings"

	"nocturne/search"
)

// ParseSettings reads K=V pairs, as a command line gives them, as a
// configuration: knobs that are not named take their defaults. A value is given
// as it is shown, or as the campaign file would have it. All faults come at once.
func (c *Campaign) ParseSettings(pairs []string) (search.Values, error) {
	r := &resolver{collector: collector{file: "--set"}, bindings: c.launch.bindings, knobs: c.launch.knobs, space: c.Space}
	partial := search.Values{}
	for i, pair := range pairs {
		id, text, ok := strings.Cut(pair, "=")
		at := Position{i + 1, 1}
		if !ok {
			r.fault(at, "%q: want KNOB=VALUE", pair)
			continue
		}
		if strings.HasPrefix(id, "-") {
			id = FlagID(id)
		}
		knob, known := c.Space.Knob(id)
		if !known {
			r.fault(at, "%q is not a knob of this space: %s", id, suggestion(id, r.knobIDs()))
			continue
		}
		if value, ok := levelNamed(knob, text); ok {
			partial[id] = value
		} else if value, ok := r.knobValue(knob, Scalar{Text: text, Position: at}); ok {
			partial[id] = value
		}
	}
	if len(r.faults) > 0 {
		messages := make([]error, len(r.faults))
		for i, fault := range r.faults {
			messages[i] = fmt.Errorf("--set: %s", fault.Message)
		}
		return nil, errors.Join(messages...)
	}
	values, err := c.Space.Complete(partial)
	if err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	if err := c.Space.Check(values); err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	return values, nil
}

func levelNamed(knob search.Knob, text string) (search.Value, bool) {
	for _, level := range knob.Levels {
		if level.String() == text {
			return level, true
		}
	}
	return search.Unset, false
}
