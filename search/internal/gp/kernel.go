// Package gp is a Gaussian process over configurations of finite levels.
//
// The covariance of two configurations is
//
//	scale * (S + pair*(S*S-Q)/2 + joint*exp(-decay*D))
//
// where S sums a knob's amplitude times the correlation of its two levels over
// the knobs and Q sums the squares of these products: the first term is an
// additive model, the second one all interactions of two knobs (each as strong as
// its two main effects make likely), and the last one what is left, alike for
// configurations that differ little. Correlations are 0 or 1 for levels without
// order and Matérn 5/2 of their distance for ordered ones.
//
// Observations belong to tasks. Task 0 is what predictions are made for; the
// others are related functions, each with a scale of its own and a correlation
// with task 0: the covariance of two observations is that of their configurations
// times both scales and, between tasks, times both correlations. Each task has a
// constant of its own. Observations of task 0 may share a drift, a random walk
// over time. To them comes noise, as large as that of the observation's group.
//
// How much lies in which term, the amplitudes, the length scales, the noise, the
// drift, and scale and correlation of each task are fitted to the data under
// log-normal priors.
//
// The additive form with pairs is that of Duvenaud, Nickisch and Rasmussen,
// "Additive Gaussian processes" (NeurIPS 2011); the tasks are the intrinsic
// coregionalization model with one common factor (Bonilla, Chai and Williams,
// "Multi-task Gaussian process prediction", NeurIPS 2007).
package gp

import "math"

// Absent is the level of a knob that does not matter in a configuration. Such a
// knob contributes nothing to the additive terms.
const Absent = -1

// Knob describes the levels of one knob.
type Knob struct {
	Levels int
	// Position of each level on a scale from 0 to 1; nil for levels without
	// order, NaN for a single level that stands outside the order.
	Position []float64
}

// Observation is one measured value.
type Observation struct {
	X []int // level by knob
	Y float64
	// Noise is the variance known for this observation, which comes on top of the
	// fitted one.
	Noise float64
	Count int // launches that Y is the mean of; 0 counts as 1
	Task  int
	Group int     // of the fitted noise
	Time  float64 // 1 is a night; matters in task 0 alone
}

func (o *Observation) count() float64 { return float64(max(1, o.Count)) }

// tables hold what depends on the levels of one knob alone, for one set of
// hyperparameters; index (a+1)*stride + b+1 for levels a and b.
type tables struct {
	stride      int
	correlation []float64
	distance    []float64 // 1 - correlation, with Absent as a level of its own
	slope       []float64 // derivative of the correlation by the log length
	fade        []float64 // exp(-decay*distance), for predictions
}

func newTables(knob *Knob) tables {
	stride := knob.Levels + 1
	t := tables{
		stride:      stride,
		correlation: make([]float64, stride*stride),
		distance:    make([]float64, stride*stride),
		slope:       make([]float64, stride*stride),
		fade:        make([]float64, stride*stride),
	}
	for a := range stride {
		for b := range stride {
			if a != b {
				t.distance[a*stride+b] = 1
			} else if a > 0 {
				t.correlation[a*stride+b] = 1
			}
		}
	}
	return t
}

// fill computes the entries of an ordered knob for a length scale.
func (t *tables) fill(knob *Knob, length float64) {
	if knob.Position == nil {
		return
	}
	for a := range knob.Levels {
		for b := range a {
			gap := math.Abs(knob.Position[a] - knob.Position[b])
			if math.IsNaN(gap) {
				continue
			}
			correlation, slope := matern(gap, length)
			for _, index := range [2]int{(a+1)*t.stride + b + 1, (b+1)*t.stride + a + 1} {
				t.correlation[index] = correlation
				t.distance[index] = 1 - correlation
				t.slope[index] = slope
			}
		}
	}
}

// matern is the Matérn 5/2 correlation at a distance, and its derivative by the
// logarithm of the length scale.
func matern(distance, length float64) (correlation, slope float64) {
	r := math.Sqrt(5) * distance / length
	decay := math.Exp(-r)
	return (1 + r + r*r/3) * decay, r * r * (1 + r) / 3 * decay
}

// terms are the parts of the covariance of two configurations, before scaling.
type terms struct {
	sum, squares, distance float64
}

func (m *Model) terms(a, b []int) terms {
	var t terms
	for i := range m.tables {
		table := &m.tables[i]
		index := (a[i]+1)*table.stride + b[i] + 1
		part := m.amplitude[i] * table.correlation[index]
		t.sum += part
		t.squares += part * part
		t.distance += table.distance[index]
	}
	return t
}

// likeness is alike of the terms of two configurations, by products of the fades
// where that would take an exponential function: predictions call it millions of
// times.
func (m *Model) likeness(a, b []int) float64 {
	sum, squares, fade := 0.0, 0.0, 1.0
	for i := range m.tables {
		table := &m.tables[i]
		index := (a[i]+1)*table.stride + b[i] + 1
		part := m.amplitude[i] * table.correlation[index]
		sum += part
		squares += part * part
		fade *= table.fade[index]
	}
	return m.scale * (sum + m.pair*(sum*sum-squares)/2 + m.joint*fade)
}

func (m *Model) fillFades() {
	for i := range m.tables {
		for index, distance := range m.tables[i].distance {
			m.tables[i].fade[index] = math.Exp(-m.decay * distance)
		}
	}
}

// offset is the variance of a task's constant, relative to the scale.
const offset = 4

// alike is the covariance of two configurations without their constant.
func (m *Model) alike(t terms) float64 {
	return m.scale * (t.sum + m.pair*(t.sum*t.sum-t.squares)/2 + m.joint*math.Exp(-m.decay*t.distance))
}

// covariance of two noise-free values of tasks, without drift; k is the covariance
// of their configurations.
func (m *Model) covariance(k float64, taskA, taskB int) float64 {
	if taskA == taskB {
		return k*m.stretch[taskA]*m.stretch[taskA] + offset*m.scale
	}
	return k * m.stretch[taskA] * m.stretch[taskB] * m.agreement[taskA] * m.agreement[taskB]
}

// drifted is the covariance that two observations share through the drift: that
// of a random walk.
func (m *Model) drifted(a, b *Observation) float64 {
	if a.Task != 0 || b.Task != 0 {
		return 0
	}
	return m.drift * min(a.Time, b.Time)
}
