package load

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"nocturne/runners"
)

// VLLMMeta is what a result of `vllm bench serve` says beside the metrics.
type VLLMMeta struct {
	Date      time.Time
	Backend   string // "openai", "openai-chat", "sglang"
	Label     string
	Model     string
	Tokenizer string // empty: the model
	// Prompts is how many there were; 0: as many as were sent.
	Prompts int
	// Arrival is that of the round.
	Arrival Arrival
	// MaxConcurrency is the bound on the requests in flight; 0: none.
	MaxConcurrency int
	// Percentiles are written beside those that always are, and shown in the
	// table; empty is the 99th.
	Percentiles []float64
	// Families are shown in the table: ttft, tpot, itl, e2el, client_queue_time,
	// e2el_including_client_queue; empty is the first three.
	Families []string
	// Metadata are further fields, as --metadata KEY=VALUE writes them. They
	// override no other field.
	Metadata map[string]string
}

// vllmFamilies maps a family of latencies of `vllm bench serve` to ours.
var vllmFamilies = map[string]string{
	"ttft": "ttft", "tpot": "tpot", "itl": "chunk_gap", "e2el": "e2el",
	"client_queue_time": "client_queue_time", "e2el_including_client_queue": "e2el_including_client_queue",
}

// WriteVLLMResult writes the outcome as one JSON object that readers of
// `vllm bench serve --save-result` accept; with details kept, as with
// --save-detailed. There ITL is the time between chunks, which this package
// calls chunk_gap; everything else has the same meaning in both. What was not
// measured is null, token counts of failed requests are 0. All our metrics stand
// under "nocturne".
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
	prompts := meta.Prompts
	if prompts == 0 {
		prompts = len(outcome.tally.requests) + outcome.tally.failed()
	}
	maps.Copy(result, map[string]any{
		"date": meta.Date.Format("20060102-150405"), "endpoint_type": meta.Backend, "backend": meta.Backend,
		"label": textOrNull(meta.Label), "model_id": meta.Model, "tokenizer_id": tokenizer, "num_prompts": prompts,
		"request_rate": rateOrInf(meta.Arrival), "burstiness": burstinessOf(meta.Arrival), "max_concurrency": positiveOrNull(meta.MaxConcurrency),
		"rtfx": 0.0, // of speech recognition
	})
	putVLLMMetrics(result, outcome, meta.Percentiles)
	if outcome.Details != nil {
		putVLLMDetails(result, outcome.Details)
	}
	result["nocturne"] = map[string]any{
		"metrics": outcome.Metrics, "outcome": outcome.Verdict.Outcome,
		"faults": append([]runners.Failure{}, outcome.Verdict.Failures...), "notes": append([]string{}, outcome.Notes...),
	}
	encoder := json.NewEncoder(w)
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("writing the result file: %w", err)
	}
	return nil
}

func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func positiveOrNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func rateOrInf(a Arrival) any {
	if a.Open() {
		return a.Rate
	}
	return "inf"
}

// burstinessOf is the shape; JSON has no infinity, and readers take a number.
func burstinessOf(a Arrival) any {
	if a.Burstiness == 0 {
		return 1.0
	}
	if _, err := json.Marshal(a.Burstiness); err != nil {
		return "inf"
	}
	return a.Burstiness
}

// vllmCounts are fields that readers take for whole numbers, or expect to be
// there.
var vllmCounts = []string{
	MetricCompleted, MetricFailed, MetricInputTokens, MetricOutputTokens, MetricMaxConcurrent,
}

// vllmDraftCounts are there with speculation only.
var vllmDraftCounts = []string{MetricDrafts, MetricDraftTokens, MetricAcceptedTokens}

func putVLLMMetrics(result map[string]any, outcome RoundOutcome, percentiles []float64) {
	for _, name := range []string{
		MetricDuration, MetricRequestThroughput, MetricGoodput, MetricOutputThroughput, MetricTotalTokenThroughput, MetricPeakOutput,
	} {
		result[name] = orNull(outcome, name)
	}
	for _, name := range vllmCounts {
		result[name] = nil
		if v, ok := outcome.Metrics[name]; ok {
			result[name] = int64(v)
		}
	}
	for family, ours := range vllmFamilies {
		if _, ok := outcome.Metrics["mean_"+ours+"_ms"]; !ok && strings.Contains(family, "client_queue") {
			continue // only an open loop with a bound has these
		}
		for _, statistic := range statistics {
			result[statistic+"_"+family+"_ms"] = orNull(outcome, statistic+"_"+ours+"_ms")
		}
		for _, percent := range percentiles {
			if v, ok := outcome.Percentile(ours, percent); ok {
				result["p"+percentWord(percent)+"_"+family+"_ms"] = v
			}
		}
	}
	for name, v := range outcome.Metrics {
		if strings.HasPrefix(name, "spec_decode_") {
			result[name] = v
		}
	}
	for _, name := range vllmDraftCounts {
		if v, ok := outcome.Metrics[name]; ok {
			result[name] = int64(v)
		}
	}
	if rates := outcome.positionRates(); rates != nil {
		result["spec_decode_per_position_acceptance_rates"] = rates
	}
}

func (o *RoundOutcome) positionRates() []float64 {
	if o.Counters == nil {
		return nil
	}
	return o.Counters.PositionRates()
}

// percentWord is a percentile in a name: 99, 99.9.
func percentWord(percent float64) string { return strconv.FormatFloat(percent, 'f', -1, 64) }

func orNull(o RoundOutcome, name string) any {
	if v, ok := o.Metrics[name]; ok {
		return v
	}
	return nil
}

// putVLLMDetails writes the lists of --save-detailed, in seconds, an entry for
// each request in the order of the prompts.
func putVLLMDetails(result map[string]any, details []Detail) {
	n := len(details)
	inputs, outputs := make([]int, n), make([]int, n)
	ttfts, starts, latencies, queues := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	gaps, texts, errors := make([][]float64, n), make([]string, n), make([]string, n)
	for i, d := range details {
		inputs[i], outputs[i] = max(d.InputTokens, 0), max(d.OutputTokens, 0)
		ttfts[i], starts[i], latencies[i], queues[i] = d.TTFT.Seconds(), d.Start.Seconds(), d.Latency.Seconds(), d.Queue.Seconds()
		gaps[i], texts[i] = make([]float64, len(d.Gaps)), d.Text
		for j, g := range d.Gaps {
			gaps[i][j] = g.Seconds()
		}
		if d.Error != nil {
			errors[i] = d.Error.Error()
		}
	}
	maps.Copy(result, map[string]any{
		"input_lens": inputs, "output_lens": outputs, "ttfts": ttfts, "itls": gaps, "generated_texts": texts,
		"start_times": starts, "latencies": latencies, "queue_times": queues, "errors": errors,
	})
}
