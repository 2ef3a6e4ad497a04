package servers

import (
	"slices"
	"time"

	"nocturne/runners"
)

// Mark is a moment of a load: how far it was after how long.
type Mark struct {
	Phase runners.Phase `json:"phase"`
	After time.Duration `json:"after"`
}

// Course is a load from launch to ready, as its log showed it.
type Course struct {
	Marks  []Mark        `json:"marks"`
	Length time.Duration `json:"length"`
}

// Remaining estimates how long a load will still take that has come to the last
// of its marks, by earlier loads of the same model on the same hardware. It is
// false when no earlier load passed the same place.
//
// An earlier load says how long it took from that place on. What is left of the
// current phase is scaled by how much slower or faster the phase goes this time:
// weights come from a cold disk or a warm cache, while the phases after them do
// not depend on that. The median of the earlier loads counts.
func Remaining(earlier []Course, marks []Mark, elapsed time.Duration) (left time.Duration, known bool) {
	if len(marks) == 0 {
		return 0, false
	}
	now := placeOf(marks)
	var estimates []time.Duration
	for _, course := range earlier {
		if estimate, passed := course.rest(now); passed {
			estimates = append(estimates, estimate)
		}
	}
	if len(estimates) == 0 {
		return 0, false
	}
	slices.Sort(estimates)
	middle := len(estimates) / 2
	left = estimates[middle]
	if len(estimates)%2 == 0 {
		left = (estimates[middle-1] + left) / 2
	}
	return max(left-(elapsed-now.after), 0), true
}

// place is where a load is: within which phase, counted by how often it was
// entered, because a draft model goes through the phases again.
type place struct {
	phase   string
	entered int
	percent float64
	after   time.Duration // when it got there
	inside  time.Duration // how long it has been in the phase
}

// placeOf is the place of the last mark.
func placeOf(marks []Mark) place {
	stretches := stretchesOf(marks)
	last := stretches[len(stretches)-1]
	mark := last.marks[len(last.marks)-1]
	return place{last.phase, last.entered, mark.Phase.Percent, mark.After, mark.After - last.marks[0].After}
}

// stretch is a phase from its first mark to the one before the next phase.
type stretch struct {
	phase   string
	entered int
	marks   []Mark
}

func stretchesOf(marks []Mark) []stretch {
	var stretches []stretch
	times := map[string]int{}
	for _, mark := range marks {
		if n := len(stretches); n > 0 && stretches[n-1].phase == mark.Phase.Name && mark.Phase.Percent >= lastPercent(stretches[n-1]) {
			stretches[n-1].marks = append(stretches[n-1].marks, mark)
			continue
		}
		times[mark.Phase.Name]++
		stretches = append(stretches, stretch{mark.Phase.Name, times[mark.Phase.Name], []Mark{mark}})
	}
	return stretches
}

func lastPercent(s stretch) float64 { return s.marks[len(s.marks)-1].Phase.Percent }

// Bounds of how much slower or faster a phase may be taken to go than before.
const minPace, maxPace = 0.2, 5.0

// rest is how long the course took from a place on.
func (c Course) rest(now place) (time.Duration, bool) {
	stretches := stretchesOf(c.Marks)
	at := slices.IndexFunc(stretches, func(s stretch) bool { return s.phase == now.phase && s.entered == now.entered })
	if at < 0 {
		return 0, false
	}
	began, ended := stretches[at].marks[0].After, c.Length
	if at+1 < len(stretches) {
		ended = stretches[at+1].marks[0].After
	}
	there := stretches[at].when(now.percent)
	pace := 1.0
	if spent := there - began; spent > 0 && now.inside > 0 {
		pace = min(max(now.inside.Seconds()/spent.Seconds(), minPace), maxPace)
	}
	return time.Duration(pace*float64(ended-there)) + c.Length - ended, true
}

// when is the moment at which the stretch had come to a percentage, between two
// marks in proportion.
func (s stretch) when(percent float64) time.Duration {
	before := s.marks[0]
	for _, mark := range s.marks[1:] {
		if mark.Phase.Percent > percent {
			share := (percent - before.Phase.Percent) / (mark.Phase.Percent - before.Phase.Percent)
			return before.After + time.Duration(max(share, 0)*float64(mark.After-before.After))
		}
		before = mark
	}
	return before.After
}
