package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"nocturne/runners"
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
	if file == nil || !file.Where.read() {
		return
	}
	for _, key := range []string{"method", "steps"} {
		if !file.Where.has(key) {
			r.fault(file.Where.Begin, "speculative: %s is missing; write it like method: eagle3 and steps: {int: [0, 10]}", key)
		}
	}
	r.speculation = &speculation{Method: r.label(file.Method), DraftModel: r.argument(file.DraftModel)}
	if file.Steps == nil {
		return
	}
	steps := r.speculativeLevels(idSteps, *file.Steps, 0)
	if len(steps) > 0 && !slices.Contains(steps, search.Int(0)) {
		steps = append([]search.Value{search.Int(0)}, steps...)
	}
	if len(steps) == 1 {
		r.fault(file.Steps.Position, "%s: 0 is off, and there is no other value; remove speculative, or add steps", idSteps)
	}
	r.addSpeculative(idSteps, steps, search.Condition{}, file.Steps.Position)
	on := search.Condition{Knob: idSteps, In: []search.Value{search.Int(0)}, Not: true}
	trees := r.topK(file.TopK, on)
	r.draftTokens(file.DraftTokens, on, trees)
	known := !r.faulty[idSteps] && !r.faulty[idTopK] && !r.faulty[idDraftTokens]
	if known && r.launch.kind != "" && file.Method != nil {
		r.checkSpeculation()
	}
}

func (r *resolver) addSpeculative(id string, levels []search.Value, when search.Condition, at Position) {
	if r.faulty[when.Knob] {
		when = search.Condition{}
	}
	knob := search.Knob{ID: id, Kind: search.Ordinal, Levels: levels, When: when}
	if len(levels) > 0 {
		knob.Default = levels[0]
	}
	r.addKnob(knob, binding{kind: bindSpeculative, name: id, at: at})
}

// topK adds the knob of the branches, and reports whether trees can be chosen
// over chains.
func (r *resolver) topK(file *levelList, on search.Condition) (trees bool) {
	if file == nil {
		return false
	}
	if file.Auto {
		r.fault(file.Position, "%s: auto is not known here; want a number, or levels such as {choices: [1, 4]}", idTopK)
		return true
	}
	levels := r.speculativeLevels(idTopK, *file, 1)
	r.addSpeculative(idTopK, levels, on, file.Position)
	return slices.ContainsFunc(levels, func(level search.Value) bool { return level != search.Int(1) }) || len(levels) == 0
}

// draftTokens adds the knob of the tokens verified at once. A chain verifies
// steps + 1 whatever is asked for, so it matters for trees only.
func (r *resolver) draftTokens(file *levelList, on search.Condition, trees bool) {
	if file == nil || file.Auto {
		return
	}
	if !trees {
		r.fault(file.Position, "%s: with topk 1 the server verifies steps + 1 tokens, whatever is asked for; write draft_tokens: auto", idDraftTokens)
	}
	levels := r.speculativeLevels(idDraftTokens, *file, 2)
	chains := search.Condition{Knob: idTopK, In: []search.Value{search.Int(1)}, Not: true}
	if i := slices.IndexFunc(r.knobs, func(k search.Knob) bool { return k.ID == idTopK }); i >= 0 && slices.Contains(r.knobs[i].Levels, search.Int(1)) {
		on = chains
	}
	r.addSpeculative(idDraftTokens, levels, on, file.Position)
}

// speculativeLevels reads levels that must be whole numbers from least on.
func (r *resolver) speculativeLevels(id string, file levelList, least int64) []search.Value {
	var levels []search.Value
	switch {
	case file.One != nil:
		if value, ok := r.value(typing{name: id}, *file.One); ok {
			levels = []search.Value{value}
		}
	case file.Knob != nil:
		levels = r.declaredLevels(id, *file.Knob)
	case file.Auto:
		r.fault(file.Position, "%s: auto is not known here; want a number, {int: [low, high]} or {choices: [...]}", id)
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
		return cmp.Compare(x, y)
	})
	return levels
}

func (r *resolver) declaredLevels(id string, declared fileKnob) []search.Value {
	if declared.Default != nil {
		r.fault(declared.Default.Position, "%s: a default cannot be declared: speculation is off in the baseline", id)
	}
	for _, key := range []string{"when", "switch", "unsafe"} {
		if declared.Where.has(key) {
			r.fault(declared.Where.of(key), "%s takes choices, int or log2, and no %s", id, key)
		}
	}
	declared.Default, declared.When = nil, section[oneOrMore]{}
	knob, _ := r.knob(id, typing{name: id}, declared, declared.Where.Begin)
	return slices.DeleteFunc(knob.Levels, search.Value.IsUnset)
}

// checkSpeculation renders every combination, so that what the server kind
// cannot do is told before anything is started.
func (r *resolver) checkSpeculation() {
	where := r.file.Space.Speculative.Where
	if r.launch.kind == KindCommand {
		r.fault(where.Begin, "speculative: kind command has no server that could speculate; write its arguments as flags or groups")
		return
	}
	told := map[string]bool{}
	at := where.of("method")
	for values := range r.combinations(idSteps, idTopK, idDraftTokens) {
		args, err := r.speculation.render(r.launch.kind, servers.Version{}, values)
		switch {
		case err != nil && !told[errors.Unwrap(err).Error()]:
			told[errors.Unwrap(err).Error()] = true
			r.fault(at, "%v", err)
		case len(args) > 0:
			at = where.of("steps") // the method works, so the numbers are at fault
		}
		for _, arg := range args {
			if flag := flagOf(arg); flag != "" && flag != "--set" {
				r.claimFlag(flag, claim{owner: "space.speculative", at: where.Begin})
			}
		}
		if len(told) == mostSpeculationFaults {
			return
		}
	}
}

// mostSpeculationFaults bounds what is told: a method that does not work fails
// for each number of steps.
const mostSpeculationFaults = 3

// combinations yields the values of some knobs that the constraints of the file
// allow; constraints that speak of other knobs are not looked at.
func (r *resolver) combinations(ids ...string) func(yield func(search.Values) bool) {
	var constraints []string
	for _, written := range r.file.Space.Constraints {
		constraints = append(constraints, written.Text)
	}
	return combinationsOf(r.knobs, constraints, ids...)
}

// combinationsOf is the same for knobs and constraints at hand.
func combinationsOf(all []search.Knob, written []string, ids ...string) func(yield func(search.Values) bool) {
	var knobs []search.Knob
	for _, knob := range all {
		if slices.Contains(ids, knob.ID) {
			knobs = append(knobs, knob)
		}
	}
	var constraints []search.Constraint
	for _, text := range written {
		if constraint, err := search.ParseConstraint(text, knobs); err == nil {
			constraints = append(constraints, constraint)
		}
	}
	space, err := search.NewSpace(knobs, constraints, nil)
	if err != nil {
		return func(func(search.Values) bool) {}
	}
	return space.Enumerate()
}

// forcedLimits are the arguments that keep speculation from moving an admission
// limit which the file leaves to the server: with one arm under 48 requests and the
// other under what the cache holds, a comparison would measure the limit.
func (r *resolver) forcedLimits(workload runners.Workload) []string {
	kind := r.serverKind()
	if kind == nil || r.speculation == nil {
		return nil
	}
	given := slices.Concat(r.launch.args, slices.Collect(maps.Keys(r.claims.flags)))
	widest := 0
	for _, point := range workload.Points {
		widest = max(widest, point.Concurrency)
	}
	return kind.ForceLimits(given, widest)
}

// render returns the arguments for a configuration's speculation, as a version of
// the kind takes them.
func (s *speculation) render(kind string, version servers.Version, values search.Values) ([]string, error) {
	number := func(id string) int {
		value, _ := values[id].Integer()
		return int(value)
	}
	asked := servers.Speculation{Method: s.Method, DraftModel: s.DraftModel, Steps: number(idSteps), TopK: number(idTopK), DraftTokens: number(idDraftTokens)}
	if asked.TopK == 0 && asked.Steps > 0 {
		asked.TopK = 1
	}
	server, err := servers.Get(kind)
	if err != nil {
		return nil, err
	}
	server, _ = server.At(version)
	args, err := server.Render(asked)
	if err != nil {
		return nil, fmt.Errorf("%s=%d, %s=%d: %w", idSteps, asked.Steps, idTopK, asked.TopK, err)
	}
	return args, nil
}
