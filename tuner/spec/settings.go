package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"nocturne/search"
)

// ParseSettings reads K=V pairs, as a command line gives them, as a
// configuration: knobs that are not named take their defaults. A value is given
// as it is shown, or as the campaign file would have it. All faults come at once.
func (c *Campaign) ParseSettings(pairs []string) (search.Values, error) {
	r := &resolver{
		collector: collector{name: "--set"}, bindings: c.launch.bindings, knobs: c.launch.knobs, space: c.Space,
		launch: launchTemplate{kind: c.launch.kind},
	}
	partial := search.Values{}
	for i, pair := range pairs {
		id, value, ok := r.argumentSetting(pair, Position{i + 1, 1})
		if _, twice := partial[id]; twice && ok {
			r.fault(Position{i + 1, 1}, "%s is given twice; a configuration has one value of each knob", id)
		}
		if ok {
			partial[id] = value
		}
	}
	if len(r.faults) > 0 {
		messages := make([]error, len(r.faults))
		for i, fault := range r.faults {
			messages[i] = fmt.Errorf("--set %s: %s", pairs[fault.Line-1], fault.Message)
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

func (r *resolver) argumentSetting(pair string, at Position) (id string, value search.Value, ok bool) {
	id, text, pairs := strings.Cut(pair, "=")
	if !pairs {
		r.fault(at, "want KNOB=VALUE, such as NCCL_PROTO=LL")
		return id, value, false
	}
	if strings.HasPrefix(id, "-") {
		id = FlagID(id)
	}
	knob, known := r.space.Knob(id)
	if !known {
		r.fault(at, "%s is not a knob of this space: %s", id, suggestion(id, r.knobIDs()))
		return id, value, false
	}
	// A level as it is shown; so off is the text where a level is that text.
	if i := slices.IndexFunc(knob.Levels, func(level search.Value) bool { return level.String() == text }); i >= 0 {
		return id, knob.Levels[i], true
	}
	value, ok = r.knobValue("value", "", knob, scalar{Text: text, Position: at})
	return id, value, ok
}
