package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/c-bata/goptuna"
)

// Distributions declares the space to goptuna, for
// goptuna.StudyOptionDefineSearchSpace: every knob with more than one level is a
// categorical over its levels, in their order, as text. Two levels of a knob that
// would read alike (the text "4" and the number 4) are written as literals.
//
// A study with a relative sampler needs the declaration: without it goptuna infers
// the space from the completed trials, panics at the second one when there is a
// categorical, and removes what it does not like from the first one's record.
func Distributions(space *Space) map[string]any {
	return declared(space.choiceParameters())
}

// Suggest makes the Suggest calls of a goptuna trial for the knobs of the space
// that matter, parents first, and returns the configuration. Knobs with a single
// level are constants and not asked for.
func Suggest(trial *goptuna.Trial, space *Space) (Values, error) {
	p, err := suggestPoint(trial, space, space.choiceParameters())
	if err != nil {
		return nil, err
	}
	return space.values(p), nil
}

// SamplerError says that a sampler failed inside goptuna.
type SamplerError struct {
	Sampler string // name of the sampler
	Err     error
	Stack   []byte // where it panicked; nil when it returned an error
}

func (e *SamplerError) Error() string {
	return fmt.Sprintf("goptuna with sampler %s: %v", e.Sampler, e.Err)
}

func (e *SamplerError) Unwrap() error { return e.Err }

// NewStudy writes a request's history, and what is pending, into a study of goptuna
// in memory: measured trials are complete, pruned ones have their value as the
// intermediate value of step 1, those that are the configuration's fault or whose
// value is not finite have failed, pending ones are running. Trials that do not fit
// the space are left out. The space is declared, nothing is logged, and Suggest
// fails unless the options give the study a sampler.
//
// goptuna's storage in memory is one study (a second one on it sees the first's
// trials): do not give it to another.
func NewStudy(ctx context.Context, request Request, options ...goptuna.StudyOption) (*goptuna.Study, error) {
	made, err := newRequestStudy(ctx, "study", &request, request.Space.choiceParameters(), options...)
	if err != nil {
		return nil, err
	}
	return made.Study, nil
}

func newRequestStudy(ctx context.Context, sampler string, request *Request, parameters []parameter, options ...goptuna.StudyOption) (*study, error) {
	direction := goptuna.StudyDirectionMaximize
	if request.Minimize {
		direction = goptuna.StudyDirectionMinimize
	}
	options = append([]goptuna.StudyOption{goptuna.StudyOptionDirection(direction)}, options...)
	made, err := newStudy(ctx, sampler, request.Space, parameters, options...)
	if err != nil {
		return nil, err
	}
	return made, made.tell(toldRequest(request)...)
}

// parameter is how goptuna sees a knob. Its integer types are not used: their
// samplers miss the top of the range, ignore steps, or leave the range.
type parameter struct {
	id     string
	levels int
	// choices are the levels of a categorical parameter. Without them the
	// parameter is a number from 0 to 1 of which each level has an equal share, so
	// that the first and the last are as near as any.
	choices []string
	// externals are the levels as goptuna shows them to people.
	externals []any
	// always is set for samplers that need a value where the knob does not matter.
	always bool
}

// newParameter gives a knob to goptuna, as a categorical or as a number.
func newParameter(knob *Knob, categorical bool) parameter {
	p := parameter{id: knob.ID, levels: len(knob.Levels), externals: make([]any, len(knob.Levels))}
	if categorical {
		p.choices = knob.choices()
	}
	for level := range p.externals {
		if p.externals[level] = p.internal(level); categorical {
			p.externals[level] = p.choices[level]
		}
	}
	return p
}

// asked reports whether goptuna is asked for the parameter at all: a constant would
// be a dimension that does nothing, and as a range of one value makes its samplers
// fail or hang.
func (p *parameter) asked() bool { return p.levels > 1 }

func (p *parameter) distribution() any {
	if p.choices == nil {
		return goptuna.UniformDistribution{Low: 0, High: 1}
	}
	return goptuna.CategoricalDistribution{Choices: p.choices}
}

// internal is a level in goptuna's internal representation.
func (p *parameter) internal(level int) float64 {
	if p.choices == nil {
		return (float64(level) + 0.5) / float64(p.levels)
	}
	return float64(level)
}

// suggest asks for a level.
func (p *parameter) suggest(trial *goptuna.Trial) (int, error) {
	if p.choices != nil {
		choice, err := trial.SuggestCategorical(p.id, p.choices)
		if err != nil {
			return 0, fmt.Errorf("suggestion for %s: %w", p.id, err)
		}
		return slices.Index(p.choices, choice), nil
	}
	x, err := trial.SuggestFloat(p.id, 0, 1)
	if err != nil {
		return 0, fmt.Errorf("suggestion for %s: %w", p.id, err)
	}
	if math.IsNaN(x) {
		return 0, fmt.Errorf("suggestion for %s is not a number", p.id)
	}
	return min(p.levels-1, max(0, int(math.Floor(x*float64(p.levels))))), nil
}

// choiceParameters gives every knob as a categorical.
func (s *Space) choiceParameters() []parameter {
	parameters := make([]parameter, len(s.knobs))
	for i := range parameters {
		parameters[i] = newParameter(&s.knobs[i], true)
	}
	return parameters
}

// choices names the levels of a knob, each by another text.
func (k *Knob) choices() []string {
	names := make([]string, len(k.Levels))
	distinct := make(map[string]bool, len(k.Levels))
	for i, level := range k.Levels {
		names[i] = level.String()
		distinct[names[i]] = true
	}
	if len(distinct) < len(names) {
		for i, level := range k.Levels {
			names[i] = level.literal()
		}
	}
	return names
}

func declared(parameters []parameter) map[string]any {
	distributions := make(map[string]any, len(parameters))
	for i := range parameters {
		if parameters[i].asked() {
			distributions[parameters[i].id] = parameters[i].distribution()
		}
	}
	return distributions
}

func suggestPoint(trial *goptuna.Trial, space *Space, parameters []parameter) (point, error) {
	p := make(point, len(space.knobs))
	for i := range p {
		if p[i] = space.defaultLevel(i, p); p[i] == inactive || !parameters[i].asked() {
			continue
		}
		var err error
		if p[i], err = parameters[i].suggest(trial); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// study is a goptuna study in memory that lives for one ask of one sampler.
// goptuna's storage in memory is one study (a second one on it sees the first's
// trials), and its CMA-ES and Sobol samplers have no locks: so every ask has a
// study, a storage and a goptuna sampler of its own.
type study struct {
	*goptuna.Study
	space      *Space
	sampler    string
	parameters []parameter
	// shared holds the distributions of a trial by which knobs it has, since
	// goptuna never changes those of a trial that is not running.
	shared map[string]map[string]any
}

// newStudy makes an empty study for the sampler with this name. It minimizes
// unless an option says otherwise.
func newStudy(ctx context.Context, sampler string, space *Space, parameters []parameter, options ...goptuna.StudyOption) (*study, error) {
	options = append([]goptuna.StudyOption{
		goptuna.StudyOptionStorage(goptuna.NewInMemoryStorage()),
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMinimize),
		goptuna.StudyOptionLogger(nil),
		goptuna.StudyOptionDefineSearchSpace(declared(parameters)),
		goptuna.StudyOptionSampler(nothing{}),
	}, options...)
	made, err := goptuna.CreateStudy(sampler, options...)
	if err != nil {
		return nil, &SamplerError{Sampler: sampler, Err: err}
	}
	made.WithContext(ctx)
	return &study{Study: made, space: space, sampler: sampler, parameters: parameters, shared: make(map[string]map[string]any)}, nil
}

// nothing is the independent sampler of studies in which the relative sampler
// sets every parameter; goptuna's own default would draw from the global random
// source.
type nothing struct{}

func (nothing) Sample(_ *goptuna.Study, _ goptuna.FrozenTrial, name string, _ any) (float64, error) {
	return 0, errors.New("the relative sampler left " + name + " out")
}

// told is a trial as a study is told of it.
type told struct {
	at         point
	state      goptuna.TrialState
	value      float64
	attributes map[string]string // system attributes
}

// tell adds trials to the study.
func (s *study) tell(trials ...told) error {
	for i := range trials {
		if _, err := s.Storage.CloneTrial(s.ID, s.frozen(&trials[i])); err != nil {
			return &SamplerError{Sampler: s.sampler, Err: err}
		}
	}
	return nil
}

// frozen writes a trial as goptuna stores it.
func (s *study) frozen(t *told) goptuna.FrozenTrial {
	frozen := goptuna.FrozenTrial{
		State: t.state, Value: t.value, SystemAttrs: t.attributes,
		InternalParams: make(map[string]float64, len(s.parameters)),
		Params:         make(map[string]any, len(s.parameters)),
	}
	if t.state == goptuna.TrialStatePruned {
		frozen.IntermediateValues = map[int]float64{1: t.value}
	}
	present := make([]byte, len(s.parameters))
	for i, level := range t.at {
		parameter := &s.parameters[i]
		if level == inactive && parameter.always {
			level = s.space.levels[i][s.space.knobs[i].Default]
		}
		if level == inactive || !parameter.asked() {
			continue
		}
		present[i] = 1
		frozen.InternalParams[parameter.id] = parameter.internal(level)
		frozen.Params[parameter.id] = parameter.externals[level]
	}
	frozen.Distributions = s.distributionsOf(present)
	if len(frozen.InternalParams) == 0 {
		// Constants only: unlike a trial that has suggested nothing yet.
		frozen.SystemAttrs = map[string]string{proposalAttribute: "{}"}
	}
	return frozen
}

func (s *study) distributionsOf(present []byte) map[string]any {
	distributions, known := s.shared[string(present)]
	if known {
		return distributions
	}
	distributions = make(map[string]any, len(present))
	for i := range present {
		if present[i] == 1 {
			distributions[s.parameters[i].id] = s.parameters[i].distribution()
		}
	}
	s.shared[string(present)] = distributions
	return distributions
}

// ask makes a trial and asks for its point. A panic inside goptuna, or inside the
// sampler that it calls, becomes a SamplerError.
func (s *study) ask() (p point, err error) {
	err = s.guard(func() error {
		id, err := s.Storage.CreateNewTrial(s.ID)
		if err != nil {
			return err
		}
		trial := goptuna.Trial{Study: s.Study, ID: id}
		if err := trial.CallRelativeSampler(); err != nil {
			return err
		}
		p, err = suggestPoint(&trial, s.space, s.parameters)
		return err
	})
	return p, err
}

// guard turns errors and panics into a SamplerError.
func (s *study) guard(work func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &SamplerError{Sampler: s.sampler, Err: fmt.Errorf("panic: %v", reason), Stack: debug.Stack()}
		}
	}()
	if err := work(); err != nil {
		return &SamplerError{Sampler: s.sampler, Err: err}
	}
	return nil
}
