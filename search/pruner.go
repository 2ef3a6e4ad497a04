package search

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/c-bata/goptuna"
	"gonum.org/v1/gonum/stat/distuv"
)

// Round is what one round of a trial measured.
type Round struct {
	Value float64
	// StandardError is that of Value over the requests of the round, in the unit of
	// Value; 0 when not known.
	StandardError float64
}

// PrunerOptions say how sure a pruner must be. The zero value gives the defaults.
type PrunerOptions struct {
	// ErrorRate is the largest probability, over all rounds of a trial, of stopping
	// one that is as good as the best: 0.01 by default.
	ErrorRate float64
	// Launch is the standard deviation between two launches of one configuration,
	// as a share of the value: 0.01 by default. Rounds of one launch agree better
	// than two launches do, so that no number of rounds can make up for it.
	Launch float64
	// Round is the standard deviation between rounds of one launch, as a share of
	// the value, for rounds that come without a standard error and as the least that
	// is believed of one: 0.01 by default.
	Round float64
}

// ErrPrunerOptions says that options of a pruner are out of range.
var ErrPrunerOptions = errors.New("pruner options out of range")

// Pruner stops a trial in the middle when it cannot win. It is a goptuna.Pruner
// whose steps are the rounds of a trial.
//
// The trial is compared with the best complete trial of the study. Its value is
// taken as the mean of its rounds. The standard deviation of the difference holds
// the standard errors of the rounds, or their spread where that is larger, that of
// the best, and the spread between launches for both. The trial is pruned when even
// the upper confidence bound of its value (the lower one when less is better) falls
// short of the best.
//
// A trial is looked at after every round, and every look may err. Look k spends
// 1/(k(k+1)) of the error rate; these shares add up to 1, so that all looks together
// spend no more than the whole, however many there are (the union bound).
//
// The value of the best is a maximum over trials and so on the high side. Launch
// and Round should therefore be no smaller than they are.
//
// goptuna's own pruners are not offered: they compare a trial with the middle of the
// others instead of the best, whatever the noise, so that half of all trials end
// early that could win or would teach something.
type Pruner struct{ options PrunerOptions }

var _ goptuna.Pruner = (*Pruner)(nil)

// NewPruner makes a pruner. It returns ErrPrunerOptions unless the error rate is
// between 0 and 1, and the deviations are finite and not negative.
func NewPruner(options PrunerOptions) (*Pruner, error) {
	for _, o := range []*float64{&options.ErrorRate, &options.Launch, &options.Round} {
		if *o == 0 {
			*o = 0.01
		}
		if !(*o > 0 && *o < math.Inf(1)) {
			return nil, fmt.Errorf("%w: %g, want a number above 0", ErrPrunerOptions, *o)
		}
	}
	if options.ErrorRate >= 1 {
		return nil, fmt.Errorf("%w: error rate %g, want a probability below 1", ErrPrunerOptions, options.ErrorRate)
	}
	return &Pruner{options: options}, nil
}

// ShouldPrune says whether a running trial with these rounds, the latest last, can
// be stopped. It asks the pruner through goptuna: a study with the best complete
// trial so far and the running one, whose rounds are its intermediate values.
func ShouldPrune(pruner goptuna.Pruner, minimize bool, best Round, rounds []Round) (bool, error) {
	if len(rounds) == 0 {
		return false, nil
	}
	direction := goptuna.StudyDirectionMaximize
	if minimize {
		direction = goptuna.StudyDirectionMinimize
	}
	study, err := goptuna.CreateStudy("prune", goptuna.StudyOptionLogger(nil),
		goptuna.StudyOptionDirection(direction), goptuna.StudyOptionPruner(pruner))
	if err != nil {
		return false, fmt.Errorf("goptuna study: %w", err)
	}
	_, err = study.Storage.CloneTrial(study.ID, goptuna.FrozenTrial{
		State: goptuna.TrialStateComplete, Value: best.Value, SystemAttrs: map[string]string{errorAttribute: formatFloat(best.StandardError)},
	})
	if err != nil {
		return false, fmt.Errorf("goptuna trial: %w", err)
	}
	id, err := study.Storage.CreateNewTrial(study.ID)
	if err != nil {
		return false, fmt.Errorf("goptuna trial: %w", err)
	}
	trial := goptuna.Trial{Study: study, ID: id}
	last := len(rounds) - 1
	for step, round := range rounds[:last] {
		if err := recordRound(&trial, step+1, round); err != nil {
			return false, fmt.Errorf("round %d: %w", step+1, err)
		}
		if err := study.Storage.SetTrialIntermediateValue(id, step+1, round.Value); err != nil {
			return false, fmt.Errorf("round %d: %w", step+1, err)
		}
	}
	switch err := ReportRound(&trial, last+1, rounds[last]); {
	case errors.Is(err, goptuna.ErrTrialPruned):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("round %d: %w", last+1, err)
	}
	return false, nil
}

// ReportRound reports a round of a trial of goptuna to the study's pruner, rounds
// counted from 1. It returns goptuna.ErrTrialPruned itself when the trial should
// end; the objective must return it as it is, since goptuna takes a wrapped one for
// a failure.
func ReportRound(trial *goptuna.Trial, round int, measured Round) error {
	if err := recordRound(trial, round, measured); err != nil {
		return err
	}
	return trial.ShouldPrune(round, measured.Value)
}

// errorAttribute is the system attribute with the standard error of a trial's
// value; with the number of a round behind it, of an intermediate value.
const errorAttribute = "nocturne:standard_error"

func recordRound(trial *goptuna.Trial, round int, measured Round) error {
	return trial.SetSystemAttr(errorAttribute+":"+strconv.Itoa(round), formatFloat(measured.StandardError))
}

func formatFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// standardError reads an attribute; 0 when there is none or it makes no sense.
func standardError(attributes map[string]string, name string) float64 {
	x, err := strconv.ParseFloat(attributes[name], 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}

// Prune implements goptuna.Pruner.
func (p *Pruner) Prune(study *goptuna.Study, trial goptuna.FrozenTrial) (bool, error) {
	best, found, err := p.bestOf(study)
	if err != nil || !found {
		return false, err
	}
	minimize := study.Direction() != goptuna.StudyDirectionMaximize
	bound, ok := p.Bound(minimize, best, roundsOf(&trial))
	if minimize {
		return ok && bound > best.Value, nil
	}
	return ok && bound < best.Value, nil
}

// roundsOf reads the rounds of a trial, in their order.
func roundsOf(trial *goptuna.FrozenTrial) []Round {
	rounds := make([]Round, 0, len(trial.IntermediateValues))
	for _, step := range slices.Sorted(maps.Keys(trial.IntermediateValues)) {
		rounds = append(rounds, Round{
			Value:         trial.IntermediateValues[step],
			StandardError: standardError(trial.SystemAttrs, errorAttribute+":"+strconv.Itoa(step)),
		})
	}
	return rounds
}

// bestOf finds the best complete trial, with its standard error or that of its
// rounds. goptuna's own search for it ends at the first trial whose value is not a
// number.
func (p *Pruner) bestOf(study *goptuna.Study) (best Round, found bool, err error) {
	trials, err := study.GetTrials()
	if err != nil && err != goptuna.ErrTrialsPartiallyDeleted { //nolint:errorlint // goptuna returns it as it is
		return Round{}, false, err
	}
	at := -1
	for i := range trials {
		t := &trials[i]
		if t.State != goptuna.TrialStateComplete || !isFinite(t.Value) {
			continue
		}
		better := at < 0 || t.Value < trials[at].Value
		if at >= 0 && study.Direction() == goptuna.StudyDirectionMaximize {
			better = t.Value > trials[at].Value
		}
		if better {
			at = i
		}
	}
	if at < 0 {
		return Round{}, false, nil
	}
	t := &trials[at]
	best = Round{Value: t.Value, StandardError: standardError(t.SystemAttrs, errorAttribute)}
	if rounds := roundsOf(t); best.StandardError == 0 && len(rounds) > 0 {
		scale := scaleOf(best.Value, rounds)
		_, variance, _ := p.mean(rounds, scale)
		best.StandardError = math.Sqrt(variance) * scale
	}
	return best, true, nil
}

// Bound is the best value that a trial with these rounds can still turn out to
// have at the pruner's error rate, beside a best trial so far: the value to record
// for it when it is pruned. ok is false when no round or the best has a finite
// value.
func (p *Pruner) Bound(minimize bool, best Round, rounds []Round) (bound float64, ok bool) {
	scale := scaleOf(best.Value, rounds)
	mean, variance, looks := p.mean(rounds, scale)
	if looks == 0 || !isFinite(best.Value) {
		return 0, false
	}
	variance += square(best.StandardError/scale) + square(p.options.Launch*best.Value/scale) + square(p.options.Launch*mean)
	spent := p.options.ErrorRate / float64(looks*(looks+1))
	reach := distuv.UnitNormal.Quantile(1-spent) * math.Sqrt(variance)
	if minimize {
		reach = -reach
	}
	return (mean + reach) * scale, true
}

// scaleOf is the largest magnitude. Values are taken as shares of it: squares of
// the extremes of floating point would overflow.
func scaleOf(value float64, rounds []Round) float64 {
	scale := 0.0
	if isFinite(value) {
		scale = math.Abs(value)
	}
	for _, round := range rounds {
		if isFinite(round.Value) {
			scale = max(scale, math.Abs(round.Value))
		}
	}
	if scale == 0 {
		return 1
	}
	return scale
}

// mean is the mean of the finite rounds, its variance and their number, values as
// shares of the scale.
func (p *Pruner) mean(rounds []Round, scale float64) (mean, variance float64, n int) {
	errorsSquared, squares := 0.0, 0.0
	for _, round := range rounds {
		if !isFinite(round.Value) {
			continue
		}
		n++
		x := round.Value / scale
		step := x - mean
		mean += step / float64(n)
		squares += step * (x - mean)
		errorsSquared += max(square(round.StandardError/scale), square(p.options.Round*x))
	}
	if n == 0 {
		return 0, 0, 0
	}
	variance = errorsSquared / float64(n) / float64(n)
	if n > 1 {
		variance = max(variance, squares/float64(n-1)/float64(n))
	}
	return mean, variance, n
}

func square(x float64) float64 { return x * x }

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
