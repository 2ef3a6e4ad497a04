package load

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Arrival is how requests come in an open loop: at times of their own, however
// busy the server is. The zero value is a closed loop.
type Arrival struct {
	// Rate is the mean number of requests a second; 0 and +Inf mean that there is
	// no schedule.
	Rate float64
	// Burstiness is the shape of the gamma distribution from which the gaps between
	// requests are drawn: 1 is a Poisson process, less comes in bursts, more is
	// steadier, and +Inf is an even beat. 0 stands for 1.
	Burstiness float64
	// Seed draws the gaps: equal seeds give equal schedules.
	Seed uint64
}

// Open tells whether there is a schedule.
func (a Arrival) Open() bool { return a.Rate > 0 && !math.IsInf(a.Rate, 1) }

func (a Arrival) check() error {
	if a.Rate < 0 || math.IsNaN(a.Rate) || a.Burstiness < 0 || math.IsNaN(a.Burstiness) {
		return fmt.Errorf("an arrival of %g requests/s with burstiness %g: both must be positive", a.Rate, a.Burstiness)
	}
	return nil
}

// schedule is when each of n requests is due after the start of the round.
//
// Gaps are gamma distributed with shape Burstiness and mean 1/Rate, and are then
// stretched together so that the last request is due at exactly n/Rate: the
// rate that is offered does not depend on the seed. Both as
// vllm-project/vllm vllm/benchmarks/serve.py get_request does.
func (a Arrival) schedule(n int) []time.Duration {
	shape := a.Burstiness
	if shape == 0 {
		shape = 1
	}
	gaps := distuv.Gamma{Alpha: shape, Beta: shape * a.Rate, Src: source("arrival", a.Seed)}
	at, total := make([]float64, n), 0.0
	for i := range at {
		if math.IsInf(shape, 1) {
			total += 1 / a.Rate
		} else {
			total += gaps.Rand()
		}
		at[i] = total
	}
	due := make([]time.Duration, n)
	for i := range due {
		share := float64(i+1) / float64(n) // an even beat, should no gap be longer than 0
		if total > 0 {
			share = at[i] / total
		}
		due[i] = time.Duration(share * float64(n) / a.Rate * float64(time.Second))
	}
	return due
}
