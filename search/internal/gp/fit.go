package gp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// fitter evaluates the negative log posterior of hyperparameters, given as
// logarithms, and its gradient.
type fitter struct {
	model  *Model
	priors []Prior
	layout layout
	at     []float64 // where the model was evaluated last
	ok     bool
	loss   float64
	matrix *mat.SymDense
	spare  *mat.SymDense
	target *mat.VecDense
}

// layout says where the hyperparameters of each kind begin; those before noise
// are single ones, and those of tasks are there for all tasks but the first.
type layout struct {
	noise, stretch, odds, amplitude, length, size int
}

const (
	atScale = iota
	atPair
	atJoint
	atDecay
	atDrift
	singles
)

func newLayout(knobs, groups, tasks int) layout {
	l := layout{noise: singles}
	l.stretch = l.noise + groups
	l.odds = l.stretch + tasks - 1
	l.amplitude = l.odds + tasks - 1
	l.length = l.amplitude + knobs
	l.size = l.length + knobs
	return l
}

// size counts the groups and tasks of the data.
func size(data []Observation) (groups, tasks int) {
	groups, tasks = 1, 1
	for i := range data {
		groups, tasks = max(groups, data[i].Group+1), max(tasks, data[i].Task+1)
	}
	return groups, tasks
}

func newFitter(knobs []Knob, data []Observation, priors Priors, groups, tasks int) *fitter {
	n := len(data)
	target := mat.NewVecDense(n, nil)
	for i := range data {
		target.SetVec(i, data[i].Y)
	}
	m := &Model{
		knobs: knobs, data: data, priors: priors,
		amplitude: make([]float64, len(knobs)), length: make([]float64, len(knobs)), weights: make([]float64, n),
		noise: make([]float64, groups), stretch: make([]float64, tasks), agreement: make([]float64, tasks),
	}
	for i := range knobs {
		m.tables = append(m.tables, newTables(&knobs[i]))
	}
	f := &fitter{model: m, layout: newLayout(len(knobs), groups, tasks), target: target,
		matrix: mat.NewSymDense(n, nil), spare: mat.NewSymDense(n, nil)}
	f.priors = make([]Prior, f.layout.size)
	f.priors[atScale], f.priors[atPair], f.priors[atJoint] = priors.Scale, priors.Pair, priors.Joint
	f.priors[atDecay], f.priors[atDrift] = priors.Decay, priors.Drift
	fill(f.priors[f.layout.noise:f.layout.stretch], priors.Noise)
	for i := range data {
		if data[i].Task > 0 {
			f.priors[f.layout.noise+data[i].Group] = priors.TaskNoise
		}
	}
	fill(f.priors[f.layout.stretch:f.layout.odds], priors.Stretch)
	fill(f.priors[f.layout.odds:f.layout.amplitude], priors.Odds)
	fill(f.priors[f.layout.amplitude:f.layout.length], priors.Amplitude)
	fill(f.priors[f.layout.length:], priors.Length)
	return f
}

func fill(list []Prior, prior Prior) {
	for i := range list {
		list[i] = prior
	}
}

func (f *fitter) medians() []float64 {
	logs := make([]float64, len(f.priors))
	for i, prior := range f.priors {
		logs[i] = math.Log(prior.Median)
	}
	return logs
}

// set puts hyperparameters into the model.
func (f *fitter) set(logs []float64) {
	m, l := f.model, &f.layout
	m.scale, m.pair, m.joint = math.Exp(logs[atScale]), math.Exp(logs[atPair]), math.Exp(logs[atJoint])
	m.decay, m.drift = math.Exp(logs[atDecay]), math.Exp(logs[atDrift])
	for g := range m.noise {
		m.noise[g] = math.Exp(logs[l.noise+g])
	}
	m.stretch[0], m.agreement[0] = 1, 1
	for t := 1; t < len(m.stretch); t++ {
		m.stretch[t] = math.Exp(logs[l.stretch+t-1])
		m.agreement[t] = 1 / (1 + math.Exp(logs[l.odds+t-1]))
	}
	for i := range m.knobs {
		m.amplitude[i] = math.Exp(logs[l.amplitude+i])
		m.length[i] = math.Exp(logs[l.length+i])
		m.tables[i].fill(&m.knobs[i], m.length[i])
	}
}

// far is how many standard deviations from its median a hyperparameter may go.
const far = 12

// evaluate conditions the model on the data and computes the loss.
func (f *fitter) evaluate(logs []float64) bool {
	if f.at != nil && slices.Equal(f.at, logs) {
		return f.ok
	}
	f.at = append(f.at[:0], logs...)
	f.ok, f.loss = false, math.Inf(1)
	for i, prior := range f.priors {
		if away := math.Abs(logs[i]-math.Log(prior.Median)) / prior.Spread; !(away < far) {
			return false
		}
	}
	f.set(logs)
	f.fillMatrix()
	m := f.model
	if !m.factor.Factorize(f.matrix) {
		return false
	}
	var weights mat.VecDense
	if err := m.factor.SolveVecTo(&weights, f.target); err != nil {
		return false
	}
	copy(m.weights, weights.RawVector().Data)
	loss := (mat.Dot(f.target, &weights) + m.factor.LogDet()) / 2
	for i, prior := range f.priors {
		away := (logs[i] - math.Log(prior.Median)) / prior.Spread
		loss += away * away / 2
	}
	if f.ok = !math.IsNaN(loss); f.ok {
		f.loss = loss
	}
	return f.ok
}

func (f *fitter) fillMatrix() {
	m := f.model
	for a := range m.data {
		from := &m.data[a]
		for b := range a + 1 {
			to := &m.data[b]
			k := m.covariance(m.alike(m.terms(from.X, to.X)), from.Task, to.Task) + m.drifted(from, to)
			if a == b {
				k += m.noise[from.Group]/from.count() + from.Noise + 1e-8*m.scale
			}
			f.matrix.SetSym(a, b, k)
		}
	}
}

func (f *fitter) value(logs []float64) float64 {
	f.evaluate(logs)
	return f.loss
}

// gradient fills in the derivatives of the loss by the logarithms.
func (f *fitter) gradient(gradient, logs []float64) {
	clear(gradient)
	if !f.evaluate(logs) {
		return
	}
	m := f.model
	if err := m.factor.InverseTo(f.spare); err != nil {
		return
	}
	for a := range m.data {
		from := &m.data[a]
		for b := range a + 1 {
			// Half the trace counts each pair once and the diagonal half.
			weight := f.spare.At(a, b) - m.weights[a]*m.weights[b]
			if a == b {
				weight /= 2
				gradient[f.layout.noise+from.Group] += weight * m.noise[from.Group] / from.count()
				gradient[atScale] += weight * 1e-8 * m.scale
			}
			f.addPair(gradient, from, &m.data[b], weight)
		}
	}
	for i, prior := range f.priors {
		gradient[i] += (logs[i] - math.Log(prior.Median)) / (prior.Spread * prior.Spread)
	}
}

// addPair adds the derivatives of one entry of the covariance.
func (f *fitter) addPair(gradient []float64, a, b *Observation, weight float64) {
	m, l := f.model, &f.layout
	t := m.terms(a.X, b.X)
	gradient[atDrift] += weight * m.drifted(a, b)
	if a.Task == b.Task {
		gradient[atScale] += weight * offset * m.scale
	}
	weight *= f.addTasks(gradient, a.Task, b.Task, weight*m.alike(t)) * m.scale
	rest := m.joint * math.Exp(-m.decay*t.distance)
	interactions := m.pair * (t.sum*t.sum - t.squares) / 2
	gradient[atScale] += weight * (t.sum + interactions + rest)
	gradient[atPair] += weight * interactions
	gradient[atJoint] += weight * rest
	gradient[atDecay] -= weight * rest * m.decay * t.distance
	for i := range m.knobs {
		table := &m.tables[i]
		index := (a.X[i]+1)*table.stride + b.X[i] + 1
		part := m.amplitude[i] * table.correlation[index]
		outer := weight * (1 + m.pair*(t.sum-part))
		gradient[l.amplitude+i] += outer * part
		if slope := table.slope[index]; slope != 0 {
			gradient[l.length+i] += outer*m.amplitude[i]*slope + weight*rest*m.decay*slope
		}
	}
}

// addTasks adds the derivatives by the hyperparameters of the tasks, given the
// weighted covariance within task 0, and returns the factor between the tasks.
func (f *fitter) addTasks(gradient []float64, a, b int, weighted float64) float64 {
	m, l := f.model, &f.layout
	factor := m.stretch[a] * m.stretch[b]
	if a != b {
		factor *= m.agreement[a] * m.agreement[b]
	}
	for _, task := range [2]int{a, b} {
		if task == 0 {
			continue
		}
		gradient[l.stretch+task-1] += weighted * factor
		if a != b {
			gradient[l.odds+task-1] -= weighted * factor * (1 - m.agreement[task])
		}
	}
	return factor
}
