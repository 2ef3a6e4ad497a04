package load

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// gapsOf are the seconds between the requests of a schedule.
func gapsOf(due []time.Duration) []float64 {
	gaps, last := make([]float64, len(due)), time.Duration(0)
	for i, at := range due {
		gaps[i], last = (at - last).Seconds(), at
	}
	return gaps
}

// Gaps have the mean 1/rate and, for a gamma distribution of shape b, the
// coefficient of variation 1/sqrt(b).
func TestArrival_Moments(t *testing.T) {
	for _, burstiness := range []float64{0.25, 0.5, 0, 1, 4, 100, math.Inf(1)} {
		t.Run(fmt.Sprint(burstiness), func(t *testing.T) {
			const rate, n = 25.0, 20_000
			gaps := gapsOf(Arrival{Rate: rate, Burstiness: burstiness, Seed: 3}.schedule(n))
			mean, deviation := stat.MeanStdDev(gaps, nil)
			if math.Abs(mean*rate-1) > 1e-6 {
				t.Errorf("mean gap %g s, want %g", mean, 1/rate)
			}
			want := 1 / math.Sqrt(burstiness)
			if burstiness == 0 {
				want = 1
			}
			if got := deviation / mean; math.Abs(got-want) > 0.05*want+1e-6 {
				t.Errorf("coefficient of variation %g, want %g", got, want)
			}
		})
	}
}

// The gaps of burstiness 1 are exponential: their distribution stays within the
// Kolmogorov bound at the level 0.001 of 1 - exp(-rate x).
func TestArrival_PoissonIsExponential(t *testing.T) {
	const rate, n = 8.0, 10_000
	for seed := range uint64(5) {
		gaps := gapsOf(Arrival{Rate: rate, Seed: seed}.schedule(n))
		slices.Sort(gaps)
		worst := 0.0
		for i, gap := range gaps {
			want := -math.Expm1(-rate * gap)
			worst = max(worst, math.Abs(want-float64(i)/n), math.Abs(want-float64(i+1)/n))
		}
		if bound := 1.95 / math.Sqrt(n); worst > bound {
			t.Errorf("seed %d: distance %g from the exponential distribution, at most %g", seed, worst, bound)
		}
	}
}

func TestArrival_Schedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Arrival{
			Rate:       rapid.Float64Range(0.01, 1e5).Draw(t, "rate"),
			Burstiness: rapid.SampledFrom([]float64{0, 1e-6, 0.1, 1, 7, 1e6, math.Inf(1)}).Draw(t, "burstiness"),
			Seed:       rapid.Uint64().Draw(t, "seed"),
		}
		n := rapid.IntRange(1, 300).Draw(t, "requests")
		due := a.schedule(n)
		if !slices.IsSorted(due) || due[0] < 0 {
			t.Fatalf("not in order: %v", due)
		}
		end := float64(n) / a.Rate
		if got := due[n-1].Seconds(); math.Abs(got-end) > 1e-6*end+2e-9 {
			t.Fatalf("the last request is due at %g s, want %g", got, end)
		}
		if !slices.Equal(due, a.schedule(n)) {
			t.Fatal("the same seed gives another schedule")
		}
	})
}
