package local

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nocturne/runners"
)

func seriesOf(values ...float64) *series {
	s := newSeries(runners.Rounds{Max: 100, Metric: "output_throughput"})
	for _, value := range values {
		s.add(runners.Metrics{"output_throughput": value})
	}
	return s
}

// F28: repeats of one configuration that fall by 14 % with heat are told, and
// noise is not.
func TestF28_TrendOverRounds(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		change float64
		found  bool
	}{
		{"heat", []float64{21.086, 18.929, 18.775, 17.456, 18.051}, -0.144, true},
		{"a straight fall", []float64{100, 95, 90, 85}, -0.15, true},
		{"a rise", []float64{80, 85, 91, 95, 101}, 0.2625, true},
		{"noise", []float64{20.1, 19.8, 20.3, 19.9, 20.0, 20.2}, 0.005, false},
		{"one outlier", []float64{20, 14, 20, 20, 20}, 0, false},
		{"steady and tiny", []float64{100, 99.9, 99.8, 99.7}, -0.003, false},
		{"too few", []float64{21, 18, 16}, 0, false},
		{"constant", []float64{5, 5, 5, 5, 5}, 0, false},
		{"zero", []float64{0, 0, 0, 0}, 0, false},
	} {
		change, found := seriesOf(test.values...).trend()
		if found != test.found || math.Abs(change-test.change) > 1e-3 {
			t.Errorf("%s: %.4f %t, want %.4f %t", test.name, change, found, test.change, test.found)
		}
	}
}

// A trend read backwards is one as well, of the other sign; noise of a thousandth
// never is.
func TestSeries_TrendIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 2), 4, 8).Draw(t, "values")
		change, found := seriesOf(values...).trend()
		backwards := slices.Clone(values)
		slices.Reverse(backwards)
		other, also := seriesOf(backwards...).trend()
		if steep := math.Abs(change) >= leastTrend && math.Abs(other) >= leastTrend; steep && found != also {
			t.Fatalf("%v: %t, backwards %t", values, found, also)
		}
		if math.Abs((1+change)*(1+other)-1) > 1e-9 && len(values) >= trendRounds {
			t.Fatalf("%v: %g and %g", values, change, other)
		}
		calm := slices.Clone(values)
		for i := range calm {
			calm[i] = 100 + calm[i]/20
		}
		if _, found := seriesOf(calm...).trend(); found {
			t.Fatalf("%v has a trend", calm)
		}
	})
}
