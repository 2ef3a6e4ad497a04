package load

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"nocturne/runners"
)

// Histograms count microseconds up to a day with three significant digits, so a
// percentile read from one is within 0.1 % or half a microsecond.
const (
	histogramDigits  = 3
	histogramHighest = int64(24 * time.Hour / time.Microsecond)
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, histogramHighest, histogramDigits)
}

// record notes a latency in a histogram. What is longer than the histogram
// holds counts as the longest it holds.
func record(h *hdrhistogram.Histogram, length time.Duration, count int64) {
	microseconds := int64(length.Round(time.Microsecond) / time.Microsecond)
	_ = h.RecordValues(min(max(microseconds, 0), histogramHighest), count) // in range by construction
}

// MergeHistograms adds encoded histograms, such as those of several rounds, and
// returns the encoded sum.
func MergeHistograms(encoded ...string) (string, error) {
	sum := newHistogram()
	for _, text := range encoded {
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			return "", fmt.Errorf("decoding a latency histogram: %w", err)
		}
		if dropped := sum.Merge(h); dropped > 0 {
			return "", fmt.Errorf("merging latency histograms: %d values lie beyond %d microseconds", dropped, histogramHighest)
		}
	}
	return encode(sum), nil
}

func encode(h *hdrhistogram.Histogram) string {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(fmt.Sprintf("encoding a histogram into memory: %v", err)) // writes to a buffer only
	}
	return string(text)
}

// distribution is a stream of latencies too many to keep: mean and deviation
// are exact (Welford's recurrence, weighted), percentiles come from the
// histogram.
type distribution struct {
	histogram *hdrhistogram.Histogram
	count     float64
	mean, m2  float64 // milliseconds
}

func newDistribution() distribution { return distribution{histogram: newHistogram()} }

func (d *distribution) add(length time.Duration, count int64) {
	if count <= 0 {
		return
	}
	record(d.histogram, length, count)
	weight := float64(count)
	d.count += weight
	delta := milliseconds(length) - d.mean
	d.mean += delta * weight / d.count
	d.m2 += weight * delta * (milliseconds(length) - d.mean)
}

// merge adds another distribution (Chan, Golub and LeVeque's pairwise update).
func (d *distribution) merge(other *distribution) {
	if other.count == 0 {
		return
	}
	d.histogram.Merge(other.histogram)
	total := d.count + other.count
	delta := other.mean - d.mean
	d.mean += delta * other.count / total
	d.m2 += other.m2 + delta*delta*d.count*other.count/total
	d.count = total
}

// put writes the statistics of the family, by the names of `vllm bench serve`.
func (d *distribution) put(into runners.Metrics, family string) {
	if d.count == 0 {
		return
	}
	into["mean_"+family+"_ms"] = d.mean
	into["std_"+family+"_ms"] = math.Sqrt(max(d.m2, 0) / d.count)
	into["median_"+family+"_ms"] = d.percentile(50)
	for name, percent := range percentiles {
		into[name+"_"+family+"_ms"] = d.percentile(percent)
	}
}

// percentile in milliseconds: the middle of the histogram's bucket, whose upper
// end is what the histogram returns. A bucket below 2^11 is 1 wide, and each
// doubling of the value doubles the width.
func (d *distribution) percentile(percent float64) float64 {
	highest := d.histogram.ValueAtPercentile(percent)
	width := int64(1) << max(bits.Len64(uint64(highest))-11, 0)
	return (float64(highest) - float64(width-1)/2) / 1000
}

// percentiles that are reported beside the median.
var percentiles = map[string]float64{"p90": 90, "p95": 95, "p99": 99}

// put writes the statistics of latencies few enough to keep: population
// deviation and linearly interpolated percentiles, as numpy computes them.
func put(into runners.Metrics, family string, lengths []time.Duration) {
	if len(lengths) == 0 {
		return
	}
	slices.Sort(lengths)
	sum := 0.0
	for _, length := range lengths {
		sum += milliseconds(length)
	}
	mean := sum / float64(len(lengths))
	squares := 0.0
	for _, length := range lengths {
		squares += (milliseconds(length) - mean) * (milliseconds(length) - mean)
	}
	into["mean_"+family+"_ms"] = mean
	into["std_"+family+"_ms"] = math.Sqrt(squares / float64(len(lengths)))
	into["median_"+family+"_ms"] = interpolated(lengths, 50)
	for name, percent := range percentiles {
		into[name+"_"+family+"_ms"] = interpolated(lengths, percent)
	}
}

// interpolated is the percentile of sorted latencies in milliseconds.
func interpolated(sorted []time.Duration, percent float64) float64 {
	position := percent / 100 * float64(len(sorted)-1)
	below := int(position)
	low := milliseconds(sorted[below])
	if below+1 == len(sorted) {
		return low
	}
	return low + (milliseconds(sorted[below+1])-low)*(position-float64(below))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
