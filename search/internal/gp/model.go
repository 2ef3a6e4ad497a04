package gp

import (
	"errors"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Model is a fitted process.
type Model struct {
	knobs  []Knob
	data   Data
	priors Priors
	tables []tables
	logs   []float64 // of the hyperparameters

	// Hyperparameters; see the package comment.
	scale, pair, joint, decay, noise float64
	amplitude, length                []float64

	factor  mat.Cholesky
	lower   [][]float64 // rows of the Cholesky factor
	weights []float64   // inverse covariance times Y
}

// Prior is a log-normal prior: the median, and the standard deviation of the
// logarithm.
type Prior struct{ Median, Spread float64 }

// Priors of the hyperparameters. Amplitudes, Scale and Noise are variances.
type Priors struct {
	Scale, Pair, Joint, Decay, Noise, Amplitude, Length Prior
}

// DefaultPriors suit a log ratio to the baseline in units of 0.1: an effect of a
// knob is about 10 %, launches spread by 1 to 2 %.
func DefaultPriors() Priors {
	return Priors{
		Scale:     Prior{1, 0.7},
		Pair:      Prior{0.1, 1},
		Joint:     Prior{0.1, 1},
		Decay:     Prior{0.7, 0.5},
		Noise:     Prior{0.0225, 0.5},
		Amplitude: Prior{1, 1.2},
		Length:    Prior{0.5, 0.5},
	}
}

// Positions of the hyperparameters that are not a knob's; the amplitudes follow,
// then the length scales.
const (
	atScale = iota
	atPair
	atJoint
	atDecay
	atNoise
	shared
)

// ErrData says that the observations cannot be fitted.
var ErrData = errors.New("gp: the covariance of the observations is not positive definite")

// Fit finds the most probable hyperparameters in at most the given number of
// steps and conditions the process on the data. It is deterministic.
func Fit(knobs []Knob, data Data, priors Priors, steps int) (*Model, error) {
	f := newFitter(knobs, data, priors)
	best := f.medians()
	if steps > 0 && len(data.Y) > 1 {
		settings := &optimize.Settings{
			MajorIterations: steps, FuncEvaluations: 2*steps + 4, GradientThreshold: 0.02,
			Converger: &optimize.FunctionConverge{Absolute: 0.01, Iterations: 4},
		}
		problem := optimize.Problem{Func: f.value, Grad: f.gradient}
		// An error here is a line search that found nothing better: what it had
		// found by then stands.
		result, _ := optimize.Minimize(problem, best, settings, &optimize.LBFGS{Store: 8})
		if result != nil && f.value(result.X) < f.value(best) {
			best = result.X
		}
	}
	return f.condition(best)
}

// With returns a process with the same hyperparameters over other data.
func (m *Model) With(data Data) (*Model, error) {
	return newFitter(m.knobs, data, m.priors).condition(m.logs)
}

func (f *fitter) condition(logs []float64) (*Model, error) {
	if !f.evaluate(logs) {
		return nil, ErrData
	}
	m := f.model
	m.lower = rows(&m.factor)
	m.logs = slices.Clone(logs)
	return m, nil
}

// rows copies the lower Cholesky factor.
func rows(factor *mat.Cholesky) [][]float64 {
	var lower mat.TriDense
	factor.LTo(&lower)
	n, _ := lower.Dims()
	list := make([][]float64, n)
	for i := range list {
		list[i] = make([]float64, i+1)
		for j := range list[i] {
			list[i][j] = lower.At(i, j)
		}
	}
	return list
}

// onStack is the number of observations up to which Predict allocates nothing.
const onStack = 128

// Predict returns the mean and the variance of the noise-free value at x.
func (m *Model) Predict(x []int) (mean, variance float64) {
	n := len(m.lower)
	var buffer [onStack]float64
	solved := buffer[:]
	if n > onStack {
		solved = make([]float64, n)
	}
	for i := range n {
		k := m.covariance(m.terms(x, m.data.X[i]))
		mean += k * m.weights[i]
		row := m.lower[i]
		for j, v := range solved[:i] {
			k -= row[j] * v
		}
		solved[i] = k / row[i]
		variance -= solved[i] * solved[i]
	}
	variance += m.covariance(m.terms(x, x))
	return mean, max(variance, 1e-12)
}

// Mean returns the mean at x.
func (m *Model) Mean(x []int) float64 {
	mean := 0.0
	for i := range m.weights {
		mean += m.covariance(m.terms(x, m.data.X[i])) * m.weights[i]
	}
	return mean
}

// Noise is the fitted variance of one launch.
func (m *Model) Noise() float64 { return m.noise }

// Effects returns what the process says of groups of configurations: the average
// value over each group, less the mean over the groups, and the covariance matrix
// of these differences. With groups that differ in the level of one knob these
// are the effects of its levels, interactions averaged out.
func (m *Model) Effects(groups [][][]int) (mean []float64, covariance *mat.SymDense) {
	n := len(groups)
	mean = make([]float64, n)
	solved := make([][]float64, n)
	for g, group := range groups {
		solved[g] = make([]float64, len(m.lower))
		for i, row := range m.lower {
			k := m.between(group, m.data.X[i:i+1])
			mean[g] += k * m.weights[i]
			for j, v := range solved[g][:i] {
				k -= row[j] * v
			}
			solved[g][i] = k / row[i]
		}
	}
	full := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			full.SetSym(a, b, m.between(groups[a], groups[b])-floats.Dot(solved[a], solved[b]))
		}
	}
	return centre(mean, full)
}

// between is the covariance of the averages over two groups.
func (m *Model) between(a, b [][]int) float64 {
	sum := 0.0
	for _, x := range a {
		for _, y := range b {
			sum += m.covariance(m.terms(x, y))
		}
	}
	return sum / float64(len(a)*len(b))
}

// centre takes the mean over all entries away.
func centre(mean []float64, covariance *mat.SymDense) ([]float64, *mat.SymDense) {
	n := len(mean)
	rows := make([]float64, n)
	whole := 0.0
	for a := range n {
		for b := range n {
			rows[a] += covariance.At(a, b) / float64(n)
		}
		whole += rows[a] / float64(n)
	}
	average := floats.Sum(mean) / float64(n)
	centred := mat.NewSymDense(n, nil)
	for a := range n {
		mean[a] -= average
		for b := range a + 1 {
			centred.SetSym(a, b, covariance.At(a, b)-rows[a]-rows[b]+whole)
		}
	}
	return mean, centred
}
