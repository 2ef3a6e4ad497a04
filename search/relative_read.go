package search

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"github.com/c-bata/goptuna"
)

// ReadStudy reads a study of goptuna as what a sampler may know: complete and pruned
// trials are measured (a pruned one by its last intermediate value), failed ones are
// the configuration's fault, running and waiting ones are pending. Trials that ended
// or wait before they suggested anything say nothing and are left out.
func ReadStudy(study *goptuna.Study, space *Space) (Request, error) {
	r := reader{space: space, parameters: space.choiceParameters()}
	return r.request(study, noTrial)
}

// noTrial is no number of a trial.
const noTrial = -1

// reader reads the trials of a study.
type reader struct {
	space      *Space
	parameters []parameter
}

// request reads a study, the trial that is asked for left out.
func (r *reader) request(study *goptuna.Study, asking int) (Request, error) {
	request := Request{Space: r.space, Minimize: study.Direction() != goptuna.StudyDirectionMaximize}
	trials, err := study.GetTrials()
	if err != nil && err != goptuna.ErrTrialsPartiallyDeleted { //nolint:errorlint // goptuna returns it as it is
		return Request{}, err
	}
	for i := range trials {
		if trials[i].ID == asking {
			continue
		}
		values, known, err := r.valuesOf(study, &trials[i])
		if err != nil {
			return Request{}, err
		}
		if !known {
			continue
		}
		observation, ended := observationOf(&trials[i], values)
		if ended {
			request.History = append(request.History, observation)
		} else {
			request.Pending = append(request.Pending, values)
		}
	}
	return request, nil
}

// observationOf reads a trial that has ended with a value or a failure. A pruned
// trial without any value counts as still pending: nothing is known of it, and it
// need not be proposed again.
func observationOf(trial *goptuna.FrozenTrial, values Values) (Observation, bool) {
	o := Observation{Trial: trial.Number, Values: values, Value: trial.Value}
	switch trial.State {
	case goptuna.TrialStateComplete:
		return o, true
	case goptuna.TrialStateFail:
		o.Outcome = Infeasible
		return o, true
	case goptuna.TrialStatePruned:
		o.Outcome = Pruned
		step, reported := trial.GetLatestStep()
		if reported {
			o.Value = trial.IntermediateValues[step]
		}
		return o, reported || trial.Value != 0
	}
	return Observation{}, false
}

// valuesOf reads a trial's configuration; known is false when it has none, because
// it failed or waits before the first suggestion.
func (r *reader) valuesOf(study *goptuna.Study, trial *goptuna.FrozenTrial) (values Values, known bool, err error) {
	values = make(Values, len(r.parameters))
	if trial.State.IsFinished() && r.read(trial, values) {
		return values, true, nil
	}
	attributes, err := study.Storage.GetTrialSystemAttrs(trial.ID)
	if err != nil {
		return nil, false, err
	}
	for _, name := range []string{proposalAttribute, fixedAttribute} {
		if record, ok := attributes[name]; ok {
			proposed, err := r.parse(record)
			if err != nil {
				return nil, false, fmt.Errorf("trial %d, attribute %s: %w", trial.Number, name, err)
			}
			maps.Copy(proposed, values)
			return proposed, true, nil
		}
	}
	if !trial.State.IsFinished() {
		r.readRunning(study, trial.ID, values)
	}
	return values, len(values) > 0, nil
}

// readRunning takes over what a trial has suggested so far. Its maps belong to the
// goroutine that runs it, so the storage is asked, which has a lock.
func (r *reader) readRunning(study *goptuna.Study, id int, values Values) {
	for i := range r.parameters {
		internal, err := study.Storage.GetTrialParam(id, r.parameters[i].id)
		if err != nil {
			continue // not suggested yet: goptuna has no error of its own for that
		}
		if level, err := r.level(i, internal); err == nil {
			values[r.parameters[i].id] = level
		}
	}
}

// read takes the parameters of a finished trial over and reports whether they are
// a whole configuration.
func (r *reader) read(trial *goptuna.FrozenTrial, values Values) bool {
	for i := range r.parameters {
		if external, ok := trial.Params[r.parameters[i].id]; ok {
			values[r.parameters[i].id] = r.value(i, external)
		}
	}
	p, err := r.space.pointOf(values)
	if err != nil {
		return true // of another space: all there is to know
	}
	for i, level := range p {
		_, given := values[r.parameters[i].id]
		if level != inactive && !given && r.parameters[i].asked() {
			return false
		}
	}
	return len(values) > 0
}

// value reads what goptuna shows of a parameter. Its categories are the choices;
// other types come from trials that the objective suggested in another way.
func (r *reader) value(i int, external any) Value {
	switch x := external.(type) {
	case string:
		for level, choice := range r.parameters[i].choices {
			if choice == x {
				return r.space.knobs[i].Levels[level]
			}
		}
		return Text(x)
	case int:
		return Int(int64(x))
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return Float(x)
		}
	}
	return Text(fmt.Sprint(external))
}

// parse reads internal parameters as goptuna and this package record them, and
// completes them with the defaults.
func (r *reader) parse(record string) (Values, error) {
	var params map[string]float64
	if err := json.Unmarshal([]byte(record), &params); err != nil {
		return nil, err
	}
	partial := make(Values, len(params))
	for id, internal := range params {
		i, ok := r.space.index[id]
		if !ok {
			return nil, &UnknownKnobError{Knob: id, Nearest: nearestName(id, r.space.ids())}
		}
		var err error
		if partial[id], err = r.level(i, internal); err != nil {
			return nil, err
		}
	}
	return r.space.Complete(partial)
}

// level is the level at an internal position.
func (r *reader) level(i int, internal float64) (Value, error) {
	knob := &r.space.knobs[i]
	if internal != math.Trunc(internal) || internal < 0 || internal >= float64(len(knob.Levels)) {
		return Value{}, &KnobError{Knob: knob.ID, Reason: fmt.Sprintf("parameter %g is not the position of one of its %d levels", internal, len(knob.Levels))}
	}
	return knob.Levels[int(internal)], nil
}
