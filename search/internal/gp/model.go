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
	data   []Observation
	priors Priors
	tables []tables
	logs   []float64 // of the hyperparameters

	// Hyperparameters; see the package comment.
	scale, pair, joint, decay, drift float64
	noise                            []float64 // by group
	stretch, agreement               []float64 // by task
	amplitude, length                []float64 // by knob

	factor  mat.Cholesky
	lower   [][]float64 // rows of the Cholesky factor
	weights []float64   // inverse covariance times Y
}

// Prior is a log-normal prior: the median, and the standard deviation of the
// logarithm.
type Prior struct{ Median, Spread float64 }

// Priors of the hyperparameters. Amplitudes, Scale, Noise and Drift are
// variances. Stretch is the scale of a related task; Odds are those against its
// agreement: a correlation of 1/(1+odds). TaskNoise is for the groups of related
// tasks.
type Priors struct {
	Scale, Pair, Joint, Decay, Noise, TaskNoise, Drift, Stretch, Odds, Amplitude, Length Prior
}

// DefaultPriors suit a log ratio to the baseline in units of 0.1: an effect of a
// knob is about 10 %, launches spread by 1 to 2 %; how far a night drifts is open, as a rule next to
// nothing.
func DefaultPriors() Priors {
	return Priors{
		Scale:     Prior{1, 0.7},
		Pair:      Prior{0.1, 1},
		Joint:     Prior{0.1, 1},
		Decay:     Prior{0.7, 0.5},
		Noise:     Prior{0.0225, 0.5},
		TaskNoise: Prior{0.04, 1.2},
		Drift:     Prior{0.0001, 2},
		Stretch:   Prior{1, 0.7},
		Odds:      Prior{0.15, 1.5},
		Amplitude: Prior{1, 1.2},
		Length:    Prior{0.5, 0.5},
	}
}

// ErrData says that the observations cannot be fitted.
var ErrData = errors.New("gp: the covariance of the observations is not positive definite")

// Fit finds the most probable hyperparameters in at most the given number of
// steps and conditions the process on the data. It is deterministic.
func Fit(knobs []Knob, data []Observation, priors Priors, steps int) (*Model, error) {
	groups, tasks := size(data)
	f := newFitter(knobs, data, priors, groups, tasks)
	best := f.medians()
	if steps > 0 && len(data) > 1 {
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

// With returns a process with the same hyperparameters over other data, which has
// no tasks and groups that the first data did not have.
func (m *Model) With(data []Observation) (*Model, error) {
	if groups, tasks := size(data); groups > len(m.noise) || tasks > len(m.stretch) {
		return nil, ErrData
	}
	return newFitter(m.knobs, data, m.priors, len(m.noise), len(m.stretch)).condition(m.logs)
}

func (f *fitter) condition(logs []float64) (*Model, error) {
	if !f.evaluate(logs) {
		return nil, ErrData
	}
	m := f.model
	m.fillFades()
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
const onStack = 288

// Predict returns the mean and the variance of the noise-free value of task 0 at
// x, without drift.
func (m *Model) Predict(x []int) (mean, variance float64) {
	n := len(m.lower)
	var buffer [onStack]float64
	solved := buffer[:]
	if n > onStack {
		solved = make([]float64, n)
	}
	for i := range n {
		k := m.covariance(m.likeness(x, m.data[i].X), 0, m.data[i].Task)
		mean += k * m.weights[i]
		row := m.lower[i]
		for j, v := range solved[:i] {
			k -= row[j] * v
		}
		solved[i] = k / row[i]
		variance -= solved[i] * solved[i]
	}
	variance += m.covariance(m.likeness(x, x), 0, 0)
	return mean, max(variance, 1e-12)
}

// Mean returns the mean at x.
func (m *Model) Mean(x []int) float64 {
	mean := 0.0
	for i := range m.weights {
		mean += m.covariance(m.likeness(x, m.data[i].X), 0, m.data[i].Task) * m.weights[i]
	}
	return mean
}

// Noise is the fitted variance of one launch of a group; that of the last group
// for those that no observation is in.
func (m *Model) Noise(group int) float64 { return m.noise[min(group, len(m.noise)-1)] }

// Agreement is the fitted correlation of a task with task 0.
func (m *Model) Agreement(task int) float64 { return m.agreement[task] }

// Effects returns what the process says of groups of configurations: the average
// value over each group, less the mean over the groups, and the covariance matrix
// of these differences. With groups that differ in the level of one knob these
// are the effects of its levels, interactions averaged out.
func (m *Model) Effects(groups [][][]int) (mean []float64, covariance *mat.SymDense) {
	mean, full := m.Averages(groups)
	return centre(mean, full)
}

// Averages returns the mean of the values over each group of configurations and
// the covariance matrix of these averages.
func (m *Model) Averages(groups [][][]int) (mean []float64, covariance *mat.SymDense) {
	n := len(groups)
	mean = make([]float64, n)
	solved := make([][]float64, n)
	for g, group := range groups {
		solved[g] = make([]float64, len(m.lower))
		for i, row := range m.lower {
			k := m.between(group, [][]int{m.data[i].X}, m.data[i].Task)
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
			full.SetSym(a, b, m.between(groups[a], groups[b], 0)-floats.Dot(solved[a], solved[b]))
		}
	}
	return mean, full
}

// between is the covariance of the averages over a group in task 0 and one in a
// task.
func (m *Model) between(a, b [][]int, task int) float64 {
	sum := 0.0
	for _, x := range a {
		for _, y := range b {
			sum += m.covariance(m.likeness(x, y), 0, task)
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
