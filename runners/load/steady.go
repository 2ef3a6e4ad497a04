package load

import (
	"time"

	"nocturne/runners"
)

// steadyGenerations is how many requests for each place a closed loop must have
// before the first of each place is left out as the start.
const steadyGenerations = 3

// steady counts what happened while the load was at its full height: between
// the ramp at the start and the stragglers at the end, whose length says more
// about the longest answer than about the server.
//
// In a closed loop the window opens when as many requests have ended as there
// are places (at once, when there are less than three for each place), and
// closes when a place first finds nothing left to send. In an open loop it opens
// with the first request that ends and closes when the last one is due. All
// times are in unscaled units since the start of the round.
type steady struct {
	places int // requests that end before the window opens; 0: it opens at once
	ended  int

	opened, closed bool
	from, to       time.Duration

	tokens   float64 // delivered within the window, of requests that completed
	requests int     // completed within the window
	unknown  bool    // some response did not tell its tokens
}

func newSteady(spec RoundSpec) steady {
	s := steady{places: spec.Concurrency}
	switch {
	case spec.Arrival.Open():
		s.places = 1
	case len(spec.Prompts) < steadyGenerations*spec.Concurrency:
		s.places = 0
	}
	s.opened = s.places == 0
	return s
}

// end notes that a request has ended, well or not.
func (s *steady) end(at time.Duration) {
	s.ended++
	if !s.opened && s.ended == s.places {
		s.opened, s.from = true, at
	}
}

// close ends the window; only the first call counts.
func (s *steady) close(at time.Duration) {
	if !s.closed {
		s.closed, s.to = true, at
	}
}

// within tells whether an instant lies in the window as far as it is known. What
// is noted before the window closes happened before.
func (s *steady) within(at time.Duration) bool {
	return s.opened && at > s.from && (!s.closed || at <= s.to)
}

// complete adds a response that ran well. at turns a time of the response into
// one since the start of the round.
func (s *steady) complete(r *response, end time.Duration, at func(time.Time) time.Duration) {
	if s.within(end) {
		s.requests++
	}
	if r.produced == unknown {
		s.unknown = true
		return
	}
	if !s.opened || r.chunks == 0 {
		return
	}
	perChunk := float64(r.produced) / float64(r.chunks)
	tokensOf := func(told int) float64 {
		if r.counted {
			return float64(told)
		}
		return perChunk
	}
	chunk := r.first
	if s.within(at(chunk)) {
		s.tokens += tokensOf(r.firstTokens)
	}
	for _, g := range r.gaps {
		chunk = chunk.Add(g.length)
		if s.within(at(chunk)) {
			s.tokens += tokensOf(g.tokens)
		}
	}
}

// length of the window; false when there was none.
func (s *steady) length() (time.Duration, bool) {
	return s.to - s.from, s.opened && s.closed && s.to > s.from
}

// steadySum is the steady windows of several rounds together.
type steadySum struct {
	length   time.Duration
	tokens   float64
	requests int
	// missing says that a round had no window, and unknown that some response
	// within one did not tell its tokens.
	missing, unknown bool
}

// sum is the window of one round.
func (s *steady) sum() steadySum {
	length, had := s.length()
	return steadySum{length: length, tokens: s.tokens, requests: s.requests, missing: !had, unknown: s.unknown}
}

func (s *steadySum) join(other steadySum) {
	s.length += other.length
	s.tokens += other.tokens
	s.requests += other.requests
	s.missing = s.missing || other.missing
	s.unknown = s.unknown || other.unknown
}

func (s *steadySum) put(m runners.Metrics) {
	if s.missing || s.requests == 0 {
		return
	}
	seconds := s.length.Seconds()
	m[MetricSteadyDuration] = seconds
	m[MetricSteadyRequestThroughput] = float64(s.requests) / seconds
	if !s.unknown {
		m[MetricSteadyOutputThroughput] = s.tokens / seconds
	}
}
