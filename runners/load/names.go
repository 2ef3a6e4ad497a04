package load

// Names of metrics that other code asks for. Latency metrics are named
// <statistic>_<family>_ms: mean, median, std, p90, p95, p99 of ttft, tpot, itl,
// e2el (as `vllm bench serve`), chunk_gap and connect.
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

	MetricAcceptanceLength = "spec_decode_acceptance_length"
	MetricAcceptanceRate   = "spec_decode_acceptance_rate" // percent
	MetricDrafts           = "spec_decode_num_drafts"
	MetricDraftTokens      = "spec_decode_draft_tokens"
	MetricAcceptedTokens   = "spec_decode_accepted_tokens"
)

// families and statistics make up the names of latency metrics.
var (
	families   = []string{"ttft", "tpot", "itl", "e2el", "chunk_gap", "connect"}
	statistics = []string{"mean", "median", "std", "p90", "p95", "p99"}
)

// MetricNames lists every metric that a round may report.
func MetricNames() []string {
	names := []string{
		MetricDuration, MetricCompleted, MetricFailed, MetricInputTokens, MetricOutputTokens, MetricRequestThroughput,
		MetricOutputThroughput, MetricTotalTokenThroughput, MetricMaxConcurrent, MetricSuccessRate, MetricAchievedConcurrency,
		MetricLengthRatio, MetricTokensPerChunk, MetricCachedTokens, MetricAcceptanceLength, MetricAcceptanceRate,
		MetricDrafts, MetricDraftTokens, MetricAcceptedTokens,
	}
	for _, family := range families {
		for _, statistic := range statistics {
			names = append(names, statistic+"_"+family+"_ms")
		}
	}
	return names
}
