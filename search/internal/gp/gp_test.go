package gp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
)

func mixedKnobs() []Knob {
	return []Knob{
		{Levels: 4},
		{Levels: 5, Position: []float64{0, 0.25, 0.5, 0.75, 1}},
		{Levels: 4, Position: []float64{math.NaN(), 0, 0.5, 1}},
		{Levels: 2},
	}
}

func draw(random *rand.Rand, knobs []Knob, n int) []Observation {
	var data []Observation
	for range n {
		x := make([]int, len(knobs))
		for i := range x {
			x[i] = random.IntN(knobs[i].Levels+1) - 1
		}
		y := float64(x[0]) + math.Sin(float64(x[1])) + 0.3*float64(x[0]*x[2])
		data = append(data, Observation{X: x, Y: y + 0.15*random.NormFloat64(), Noise: 0.01 * random.Float64(), Count: 1 + random.IntN(3), Time: random.Float64()})
	}
	return data
}

// TestGradient compares the gradient with finite differences.
func TestGradient(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	knobs := mixedKnobs()
	data := draw(random, knobs, 24)
	for i := range data {
		data[i].Task, data[i].Group = i%3, i%2
	}
	f := newFitter(knobs, data, DefaultPriors(), 2, 3)
	at := f.medians()
	for i := range at {
		at[i] += 0.4 * random.NormFloat64()
	}
	got := make([]float64, len(at))
	f.gradient(got, at)
	want := fd.Gradient(nil, f.value, at, &fd.Settings{Formula: fd.Central})
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-4*(1+math.Abs(want[i])) {
			t.Errorf("derivative %d is %v, finite differences give %v", i, got[i], want[i])
		}
	}
}

// TestPrediction: the process learns a function with interactions, and its
// variance says how wrong it is.
func TestPrediction(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	knobs := mixedKnobs()
	train, test := draw(random, knobs, 80), draw(random, knobs, 60)
	m, err := Fit(knobs, train, DefaultPriors(), 40)
	if err != nil {
		t.Fatal(err)
	}
	square, surprise := 0.0, 0.0
	for _, o := range test {
		x := o.X
		mean, variance := m.Predict(x)
		if math.Abs(mean-m.Mean(x)) > 1e-9 {
			t.Fatalf("Predict gives the mean %v, Mean %v", mean, m.Mean(x))
		}
		square += (mean - o.Y) * (mean - o.Y) / 60
		surprise += (mean - o.Y) * (mean - o.Y) / (variance + m.Noise(0)) / 60
	}
	if square > 0.16 {
		t.Errorf("mean squared error %v, want below 0.16 (the noise alone is 0.02, the function's variance 3)", square)
	}
	if surprise > 3 || surprise < 0.2 {
		t.Errorf("squared errors are %v of the predicted variance, want about 1", surprise)
	}
}

// TestEffects: the main effects of the levels of a knob.
func TestEffects(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	knobs := []Knob{{Levels: 3}, {Levels: 3}}
	var data []Observation
	for range 40 {
		x := []int{random.IntN(3), random.IntN(3)}
		data = append(data, Observation{X: x, Y: 2*float64(x[0]) + 0.1*random.NormFloat64()})
	}
	m, err := Fit(knobs, data, DefaultPriors(), 40)
	if err != nil {
		t.Fatal(err)
	}
	column := func(knob, level int) [][]int {
		var group [][]int
		for other := range 3 {
			x := []int{other, other}
			x[knob] = level
			group = append(group, x)
		}
		return group
	}
	mean, covariance := m.Effects([][][]int{column(0, 0), column(0, 2)})
	if math.Abs(mean[1]-mean[0]-4) > 0.4 || math.Abs(mean[0]+mean[1]) > 1e-9 {
		t.Errorf("effects of levels 0 and 2 are %v, want them 4 apart around 0", mean)
	}
	if spread := covariance.At(0, 0) + covariance.At(1, 1) - 2*covariance.At(0, 1); spread <= 0 || spread > 0.1 {
		t.Errorf("the variance of their difference is %v", spread)
	}
	if mean, _ := m.Effects([][][]int{column(1, 0), column(1, 1), column(1, 2)}); math.Abs(mean[2]-mean[0]) > 0.3 {
		t.Errorf("effects of a knob without any are %v", mean)
	}
}

func BenchmarkFit(b *testing.B) {
	random := rand.New(rand.NewPCG(7, 8))
	knobs := make([]Knob, 13)
	for i := range knobs {
		knobs[i] = Knob{Levels: 6, Position: []float64{0, 0.2, 0.4, 0.6, 0.8, 1}}
	}
	for _, n := range []int{20, 40, 120} {
		data := draw(random, knobs, n)
		b.Run(string(rune('0'+n/100))+string(rune('0'+n/10%10))+"0", func(b *testing.B) {
			for b.Loop() {
				if _, err := Fit(knobs, data, DefaultPriors(), 20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
