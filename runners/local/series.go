package local

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"nocturne/runners"
)

// series decides how many rounds a load point gets.
type series struct {
	rounds runners.Rounds
	done   int
	values []float64 // of the metric whose precision counts
}

func newSeries(rounds runners.Rounds) *series { return &series{rounds: rounds} }

func (s *series) add(metrics runners.Metrics) {
	s.done++
	if value, ok := metrics[s.rounds.Metric]; ok {
		s.values = append(s.values, value)
	}
}

// wants tells whether another round is worth it.
func (s *series) wants() bool {
	if s.rounds.Fixed > 0 {
		return s.done < s.rounds.Fixed
	}
	if s.done < max(s.rounds.Min, 1) {
		return true
	}
	return s.done < s.rounds.Max && !s.precise()
}

// precise tells whether the mean is known well enough: its standard error, from
// the spread of the rounds, is at most the wanted share of it.
func (s *series) precise() bool {
	if len(s.values) < 2 {
		return false
	}
	mean, deviation := stat.MeanStdDev(s.values, nil)
	return stat.StdErr(deviation, float64(len(s.values))) <= s.rounds.Precision*math.Abs(mean)
}

// A trend must be this steep over the whole series, as a share of the first
// value, and this unlikely to be chance, to be told.
const (
	leastTrend  = 0.03
	trendChance = 0.05
	// trendRounds is the shortest series in which a trend can be told from noise.
	trendRounds = 4
)

// trend finds a metric that moved one way from round to round, as it does when
// GPUs heat up: the change from the first value to the last as a share of the
// first, and whether the slope of a straight line through the rounds is steep and
// is no chance (Student's t of the slope, one-sided).
func (s *series) trend() (change float64, found bool) {
	n := len(s.values)
	if n < trendRounds || s.values[0] == 0 {
		return 0, false
	}
	order := make([]float64, n)
	for i := range order {
		order[i] = float64(i)
	}
	change = s.values[n-1]/s.values[0] - 1
	correlation := stat.Correlation(order, s.values, nil)
	freedom := float64(n - 2)
	t := math.Abs(correlation) * math.Sqrt(freedom/(1-correlation*correlation))
	chance := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Survival(t)
	return change, math.Abs(change) >= leastTrend && chance < trendChance
}
