package knowledge

import (
	"encoding/json"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/spec"
)

// translation reads configurations of one campaign as configurations of another.
type translation struct {
	space *search.Space
	// here and there are the fixed environments of both.
	here, there map[string]string
	// baseline is where the other campaign's knobs are at their defaults.
	baseline search.Values
}

// newTranslation reads an earlier campaign's configurations for a campaign.
// trials are those of the earlier one.
func newTranslation(campaign *spec.Campaign, earlier store.Campaign, trials []store.Trial) translation {
	t := translation{space: campaign.Space, here: campaign.FixedEnvironment()}
	var resolved spec.Resolved
	if json.Unmarshal(earlier.Spec, &resolved) == nil {
		t.there = spec.FixedEnvironment(resolved)
	}
	for i := range trials {
		if trials[i].Role == store.RoleBaseline {
			t.baseline = trials[i].Configuration.Values
			break
		}
	}
	return t
}

// values maps a configuration by the ids of the knobs. It is false when the
// configuration is none of this space: when a knob has a value that is no level
// here, or when a knob that is none here has another value than all launches of
// this campaign (as far as its fixed environment tells) or the other campaign's
// baseline have. A variable that was fixed there and is a knob here counts with
// its value.
func (t *translation) values(theirs search.Values) (search.Values, bool) {
	ours := make(search.Values, len(theirs))
	for id, value := range theirs {
		knob, known := t.space.Knob(id)
		switch {
		case known:
			level, legal := levelOf(knob, value)
			if !legal {
				return nil, false
			}
			ours[id] = level
		case !t.same(id, value):
			return nil, false
		}
	}
	for id, text := range t.there {
		knob, known := t.space.Knob(id)
		if _, set := ours[id]; !known || set {
			continue
		}
		level, legal := levelOf(knob, search.Text(text))
		if !legal {
			return nil, false
		}
		ours[id] = level
	}
	whole, err := t.space.Complete(ours)
	return whole, err == nil
}

// same reports whether a knob of theirs that is none of ours stands at what this
// campaign launches with, or changed nothing for them.
func (t *translation) same(id string, value search.Value) bool {
	if fixed, set := t.here[id]; set {
		return fixed == value.String()
	}
	usual, known := t.baseline[id]
	return value.IsUnset() || known && usual == value
}

// levelOf finds a value among the levels of a knob, also when one file has it as
// a text and the other as a number.
func levelOf(knob search.Knob, value search.Value) (search.Value, bool) {
	for _, level := range knob.Levels {
		if level == value || level.IsUnset() == value.IsUnset() && level.String() == value.String() {
			return level, true
		}
	}
	return search.Unset, false
}
