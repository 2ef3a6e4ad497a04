package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nocturne/runners"
)

// vllmHeadings are the titles and short names of the families in the table.
var vllmHeadings = []struct{ family, short, title string }{
	{"ttft", "TTFT", "Time to First Token"},
	{"tpot", "TPOT", "Time per Output Token (excl. 1st token)"},
	{"itl", "ITL", "Inter-token Latency"},
	{"e2el", "E2EL", "End-to-end Latency"},
	{"client_queue_time", "Client Queue Time", "Client-side Queueing"},
	{"e2el_including_client_queue", "E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency"},
}

// VLLMFamilies are the families of latencies that the table can show.
func VLLMFamilies() []string {
	var names []string
	for _, heading := range vllmHeadings {
		names = append(names, heading.family)
	}
	return names
}

const vllmTableWidth = 50

// vllmTable writes lines as wide as those of `vllm bench serve`.
type vllmTable struct{ text strings.Builder }

func (t *vllmTable) rule(title, fill string) {
	if title != "" && fill == "=" {
		title = " " + title + " "
	}
	room := max(vllmTableWidth-len(title), 0)
	t.text.WriteString(strings.Repeat(fill, room/2) + title + strings.Repeat(fill, room-room/2) + "\n")
}

func (t *vllmTable) line(name, value string) {
	t.text.WriteString(strings.TrimRight(fmt.Sprintf("%-40s %-10s", name, value), " ") + "\n")
}

// count, measure write a metric; one that was not measured is left out.
func (t *vllmTable) count(name string, m runners.Metrics, metric string) {
	if v, ok := m[metric]; ok {
		t.line(name, strconv.FormatInt(int64(v), 10))
	}
}

func (t *vllmTable) measure(name string, m runners.Metrics, metric string) {
	if v, ok := m[metric]; ok {
		t.line(name, strconv.FormatFloat(v, 'f', 2, 64))
	}
}

// WriteVLLMTable writes the outcome as `vllm bench serve` prints it
// (vllm-project/vllm vllm/benchmarks/serve.py). What was not measured is left
// out. ITL is, as there, the time between chunks.
func WriteVLLMTable(w io.Writer, outcome RoundOutcome, meta VLLMMeta) error {
	var t vllmTable
	m := outcome.Metrics
	t.rule("Serving Benchmark Result", "=")
	t.count("Successful requests:", m, MetricCompleted)
	t.count("Failed requests:", m, MetricFailed)
	if meta.MaxConcurrency > 0 {
		t.line("Maximum request concurrency:", strconv.Itoa(meta.MaxConcurrency))
	}
	t.measure("Request rate configured (RPS):", m, MetricRequestRate)
	t.measure("Benchmark duration (s):", m, MetricDuration)
	t.count("Total input tokens:", m, MetricInputTokens)
	t.count("Total generated tokens:", m, MetricOutputTokens)
	t.measure("Request throughput (req/s):", m, MetricRequestThroughput)
	t.measure("Request goodput (req/s):", m, MetricGoodput)
	t.measure("Output token throughput (tok/s):", m, MetricOutputThroughput)
	t.measure("Peak output token throughput (tok/s):", m, MetricPeakOutput)
	t.measure("Peak concurrent requests:", m, MetricMaxConcurrent)
	t.measure("Total token throughput (tok/s):", m, MetricTotalTokenThroughput)
	t.latencies(outcome, meta)
	t.speculation(outcome)
	t.rule("", "=")
	if _, err := io.WriteString(w, t.text.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func (t *vllmTable) latencies(outcome RoundOutcome, meta VLLMMeta) {
	families, percentiles := meta.shown()
	for _, heading := range vllmHeadings {
		ours := vllmFamilies[heading.family]
		if _, known := outcome.Metrics["mean_"+ours+"_ms"]; !known || !slices.Contains(families, heading.family) {
			continue
		}
		t.rule(heading.title, "-")
		t.measure("Mean "+heading.short+" (ms):", outcome.Metrics, "mean_"+ours+"_ms")
		t.measure("Median "+heading.short+" (ms):", outcome.Metrics, "median_"+ours+"_ms")
		for _, percent := range percentiles {
			if v, ok := outcome.Percentile(ours, percent); ok {
				t.line(fmt.Sprintf("P%s %s (ms):", percentWord(percent), heading.short), strconv.FormatFloat(v, 'f', 2, 64))
			}
		}
	}
}

// shown are the families and percentiles of the table.
func (m VLLMMeta) shown() (families []string, percentiles []float64) {
	families, percentiles = m.Families, m.Percentiles
	if len(families) == 0 {
		families = []string{"ttft", "tpot", "itl"}
	}
	if len(percentiles) == 0 {
		percentiles = []float64{99}
	}
	return families, percentiles
}

func (t *vllmTable) speculation(outcome RoundOutcome) {
	m := outcome.Metrics
	if m[MetricAcceptanceLength] == 0 {
		return
	}
	t.rule("Speculative Decoding", "-")
	t.measure("Acceptance rate (%):", m, MetricAcceptanceRate)
	t.measure("Acceptance length:", m, MetricAcceptanceLength)
	t.count("Drafts:", m, MetricDrafts)
	t.count("Draft tokens:", m, MetricDraftTokens)
	t.count("Accepted tokens:", m, MetricAcceptedTokens)
	if rates := outcome.positionRates(); rates != nil {
		t.text.WriteString("Per-position acceptance (%):\n")
		for i, rate := range rates {
			t.line(fmt.Sprintf("  Position %d:", i), strconv.FormatFloat(100*rate, 'f', 2, 64))
		}
	}
}

// BeyondVLLM are the metrics that the table does not hold.
func BeyondVLLM(outcome RoundOutcome, meta VLLMMeta) runners.Metrics {
	families, _ := meta.shown()
	rest := maps.Clone(outcome.Metrics)
	for _, name := range slices.Concat(vllmCounts, vllmDraftCounts, []string{
		MetricRequestRate, MetricDuration, MetricRequestThroughput, MetricGoodput, MetricOutputThroughput, MetricPeakOutput,
		MetricTotalTokenThroughput, MetricAcceptanceRate, MetricAcceptanceLength,
	}) {
		delete(rest, name)
	}
	for _, family := range families {
		for _, statistic := range statistics {
			delete(rest, statistic+"_"+vllmFamilies[family]+"_ms")
		}
	}
	return rest
}
