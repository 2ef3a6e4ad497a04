package search

import (
	"context"
	"fmt"
	"math"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/sobol"
)

// NewSobol returns goptuna's Sobol sequence (v0.9.0), guarded: configurations that
// cover the space evenly, whatever has been measured.
//
// What is done from outside, because of how goptuna behaves:
//
//   - Every knob is given as a number from 0 to 1 of which each level has an equal
//     share: goptuna's integer ranges never give their top value.
//   - The sequence has no seed. It is shifted by a random amount in each dimension,
//     modulo 1 (Cranley and Patterson, SIAM J. Numer. Anal. 13, 1976), that the seed
//     decides.
//   - The sampler keeps its place in the sequence itself, without a lock. Here it is
//     made anew for each ask, and drawn from as often as trials are known.
//   - Knobs with one level are not given to goptuna; levels of knobs that do not
//     matter are dropped.
//   - A point that is rejected, known or suspect of crashing is replaced by the
//     nearest one that is not.
func NewSobol() Sampler { return sobolSampler{} }

type sobolSampler struct{}

func (sobolSampler) Name() string { return "sobol" }

func (s sobolSampler) Ask(ctx context.Context, request Request) (Proposal, error) {
	return askGoptuna(ctx, request, func(k *knowledge) (point, string, error) {
		drawn := len(k.trials) + len(k.pending)
		p, err := k.sobolPoint(ctx, s.Name(), drawn)
		return p, fmt.Sprintf("point %d of the Sobol sequence", drawn), err
	})
}

// sobolPoint asks goptuna for the point with this number.
func (k *knowledge) sobolPoint(ctx context.Context, name string, number int) (point, error) {
	parameters := make([]parameter, len(k.space.knobs))
	for i := range parameters {
		parameters[i] = newParameter(&k.space.knobs[i], false)
	}
	sequence := &shiftedSobol{sampler: sobol.NewSampler(), shift: dice(mix(k.seed)).named("shift")}
	study, err := newStudy(ctx, name, k.space, parameters, goptuna.StudyOptionRelativeSampler(sequence))
	if err != nil {
		return nil, err
	}
	err = study.guard(func() error { return sequence.skip(study, number-1) })
	if err != nil {
		return nil, err
	}
	return study.ask()
}

// shiftedSobol is the sequence with its random shift.
type shiftedSobol struct {
	sampler *sobol.Sampler
	shift   dice
}

// skip draws points that earlier trials have had.
func (s *shiftedSobol) skip(study *study, points int) error {
	space := declared(study.parameters)
	for range points {
		if _, err := s.sampler.SampleRelative(study.Study, goptuna.FrozenTrial{}, space); err != nil {
			return err
		}
	}
	return nil
}

func (s *shiftedSobol) SampleRelative(study *goptuna.Study, trial goptuna.FrozenTrial, space map[string]any) (map[string]float64, error) {
	params, err := s.sampler.SampleRelative(study, trial, space)
	for id, x := range params {
		_, params[id] = math.Modf(x + s.shift.named(id).unit())
	}
	return params, err
}
