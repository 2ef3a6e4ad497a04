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
	at     []float64 // where the model was evaluated last
	ok     bool
	loss   float64
	matrix *mat.SymDense
	spare  *mat.SymDense
	target *mat.VecDense
}

func newFitter(knobs []Knob, data Data, priors Priors) *fitter {
	n, d := len(data.Y), len(knobs)
	m := &Model{knobs: knobs, data: data, priors: priors, amplitude: make([]float64, d), length: make([]float64, d), weights: make([]float64, n)}
	f := &fitter{
		model:  m,
		priors: make([]Prior, shared+2*d),
		matrix: mat.NewSymDense(n, nil),
		spare:  mat.NewSymDense(n, nil),
		target: mat.NewVecDense(n, slices.Clone(data.Y)),
	}
	f.priors[atScale], f.priors[atPair], f.priors[atJoint] = priors.Scale, priors.Pair, priors.Joint
	f.priors[atDecay], f.priors[atNoise] = priors.Decay, priors.Noise
	for i := range knobs {
		m.tables = append(m.tables, newTables(&knobs[i]))
		f.priors[shared+i] = priors.Amplitude
		f.priors[shared+d+i] = priors.Length
	}
	return f
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
	m, d := f.model, len(f.model.knobs)
	m.scale, m.pair, m.joint = math.Exp(logs[atScale]), math.Exp(logs[atPair]), math.Exp(logs[atJoint])
	m.decay, m.noise = math.Exp(logs[atDecay]), math.Exp(logs[atNoise])
	for i := range d {
		m.amplitude[i] = math.Exp(logs[shared+i])
		m.length[i] = math.Exp(logs[shared+d+i])
		m.tables[i].fill(&m.knobs[i], m.length[i])
	}
}

// evaluate conditions the model on the data and computes the loss.
func (f *fitter) evaluate(logs []float64) bool {
	if f.at != nil && slices.Equal(f.at, logs) {
		return f.ok
	}
	f.at = append(f.at[:0], logs...)
	f.ok = false
	for i, prior := range f.priors {
		if away := math.Abs(logs[i]-math.Log(prior.Median)) / prior.Spread; !(away < 12) {
			f.loss = math.Inf(1)
			return false
		}
	}
	f.set(logs)
	m := f.model
	for a := range m.data.X {
		for b := range a {
			f.matrix.SetSym(a, b, m.covariance(m.terms(m.data.X[a], m.data.X[b])))
		}
		f.matrix.SetSym(a, a, m.covariance(m.terms(m.data.X[a], m.data.X[a]))+m.noise/m.data.Count[a]+m.data.Noise[a]+1e-8*m.scale)
	}
	if !m.factor.Factorize(f.matrix) {
		f.loss = math.Inf(1)
		return false
	}
	var weights mat.VecDense
	if err := m.factor.SolveVecTo(&weights, f.target); err != nil {
		f.loss = math.Inf(1)
		return false
	}
	copy(m.weights, weights.RawVector().Data)
	f.loss = (mat.Dot(f.target, &weights) + m.factor.LogDet()) / 2
	for i, prior := range f.priors {
		away := (logs[i] - math.Log(prior.Median)) / prior.Spread
		f.loss += away * away / 2
	}
	f.ok = !math.IsNaN(f.loss)
	return f.ok
}

func (f *fitter) value(logs []float64) float64 {
	f.evaluate(logs)
	if !f.ok {
		return math.Inf(1)
	}
	return f.loss
}

// gradient fills in the derivatives of the loss by the logarithms.
func (f *fitter) gradient(gradient, logs []float64) {
	clear(gradient)
	if !f.evaluate(logs) {
		return
	}
	m, d := f.model, len(f.model.knobs)
	if err := m.factor.InverseTo(f.spare); err != nil {
		return
	}
	for a := range m.data.X {
		for b := range a + 1 {
			// Half the trace counts each pair once and the diagonal half.
			weight := f.spare.At(a, b) - m.weights[a]*m.weights[b]
			if a == b {
				weight /= 2
				gradient[atNoise] += weight * m.noise / m.data.Count[a]
			}
			f.addPair(gradient, m.data.X[a], m.data.X[b], weight, d)
		}
	}
	for i, prior := range f.priors {
		gradient[i] += (logs[i] - math.Log(prior.Median)) / (prior.Spread * prior.Spread)
	}
}

// addPair adds the derivatives of one entry of the covariance.
func (f *fitter) addPair(gradient []float64, a, b []int, weight float64, d int) {
	m := f.model
	t := m.terms(a, b)
	weight *= m.scale
	rest := m.joint * math.Exp(-m.decay*t.distance)
	interactions := m.pair * (t.sum*t.sum - t.squares) / 2
	gradient[atScale] += weight * (offset + t.sum + interactions + rest)
	gradient[atPair] += weight * interactions
	gradient[atJoint] += weight * rest
	gradient[atDecay] -= weight * rest * m.decay * t.distance
	for i := range d {
		table := &m.tables[i]
		index := (a[i]+1)*table.stride + b[i] + 1
		part := m.amplitude[i] * table.correlation[index]
		outer := weight * (1 + m.pair*(t.sum-part))
		gradient[shared+i] += outer * part
		if slope := table.slope[index]; slope != 0 {
			gradient[shared+d+i] += outer*m.amplitude[i]*slope + weight*rest*m.decay*slope
		}
	}
}
