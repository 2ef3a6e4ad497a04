package load

// Names of metrics that other code asks for. Latency metrics are named
// <statistic>_<family>_ms: mean, median, std, p90, p95, p99 of ttft, tpot, itl,
// e2el, client_queue_time and e2el_including_client_queue (as `vllm bench
// serve`), chunk_gap, connect, schedule_delay and client_lag.
const (
	MetricDuration             = "duration" // seconds
	MetricCompleted            = "completed"
	MetricFailed               = "failed"
	MetricInputTokens          = "total_input_tokens"
	MetricOutputTokens         = "total_output_tokens"
	MetricRequestThroughput    = "request_throughput"     // completed requests/s
	MetricOutputThroughput     = "output_throughput"      // output tokens/s
	MetricTotalTokenThroughput = "total_token_throughput" // input and output tokens/s
	MetricMaxConcurrent        = "max_concurrent_requests"
	MetricPeakOutput           = "max_output_tokens_per_s" // of any second
	// MetricGoodput counts completed requests that kept the service level, each
	// second.
	MetricGoodput = "request_goodput"
	// MetricRequestRate is the rate that an open loop offers, requests/s.
	MetricRequestRate = "request_rate"
	// The steady metrics are those of the window between the ramp at the start and
	// the stragglers at the end; see the package comment.
	MetricSteadyDuration          = "steady_duration" // seconds
	MetricSteadyRequestThroughput = "steady_request_throughput"
	MetricSteadyOutputThroughput  = "steady_output_throughput"
	// MetricSuccessRate is completed / (completed + failed), 0 to 1.
	MetricSuccessRate = "success_rate"
	// MetricAchievedConcurrency is the mean number of requests in flight.
	MetricAchievedConcurrency = "achieved_concurrency"
	// MetricLengthRatio is output tokens produced / asked for, of completed
	// requests.
	MetricLengthRatio = "output_length_ratio"
	// MetricTokensPerChunk is output tokens / chunks. Under speculation it is near
	// the acceptance length when the server sends each step as one chunk.
	MetricTokensPerChunk = "tokens_per_chunk"
	// MetricCachedTokens counts input tokens that the server says it took from
	// its prefix cache.
	MetricCachedTokens = "cached_input_tokens"

	// MetricClientBusy is the share of the processor time at hand that the load
	// generator itself used, 0 to 1.
	MetricClientBusy = "client_busy"

	// From the server's counters.
	MetricPrefixQueries = "prefix_cache_queries"  // input tokens looked up
	MetricPrefixHits    = "prefix_cache_hits"     // input tokens found
	MetricPrefixHitRate = "prefix_cache_hit_rate" // 0 to 1
	MetricPreemptions   = "preemptions"           // requests evicted and computed again

	// Of the GPUs, through the round.
	MetricGPUClock       = "mean_gpu_sm_clock_mhz"
	MetricGPULeastClock  = "min_gpu_sm_clock_mhz"
	MetricGPUPower       = "mean_gpu_power_w" // of one GPU
	MetricGPUTemperature = "max_gpu_temperature_c"
	// MetricGPUPowerCapped and MetricGPUSlowed are shares of the time, 0 to 1, of the
	// GPU that had most of it: under the software power cap, and slowed down by the
	// hardware.
	MetricGPUPowerCapped = "gpu_power_capped"
	MetricGPUSlowed      = "gpu_slowed_down"

	MetricAcceptanceLength = "spec_decode_acceptance_length"
	MetricAcceptanceRate   = "spec_decode_acceptance_rate" // percent
	MetricDrafts           = "spec_decode_num_drafts"
	MetricDraftTokens      = "spec_decode_draft_tokens"
	MetricAcceptedTokens   = "spec_decode_accepted_tokens"
)

// families and statistics make up the names of latency metrics.
var (
	families = []string{
		"ttft", "tpot", "itl", "e2el", "chunk_gap", "connect", "schedule_delay", "client_queue_time", "e2el_including_client_queue", "client_lag",
	}
	statistics = []string{"mean", "median", "std", "p90", "p95", "p99"}
)

// MetricNames lists every metric that a round may report.
func MetricNames() []string {
	names := []string{
		MetricDuration, MetricCompleted, MetricFailed, MetricInputTokens, MetricOutputTokens, MetricRequestThroughput,
		MetricOutputThroughput, MetricTotalTokenThroughput, MetricMaxConcurrent, MetricPeakOutput, MetricGoodput, MetricRequestRate,
		MetricSteadyDuration, MetricSteadyRequestThroughput, MetricSteadyOutputThroughput,
		MetricSuccessRate, MetricAchievedConcurrency, MetricLengthRatio, MetricTokensPerChunk, MetricCachedTokens, MetricClientBusy,
		MetricPrefixQueries, MetricPrefixHits, MetricPrefixHitRate, MetricPreemptions,
		MetricGPUClock, MetricGPULeastClock, MetricGPUPower, MetricGPUTemperature, MetricGPUPowerCapped, MetricGPUSlowed,
		MetricAcceptanceLength, MetricAcceptanceRate, MetricDrafts, MetricDraftTokens, MetricAcceptedTokens,
	}
	for _, family := range families {
		for _, statistic := range statistics {
			names = append(names, statistic+"_"+family+"_ms")
		}
	}
	return names
}
