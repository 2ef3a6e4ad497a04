package load

import (
	"slices"
	"time"
)

// Percentile of a family of latencies, in milliseconds: ttft, tpot, e2el,
// client_queue_time, e2el_including_client_queue and schedule_delay from every
// request, itl and chunk_gap from their histograms. It is false when the round
// did not measure it.
func (o *RoundOutcome) Percentile(family string, percent float64) (float64, bool) {
	if _, measured := o.Metrics["mean_"+family+"_ms"]; !measured {
		return 0, false
	}
	switch family {
	case "itl":
		return o.tally.itl.percentile(percent), true
	case "chunk_gap":
		return o.tally.gap.percentile(percent), true
	}
	lengths := o.tally.lengths(family)
	if len(lengths) == 0 {
		return 0, false
	}
	slices.Sort(lengths)
	return interpolated(lengths, percent), true
}

// lengths are those of the requests that have the family.
func (t *tally) lengths(family string) []time.Duration {
	var lengths []time.Duration
	for _, s := range t.requests {
		if length, ok := s.length(family); ok {
			lengths = append(lengths, length)
		}
	}
	return lengths
}

func (s sample) length(family string) (time.Duration, bool) {
	switch family {
	case "ttft":
		return s.ttft, s.ttft >= 0
	case "tpot":
		each, _ := s.tpot()
		return each, s.ttft >= 0 && s.produced > 1
	case "e2el":
		return s.latency, true
	case "client_queue_time":
		return s.queue, true
	case "e2el_including_client_queue":
		return s.latency + s.queue, true
	case "schedule_delay":
		return s.delay, true
	}
	return 0, false
}
