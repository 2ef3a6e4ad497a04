package load

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"nocturne/runners"
)

// VLLMMeta is what a result file of `vllm bench serve` says beside the metrics.
type VLLMMeta struct {
	Date           time.Time
	Backend        string // "openai", "openai-chat", "sglang"
	Label          string
	Model          string
	Tokenizer      string // empty: the model
	MaxConcurrency int
	// Metadata are further fields, as --metadata KEY=VALUE writes them. They
	// override no other field.
	Metadata map[string]string
}

// WriteVLLMResult writes the outcome as one JSON object that readers of
// `vllm bench serve --save-result` accept; with details kept, as with
// --save-detailed. There ITL is the time between chunks, which this package
// calls chunk_gap; everything else has the same meaning in both. What was not
// measured is null, token counts of failed requests are 0.
//
// Fields and their order of precedence follow vllm-project/vllm
// vllm/benchmarks/serve.py.
func WriteVLLMResult(w io.Writer, outcome RoundOutcome, meta VLLMMeta) error {
	result := map[string]any{}
	for name, v := range meta.Metadata {
		result[name] = v
	}
	tokenizer := meta.Tokenizer
	if tokenizer == "" {
		tokenizer = meta.Model
	}
	var label any
	if meta.Label != "" {
		label = meta.Label
	}
	maps.Copy(result, map[string]any{
		"date": meta.Date.Format("20060102-150405"), "endpoint_type": meta.Backend, "backend": meta.Backend,
		"label": label, "model_id": meta.Model, "tokenizer_id": tokenizer,
		"num_prompts":  len(outcome.tally.requests) + outcome.tally.failed(),
		"request_rate": "inf", "burstiness": 1.0, "max_concurrency": meta.MaxConcurrency,
		"request_goodput": nil,
	})
	putVLLMMetrics(result, outcome)
	if outcome.Details != nil {
		putVLLMDetails(result, outcome.Details)
	}
	encoder := json.NewEncoder(w)
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("writing the result file: %w", err)
	}
	return nil
}

// vllmCounts are fields that readers take for whole numbers, or expect to be
// there.
var vllmCounts = []string{
	MetricCompleted, MetricFailed, MetricInputTokens, MetricOutputTokens, MetricMaxConcurrent,
}

func putVLLMMetrics(result map[string]any, outcome RoundOutcome) {
	for _, name := range []string{MetricDuration, MetricRequestThroughput, MetricOutputThroughput, MetricTotalTokenThroughput} {
		result[name] = orNull(outcome.Metrics, name)
	}
	for _, name := range vllmCounts {
		result[name] = nil
		if v, ok := outcome.Metrics[name]; ok {
			result[name] = int64(v)
		}
	}
	for family, ours := range map[string]string{"ttft": "ttft", "tpot": "tpot", "itl": "chunk_gap", "e2el": "e2el"} {
		for _, statistic := range statistics {
			result[statistic+"_"+family+"_ms"] = orNull(outcome.Metrics, statistic+"_"+ours+"_ms")
		}
	}
	for name, v := range outcome.Metrics {
		if strings.HasPrefix(name, "spec_decode_") {
			result[name] = v
		}
	}
	if outcome.Counters != nil {
		if rates := outcome.Counters.PositionRates(); rates != nil {
			result["spec_decode_per_position_acceptance_rates"] = rates
		}
	}
}

func orNull(m runners.Metrics, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return nil
}

// putVLLMDetails writes the lists of --save-detailed, in seconds, an entry for
// each request in the order of the prompts.
func putVLLMDetails(result map[string]any, details []Detail) {
	n := len(details)
	inputs, outputs := make([]int, n), make([]int, n)
	ttfts, starts, latencies := make([]float64, n), make([]float64, n), make([]float64, n)
	gaps, errors := make([][]float64, n), make([]string, n)
	for i, d := range details {
		inputs[i], outputs[i] = max(d.InputTokens, 0), max(d.OutputTokens, 0)
		ttfts[i], starts[i], latencies[i] = d.TTFT.Seconds(), d.Start.Seconds(), d.Latency.Seconds()
		gaps[i] = make([]float64, len(d.Gaps))
		for j, g := range d.Gaps {
			gaps[i][j] = g.Seconds()
		}
		if d.Error != nil {
			errors[i] = d.Error.Error()
		}
	}
	maps.Copy(result, map[string]any{
		"input_lens": inputs, "output_lens": outputs, "ttfts": ttfts, "itls": gaps,
		"start_times": starts, "latencies": latencies, "errors": errors,
		"max_output_tokens_per_s": peakTokenRate(details),
	})
}

// peakTokenRate is the greatest number of tokens in any whole second since the
// first request. A response's tokens are spread evenly over its chunks.
func peakTokenRate(details []Detail) float64 {
	seconds := map[int64]float64{}
	for _, d := range details {
		if d.Error != nil || d.OutputTokens <= 0 || d.TTFT <= 0 {
			continue
		}
		perChunk := float64(d.OutputTokens) / float64(len(d.Gaps)+1)
		at := d.Start + d.TTFT
		seconds[int64(at/time.Second)] += perChunk
		for _, g := range d.Gaps {
			at += g
			seconds[int64(at/time.Second)] += perChunk
		}
	}
	peak := 0.0
	for _, tokens := range seconds {
		peak = max(peak, tokens)
	}
	return peak
}
