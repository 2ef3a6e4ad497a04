package sim

import (
	"fmt"
	"math"
	"net/http"
	"strings"
)

func round(x float64, digits int) float64 {
	power := math.Pow10(digits)
	return math.Round(x*power) / power
}

// typed turns the text of a flag into what JSON should show: null when it is not
// set.
func (f flag) typed(value string) any {
	switch {
	case f.kind == switchFlag:
		return value == "true"
	case value == "":
		return nil
	case f.kind == intFlag:
		var n int
		_, _ = fmt.Sscan(value, &n) // checked when it was parsed
		return n
	case f.kind == floatFlag:
		var x float64
		_, _ = fmt.Sscan(value, &x)
		return x
	default:
		return value
	}
}

// metrics is the Prometheus page, in the names of SGLang.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	c := s.engine.snapshot()
	perf := s.launch.performance
	var b strings.Builder
	label := fmt.Sprintf("{model_name=%q}", s.options.modelID())
	metric := func(kind, name, help string, value float64) {
		fmt.Fprintf(&b, "# HELP sglang:%s %s\n# TYPE sglang:%s %s\nsglang:%s%s %g\n", name, help, name, kind, name, label, value)
	}
	metric("gauge", "num_running_reqs", "The number of running requests.", float64(c.running))
	metric("gauge", "num_queue_reqs", "The number of requests in the waiting queue.", float64(c.waiting))
	metric("gauge", "gen_throughput", "The generation throughput (token/s).", c.lastThroughput)
	metric("gauge", "cache_hit_rate", "The prefix cache hit rate.", ratio(c.cachedTokens, c.promptTokens))
	metric("counter", "prompt_tokens_total", "Number of prefill tokens processed.", float64(c.promptTokens))
	metric("counter", "generation_tokens_total", "Number of generation tokens processed.", float64(c.generated))
	metric("counter", "cached_tokens_total", "Number of cached prompt tokens.", float64(c.cachedTokens))
	metric("counter", "num_requests_total", "Number of requests processed.", float64(c.requests))
	metric("counter", "num_aborted_requests_total", "Number of requests aborted.", float64(c.aborted))
	if perf.steps > 0 {
		length := 0.0
		if c.cycles > 0 {
			length = 1 + ratio(c.correct, c.cycles)
		}
		metric("gauge", "spec_accept_length", "The average acceptance length of speculative decoding.", length)
		metric("gauge", "spec_accept_rate", "The average acceptance rate of speculative decoding.", ratio(c.correct, c.drafts))
		metric("gauge", "spec_num_steps", "The number of draft steps.", float64(perf.steps))
		metric("gauge", "spec_num_draft_tokens", "The number of draft tokens.", float64(perf.verified))
		metric("counter", "spec_verify_calls_total", "Number of verify passes.", float64(c.cycles))
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
