package local

import (
	"math"

	"gonum.org/v1/gonum/stat"

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
