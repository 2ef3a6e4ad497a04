package load

// MetricNames lists every metric that a round may report.
func MetricNames() []string {
	names := []string{
		MetricDuration, MetricCompleted, MetricFailed, MetricInputTokens, MetricOutputTokens, MetricRequestThroughput,
		MetricOutputThroughput, MetricTotalTokenThroughput, MetricMaxConcurrent, MetricSuccessRate, MetricAchievedConcurrency,
		MetricLengthRatio, MetricTokensPerChunk, MetricCachedTokens, MetricAcceptanceLength, MetricAcceptanceRate,
		MetricDrafts, MetricDraftTokens, MetricAcceptedTokens,
	}
	for _, family := range []string{"ttft", "tpot", "itl", "e2el", "chunk_gap", "connect"} {
		for _, statistic := range []string{"mean", "median", "std", "p90", "p95", "p99"} {
			names = append(names, statistic+"_"+family+"_ms")
		}
	}
	return names
}
