package spec

import (
	"fmt"
	"slices"

	"nocturne/runners/servers"
	"nocturne/search"
)

// Ids of the knobs of speculation.
const (
	idSteps       = "speculative.steps"
	idTopK        = "speculative.topk"
	idDraftTokens = "speculative.draft_tokens"
)

// speculation is what a campaign says of speculative decoding beside its
// knobs.
type speculation struct {
	Method     string `json:"method"`
	DraftModel string `json:"draft_model"`
}

// speculativeKnobs adds the knobs of speculation. Zero steps is off, always in
// the space, and the default; nothing else of speculation matters there.
func (r *resolver) speculativeKnobs() {
	file := r.file.Space.Speculative
	if file == nil {
		return
	}
	if file.Method == "" {
		r.fault(file.Begin, "speculative: method is missing")
	}
	if file.Steps == nil {
		r.fault(file.Begin, "speculative: steps is missing; write steps: {int: [0, 10]}")
		return
	}
	r.speculation = &speculation{Method: file.Method, DraftModel: r.expand(Scalar{Text: file.DraftModel, Position: file.At["draft_model"]})}
	steps := r.numberLevels(idSteps, *file.Steps, 0)
	if !slices.Contains(steps, search.Int(0)) {
		steps = append([]search.Value{search.Int(0)}, steps...)
	}
	r.addKnob(search.Knob{ID: idSteps, Kind: search.Ordinal, Levels: steps, Default: search.Int(0)}, binding{kind: bindSpeculative, name: idSteps, at: file.Steps.Position})
	on := search.Condition{Knob: idSteps, In: []search.Value{search.Int(0)}, Not: true}
	r.speculativeKnob(idTopK, file.TopK, on, 1)
	r.speculativeKnob(idDraftTokens, file.DraftTokens, on, 2)
	r.checkSpeculation(steps)
}

// speculativeKnob adds topk or draft_tokens when the file gives levels. auto,
// or nothing, leaves the choice to the server kind.
func (r *resolver) speculativeKnob(id string, file *levelList, on search.Condition, least int64) {
	if file == nil || file.Auto {
		return
	}
	levels := r.numberLevels(id, *file, least)
	if len(levels) == 0 {
		return
	}
	r.addKnob(search.Knob{ID: id, Kind: search.Ordinal, Levels: levels, Default: levels[0], When: on}, binding{kind: bindSpeculative, name: id, at: file.Position})
}

// numberLevels reads levels that must be whole numbers from least on.
func (r *resolver) numberLevels(id string, file levelList, least int64) []search.Value {
	var levels []search.Value
	switch {
	case file.One != nil:
		if value, ok := r.value(id, typing{}, *file.One); ok {
			levels = []search.Value{value}
		}
	case file.Knob != nil:
		declared := *file.Knob
		if declared.Default != nil {
			r.fault(declared.Default.Position, "%s: the default cannot be declared: speculation is off in the baseline", id)
		}
		if len(declared.When.Entries) > 0 || declared.Switch != nil {
			r.fault(declared.Begin, "%s takes choices, int or log2", id)
		}
		levels = r.knob(id, typing{}, fileKnob{Choices: declared.Choices, Int: declared.Int, Step: declared.Step, Log2: declared.Log2}, declared.Begin).Levels
		levels = slices.DeleteFunc(levels, search.Value.IsUnset)
	default:
		r.fault(file.Position, "%s: want a number, {int: [low, high]} or {choices: [...]}", id)
	}
	for _, level := range levels {
		if number, whole := level.Integer(); !whole || number < least {
			r.fault(file.Position, "%s: %s: want whole numbers from %d", id, level, least)
			return nil
		}
	}
	slices.SortFunc(levels, func(a, b search.Value) int {
		x, _ := a.Integer()
		y, _ := b.Integer()
		return int(x - y)
	})
	return levels
}

// checkSpeculation renders each step count once, so that what the server kind
// cannot do is told before anything is started.
func (r *resolver) checkSpeculation(steps []search.Value) {
	file := r.file.Space.Speculative
	told := map[string]bool{}
	for _, level := range steps {
		number, _ := level.Integer()
		_, err := servers.RenderSpeculation(r.file.Server.Kind, servers.Speculation{
			Method: file.Method, DraftModel: r.speculation.DraftModel, Steps: int(number), TopK: 1,
		})
		if err != nil && !told[err.Error()] {
			told[err.Error()] = true
			r.fault(file.Begin, "%v", err)
		}
	}
}

// render returns the arguments for a configuration's speculation.
func (s *speculation) render(kind string, values search.Values) ([]string, error) {
	number := func(id string) int {
		value, _ := values[id].Integer()
		return int(value)
	}
	asked := servers.Speculation{Method: s.Method, DraftModel: s.DraftModel, Steps: number(idSteps), TopK: number(idTopK), DraftTokens: number(idDraftTokens)}
	if asked.TopK == 0 && asked.Steps > 0 {
		asked.TopK = 1
	}
	args, err := servers.RenderSpeculation(kind, asked)
	if err != nil {
		return nil, fmt.Errorf("%s=%d: %w", idSteps, asked.Steps, err)
	}
	return args, nil
}
