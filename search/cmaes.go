package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/cmaes"
)

// NewCMAES returns goptuna's covariance matrix adaptation evolution strategy
// (v0.9.0), guarded. It moves the ordered knobs together; the others are left to
// the estimator of NewTPE.
//
// What is done from outside, because of how goptuna behaves:
//
//   - It knows numbers only and panics when a space has none, and it does not work
//     with a single one. Each ordered knob is given as a number from 0 to 1 of which
//     each level has an equal share (unset counts as the level below the first), so
//     that the tops of ranges are reached and one step size fits all knobs. With
//     fewer than two ordered knobs the estimator proposes everything.
//   - It minimizes whatever the direction of the study: it is told negative scores,
//     a crash as the worst of them.
//   - It fails on knobs that do not matter in a trial; they are told at their
//     defaults. Knobs with one level are not given to it.
//   - It keeps its state to itself, without a lock, and reads the generation of a
//     trial from an attribute. Here it is made anew for each ask and goes through the
//     history generation by generation, in the order of the trials, whoever proposed
//     them. So it goes on from any history.
//   - The first generation is drawn around the default, but not quite: a member that
//     is exactly the mean and among the worst makes all later draws NaN.
//   - A proposal that is rejected, known or suspect of crashing is replaced by the
//     nearest one that is not.
//
// There is no margin for integers: when the distribution has become narrower than
// a level it is the replacement of known configurations that still makes steps.
func NewCMAES() Sampler { return cmaesSampler{} }

type cmaesSampler struct{}

func (cmaesSampler) Name() string { return "cmaes" }

func (s cmaesSampler) Ask(ctx context.Context, request Request) (Proposal, error) {
	return askGoptuna(ctx, request, func(k *knowledge) (point, string, error) {
		parameters, ordered := k.space.cmaesParameters()
		if ordered < 2 {
			p, err := k.estimate(ctx, s.Name())
			return p, "the most frequent levels among the best trials (CMA-ES wants two ordered knobs or more)", err
		}
		e := evolution{knowledge: k, name: s.Name(), parameters: parameters, ordered: ordered}
		p, err := e.ask(ctx)
		return p, fmt.Sprintf("a draw around generation %d of the evolution strategy", e.generation), err
	})
}

// cmaesParameters gives ordered knobs as numbers and the others as categoricals.
func (s *Space) cmaesParameters() (parameters []parameter, ordered int) {
	parameters = make([]parameter, len(s.knobs))
	for i := range parameters {
		knob := &s.knobs[i]
		parameters[i] = newParameter(knob, !knob.ordered())
		if knob.ordered() && parameters[i].asked() {
			parameters[i].always = true
			ordered++
		}
	}
	return parameters, ordered
}

// evolution is one ask of CMA-ES.
type evolution struct {
	*knowledge
	name       string
	parameters []parameter
	ordered    int
	sampler    *cmaes.Sampler
	generation int // whole generations that the sampler knows
}

// generationAttribute is where goptuna's sampler notes for a trial which state it
// was drawn from, as "identity of the sampler-generation".
const generationAttribute = "goptuna:cmaes:generationId"

func (e *evolution) ask(ctx context.Context) (point, error) {
	size := 4 + int(3*math.Log(float64(e.ordered))) // as goptuna and Hansen (arXiv 1604.00772, table 1)
	e.sampler = cmaes.NewSampler(
		// The state follows from what it is told alone; the seed is for the draws,
		// which must differ from ask to ask within a generation.
		cmaes.SamplerOptionSeed(int64(e.dice.named("cmaes")>>1)),
		cmaes.SamplerOptionInitialMean(e.start()),
		cmaes.SamplerOptionOptimizerOptions(cmaes.OptimizerOptionPopulationSize(size)),
	)
	trials := e.toldScores()
	if err := e.replay(ctx, trials, size); err != nil {
		return nil, err
	}
	study, err := e.study(ctx, trials)
	if err != nil {
		return nil, err
	}
	return study.ask()
}

// start is the default in the sampler's coordinates, drawn a little towards a third
// of the range, where no level has its middle: the default itself is among the first
// members, and a member that is the mean makes goptuna divide 0 by 0.
func (e *evolution) start() map[string]float64 {
	const off = 1e-3
	mean := make(map[string]float64, e.ordered)
	for i := range e.parameters {
		if p := &e.parameters[i]; p.always {
			x := p.internal(e.space.levels[i][e.space.knobs[i].Default])
			mean[p.id] = x + off*(1.0/3-x)
		}
	}
	return mean
}

// replay brings the sampler to where the trials lead. It takes in one generation
// with each draw, and looks for its members among all trials of the study: so each
// generation but the last is told in a study of its own. The last whole one is
// marked for the draw that is the proposal.
func (e *evolution) replay(ctx context.Context, trials []told, size int) error {
	if len(trials) < size {
		return nil
	}
	identity, err := e.draw(ctx, nil)
	if err != nil {
		return err
	}
	for members := range slices.Chunk(trials[:len(trials)/size*size], size) {
		mark := map[string]string{generationAttribute: identity + "-" + strconv.Itoa(e.generation)}
		for i := range members {
			members[i].attributes = mark
		}
		if e.generation++; e.generation == len(trials)/size {
			return nil
		}
		if _, err := e.draw(ctx, members); err != nil {
			return err
		}
		for i := range members {
			members[i].attributes = nil
		}
	}
	return nil
}

// draw lets the sampler take the trials in and draw once, and returns its identity.
func (e *evolution) draw(ctx context.Context, trials []told) (identity string, err error) {
	study, err := e.study(ctx, trials)
	if err != nil {
		return "", err
	}
	err = study.guard(func() error {
		id, err := study.Storage.CreateNewTrial(study.ID)
		if err != nil {
			return err
		}
		trial := goptuna.Trial{Study: study.Study, ID: id}
		if err := trial.CallRelativeSampler(); err != nil {
			return err
		}
		attributes, err := trial.GetSystemAttrs()
		identity, _, _ = strings.Cut(attributes[generationAttribute], "-")
		return err
	})
	return identity, err
}

func (e *evolution) study(ctx context.Context, trials []told) (*study, error) {
	made, err := newStudy(ctx, e.name, e.space, e.parameters,
		goptuna.StudyOptionRelativeSampler(e.sampler),
		goptuna.StudyOptionSampler(&categories{estimator: newEstimator(), dice: e.dice.named("category"), trials: len(trials)}))
	if err != nil {
		return nil, err
	}
	return made, made.tell(trials...)
}

// categories is the independent sampler beside CMA-ES: random until the estimator
// has enough to go by, whose own first draws ignore the seed.
type categories struct {
	estimator goptuna.Sampler
	dice      dice
	trials    int
}

func (c *categories) Sample(study *goptuna.Study, trial goptuna.FrozenTrial, name string, distribution any) (float64, error) {
	categorical, ok := distribution.(goptuna.CategoricalDistribution)
	if !ok {
		return 0, fmt.Errorf("CMA-ES left %s out", name)
	}
	if c.trials < startup {
		return float64(c.dice.named(name).intN(len(categorical.Choices))), nil
	}
	return c.estimator.Sample(study, trial, name, distribution)
}
