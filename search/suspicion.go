package search

import (
	"maps"
	"slices"
)

// suspicion is what crashes say about the levels of single knobs, for the
// samplers that have no model of their own. A cause of the form "knob at this
// level", or for ordered knobs "at this level or beyond", is suspected while it
// covers a crash and no configuration that ran.
type suspicion struct {
	crashes int
	// shares by knob and level: the largest share of all crashes that a
	// suspected cause which covers the level explains.
	shares [][]float64
}

func (k *knowledge) newSuspicion() suspicion {
	return k.suspicionOf(func(string) bool { return true })
}

// suspicions are those of each cause of at least so many crashes.
func (k *knowledge) suspicions(least int) []suspicion {
	counts := make(map[string]int)
	for i := range k.trials {
		if t := &k.trials[i]; t.crashed {
			counts[t.failure]++
		}
	}
	var list []suspicion
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		if counts[cause] >= least {
			list = append(list, k.suspicionOf(func(failure string) bool { return failure == cause }))
		}
	}
	return list
}

// suspicionOf looks at the crashes whose cause is wanted.
func (k *knowledge) suspicionOf(wanted func(failure string) bool) suspicion {
	s := suspicion{shares: make([][]float64, len(k.space.knobs))}
	crashed := make([][]int, len(k.space.knobs))
	ran := make([][]int, len(k.space.knobs))
	for i := range k.space.knobs {
		n := len(k.space.knobs[i].Levels)
		s.shares[i], crashed[i], ran[i] = make([]float64, n), make([]int, n), make([]int, n)
	}
	for t := range k.trials {
		counts := ran
		if k.trials[t].crashed && !wanted(k.trials[t].failure) {
			continue
		}
		if k.trials[t].crashed {
			counts = crashed
			s.crashes++
		}
		for i, level := range k.trials[t].at {
			if level != inactive {
				counts[i][level]++
			}
		}
	}
	if s.crashes == 0 {
		return s
	}
	for i := range k.space.knobs {
		knob := &k.space.knobs[i]
		for level := range knob.Levels {
			s.suspect(i, crashed[i][level], ran[i][level], level, level+1)
		}
		if knob.ordered() {
			s.suspectEnds(i, knob, crashed[i], ran[i])
		}
	}
	return s
}

// suspect raises the share of the levels from first to before end.
func (s *suspicion) suspect(i, crashed, ran, first, end int) {
	if crashed == 0 || ran > 0 {
		return
	}
	share := float64(crashed) / float64(s.crashes)
	for level := first; level < end; level++ {
		s.shares[i][level] = max(s.shares[i][level], share)
	}
}

// suspectEnds tries the causes "this level or more" and "this level or less";
// unset has no place in the order.
func (s *suspicion) suspectEnds(i int, knob *Knob, crashed, ran []int) {
	first := 0
	if knob.Levels[0].IsUnset() {
		first = 1
	}
	crashes, runs := 0, 0
	for level := len(crashed) - 1; level >= first; level-- {
		crashes, runs = crashes+crashed[level], runs+ran[level]
		s.suspect(i, crashes, runs, level, len(crashed))
	}
	crashes, runs = 0, 0
	for level := first; level < len(crashed); level++ {
		crashes, runs = crashes+crashed[level], runs+ran[level]
		s.suspect(i, crashes, runs, first, level+1)
	}
}

// of is how suspect a configuration is: the largest share of the crashes that a
// suspected cause in it explains, from 0 to 1.
func (s *suspicion) of(p point) float64 {
	if s.crashes == 0 {
		return 0
	}
	worst := 0.0
	for i, level := range p {
		if level != inactive {
			worst = max(worst, s.shares[i][level])
		}
	}
	return worst
}
