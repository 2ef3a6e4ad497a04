package search

import (
	"fmt"
	"math/bits"
)

// maxLevels bounds the levels of one knob: more are never told apart by the
// few dozen trials of a campaign.
const maxLevels = 4096

// Choices returns text levels.
func Choices(texts ...string) []Value {
	levels := make([]Value, len(texts))
	for i, text := range texts {
		levels[i] = Text(text)
	}
	return levels
}

// Range returns the integers lo, lo+step, ... that do not exceed hi.
func Range(lo, hi, step int64) ([]Value, error) {
	switch {
	case step <= 0:
		return nil, fmt.Errorf("range %d to %d: step %d, want a step above 0", lo, hi, step)
	case lo > hi:
		return nil, fmt.Errorf("range %d to %d is reversed: write [%d, %d]", lo, hi, hi, lo)
	}
	// The difference of two int64 always fits a uint64.
	count := (uint64(hi) - uint64(lo)) / uint64(step)
	if count >= maxLevels {
		return nil, fmt.Errorf("range %d to %d by %d has more than %d levels: use a larger step, or powers of two", lo, hi, step, maxLevels)
	}
	levels := make([]Value, count+1)
	for i := range levels {
		levels[i] = Int(lo + int64(i)*step)
	}
	return levels, nil
}

// PowersOfTwo returns the powers of two from lo to hi, both included.
func PowersOfTwo(lo, hi int64) ([]Value, error) {
	if lo > hi {
		return nil, fmt.Errorf("powers of two from %d to %d: the range is reversed: write [%d, %d]", lo, hi, hi, lo)
	}
	var levels []Value
	for exponent := range 63 {
		if power := int64(1) << exponent; power >= lo && power <= hi {
			levels = append(levels, Int(power))
		}
	}
	if len(levels) == 0 {
		return nil, fmt.Errorf("there is no power of two from %d to %d", lo, hi)
	}
	return levels, nil
}

// WithUnset puts Unset before the levels: the knob may also be absent.
func WithUnset(levels []Value) []Value {
	return append([]Value{Unset}, levels...)
}

// SwitchKnob returns a knob that is absent (the default) or present.
func SwitchKnob(id string) Knob {
	return Knob{ID: id, Kind: Switch, Levels: []Value{Unset, Bool(true)}, Default: Unset}
}

// GroupKnob returns a knob whose levels are names of bundles of settings.
func GroupKnob(id, defaultName string, names ...string) Knob {
	return Knob{ID: id, Kind: Group, Levels: Choices(names...), Default: Text(defaultName)}
}

// ordered reports whether neighbouring levels are expected to behave alike.
func (k *Knob) ordered() bool {
	switch k.Kind {
	case Ordinal, Integer, Log2:
		return true
	}
	return false
}

// validate checks the levels of one knob against its kind.
func (k *Knob) validate() error {
	fault := func(format string, args ...any) error {
		return &KnobError{Knob: k.ID, Reason: fmt.Sprintf(format, args...)}
	}
	if len(k.Levels) == 0 {
		return fault("has no levels, want at least one")
	}
	if len(k.Levels) > maxLevels {
		return fault("has %d levels, at most %d are allowed", len(k.Levels), maxLevels)
	}
	seen := make(map[Value]bool, len(k.Levels))
	for i, level := range k.Levels {
		if seen[level] {
			return fault("level %s is listed twice", level.literal())
		}
		seen[level] = true
		if level.IsUnset() && k.ordered() && i > 0 {
			return fault("unset must be the first level of an ordered knob, it is number %d", i+1)
		}
	}
	if !seen[k.Default] {
		return fault("default %s is not one of its levels %s", k.Default.literal(), literals(k.Levels))
	}
	return k.validateKind(fault)
}

func (k *Knob) validateKind(fault func(string, ...any) error) error {
	switch k.Kind {
	case Categorical, Ordinal:
		return nil
	case Group:
		for _, level := range k.Levels {
			if level.kind != kindText && !level.IsUnset() {
				return fault("level %s of a group is not a name", level.literal())
			}
		}
		return nil
	case Switch:
		for _, level := range k.Levels {
			if level.kind != kindBool && !level.IsUnset() {
				return fault("level %s of a switch is neither unset nor a boolean", level.literal())
			}
		}
		return nil
	case Integer, Log2:
		return k.validateNumbers(fault)
	}
	return fault("kind %q is unknown, want categorical, ordinal, integer, log2, switch or group", k.Kind)
}

func (k *Knob) validateNumbers(fault func(string, ...any) error) error {
	levels := k.Levels
	if levels[0].IsUnset() {
		levels = levels[1:]
	}
	for i, level := range levels {
		whole, ok := level.Integer()
		if !ok {
			return fault("level %s is not an integer", level.literal())
		}
		if k.Kind == Log2 && (whole <= 0 || bits.OnesCount64(uint64(whole)) != 1) {
			return fault("level %d is not a power of two", whole)
		}
		if i > 0 && levels[i-1].whole >= whole {
			return fault("levels must ascend, %d follows %d", whole, levels[i-1].whole)
		}
	}
	return nil
}
