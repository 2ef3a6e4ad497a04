package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nocturne/search"
)

// Settings is a configuration in one line: the knobs that differ from the
// baseline, in the order of their ids.
func Settings(values, baseline search.Values) string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(values)) {
		if base, ok := baseline[id]; ok && base == values[id] {
			continue
		}
		parts = append(parts, strings.TrimPrefix(id, "flag.")+"="+values[id].String())
	}
	if len(parts) == 0 {
		return "all defaults"
	}
	return strings.Join(parts, " ")
}

// Ratio is a speedup in percent, "+41.2 %".
func Ratio(ratio float64) string { return fmt.Sprintf("%+.1f %%", (ratio-1)*100) }

// Number is a value with about four significant digits.
func Number(value float64) string {
	switch size := max(value, -value); {
	case size >= 1000:
		return fmt.Sprintf("%.0f", value)
	case size >= 100:
		return fmt.Sprintf("%.1f", value)
	case size >= 1:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.4g", value)
	}
}

// Unit is the unit of a metric by its name.
func Unit(metric string) string {
	switch {
	case strings.HasSuffix(metric, "_ms"):
		return "ms"
	case strings.HasSuffix(metric, "token_throughput"), strings.HasSuffix(metric, "output_throughput"), metric == "max_output_tokens_per_s":
		return "tok/s"
	case strings.HasSuffix(metric, "request_throughput"), metric == "request_goodput", metric == "request_rate":
		return "req/s"
	case strings.HasSuffix(metric, "_us"):
		return "us"
	case strings.HasSuffix(metric, "_s"), strings.HasSuffix(metric, "duration"):
		return "s"
	case strings.HasSuffix(metric, "_mhz"):
		return "MHz"
	case strings.HasSuffix(metric, "_power_w"):
		return "W"
	case strings.HasSuffix(metric, "_temperature_c"):
		return "C"
	}
	return ""
}

// Measure is a value with the unit of its metric.
func Measure(value float64, metric string) string {
	return strings.TrimSpace(Number(value) + " " + Unit(metric))
}

// Span is a duration as people read it: 950 ms, 12 s, 4:05, 1:02:03.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
}

// Seconds is Span for seconds.
func Seconds(s float64) string { return Span(time.Duration(s * float64(time.Second))) }

// Clip cuts a text to a width.
func Clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 4 {
		return text
	}
	return string(runes[:width-3]) + "..."
}
