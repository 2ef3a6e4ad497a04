package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Goodput is the service level that a request must keep to count as good; a
// limit of 0 is none. A request of a single token has a TPOT of 0, and one whose
// tokens are unknown keeps no limit on TPOT.
//
// As `vllm bench serve --goodput` counts it (DistServe, arXiv 2401.09670).
type Goodput struct {
	TTFT, TPOT, E2EL time.Duration
}

// ParseGoodput reads limits in milliseconds: "ttft:500", "tpot:50", "e2el:5000".
func ParseGoodput(pairs []string) (Goodput, error) {
	var g Goodput
	limits := map[string]*time.Duration{"ttft": &g.TTFT, "tpot": &g.TPOT, "e2el": &g.E2EL}
	names := []string{"ttft", "tpot", "e2el"}
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, ":")
		value, err := strconv.ParseFloat(text, 64)
		if !slices.Contains(names, name) || err != nil || !(value > 0 && value < 1e12) {
			return Goodput{}, fmt.Errorf("service level %q: expected NAME:MILLISECONDS with a name of %s, such as ttft:500",
				pair, strings.Join(names, ", "))
		}
		*limits[name] = time.Duration(value * float64(time.Millisecond))
	}
	return g, nil
}

// set tells whether there is any limit.
func (g Goodput) set() bool { return g != Goodput{} }

// kept tells whether a completed request kept every limit.
func (g Goodput) kept(s sample) bool {
	tpot, known := s.tpot()
	return (g.TTFT == 0 || s.ttft >= 0 && s.ttft <= g.TTFT) &&
		(g.TPOT == 0 || known && tpot <= g.TPOT) &&
		(g.E2EL == 0 || s.latency <= g.E2EL)
}

// tpot is the time of each output token after the first; false when it is
// unknown.
func (s sample) tpot() (time.Duration, bool) {
	switch {
	case s.ttft < 0 || s.produced == unknown:
		return 0, false
	case s.produced <= 1:
		return 0, true
	}
	return (s.latency - s.ttft) / time.Duration(s.produced-1), true
}
