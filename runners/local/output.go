package local

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nocturne/runners"
	"nocturne/runners/servers"
)

// outputReader finds metrics in the output of a command.
type outputReader struct {
	patterns []compiledPattern // none: a JSON object on the last line
}

type compiledPattern struct {
	metric string
	regex  *regexp.Regexp
	group  int
}

// newOutputReader compiles the patterns of a job.
func newOutputReader(patterns []runners.MetricPattern) (*outputReader, error) {
	reader := &outputReader{}
	for _, pattern := range patterns {
		regex, err := regexp.Compile("(?m)" + pattern.Regex)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", pattern.Metric, err)
		}
		group := regex.SubexpIndex("value")
		if group < 0 {
			group = 1
		}
		if regex.NumSubexp() < group {
			return nil, fmt.Errorf("metric %s: pattern %q has no group for the number: put it in parentheses", pattern.Metric, pattern.Regex)
		}
		reader.patterns = append(reader.patterns, compiledPattern{pattern.Metric, regex, group})
	}
	return reader, nil
}

// read returns the metrics of one run.
func (r *outputReader) read(stdout *output) (runners.Metrics, *failure) {
	if len(r.patterns) > 0 {
		return r.match(strings.Join(stdout.lines, "\n"))
	}
	return readObject(stdout)
}

// match takes the last match of each pattern.
func (r *outputReader) match(text string) (runners.Metrics, *failure) {
	metrics := runners.Metrics{}
	for _, pattern := range r.patterns {
		matches := pattern.regex.FindAllStringSubmatch(text, -1)
		if len(matches) == 0 {
			return nil, fail(servers.ReasonNoMetrics, "the output has nothing like %s for metric %s", pattern.regex, pattern.metric)
		}
		raw := matches[len(matches)-1][pattern.group]
		if failed := addNumber(metrics, pattern.metric, raw); failed != nil {
			return nil, failed
		}
	}
	return metrics, nil
}

// addNumber adds a number that is written as text.
func addNumber(metrics runners.Metrics, name, raw string) *failure {
	value, err := strconv.ParseFloat(raw, 64)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0): // a number too large is infinite
		return fail(servers.ReasonNonFinite, "metric %s is %s", name, raw)
	case err != nil:
		return fail(servers.ReasonNoMetrics, "metric %s is %q, which is no number", name, raw)
	}
	metrics[name] = value
	return nil
}

// readObject takes the numbers of the JSON object on the last line. Other
// members are remarks of the command and are passed over.
func readObject(stdout *output) (runners.Metrics, *failure) {
	line := lastText(stdout.lines)
	members, err := decodeObject(line)
	if err != nil {
		return nil, fail(servers.ReasonNoMetrics, "the last line of stdout is no JSON object of numbers (%v): %q", err, excerpt(line))
	}
	metrics := runners.Metrics{}
	for name, member := range members {
		raw, isNumber := numberText(member)
		if !isNumber {
			continue
		}
		if failed := addNumber(metrics, name, raw); failed != nil {
			failed.message += fmt.Sprintf(" in %q", excerpt(line))
			return nil, failed
		}
	}
	if len(metrics) == 0 {
		return nil, fail(servers.ReasonNoMetrics, "the last line of stdout holds no number: %q", excerpt(line))
	}
	return metrics, nil
}

// notFinite are the words that Python and JavaScript print where JSON has no
// number.
var notFinite = regexp.MustCompile(`^[-+]?(?:NaN|nan|Infinity|inf)\b`)

// quoteNotFinite puts such words in quotes, so that the rest can be read. Words
// inside texts stay.
func quoteNotFinite(line string) string {
	var out strings.Builder
	inText := false
	for i := 0; i < len(line); i++ {
		switch {
		case inText && line[i] == '\\' && i+1 < len(line):
			out.WriteByte(line[i])
			i++
		case line[i] == '"':
			inText = !inText
		case !inText:
			if word := notFinite.FindString(line[i:]); word != "" {
				out.WriteString(strconv.Quote(word))
				i += len(word) - 1
				continue
			}
		}
		out.WriteByte(line[i])
	}
	return out.String()
}

func decodeObject(line string) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(quoteNotFinite(line)))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil {
		return nil, err
	}
	if members == nil || decoder.More() {
		return nil, fmt.Errorf("expected one object")
	}
	return members, nil
}

// numberText returns the text of a number, and of the words that stand for one
// that is not finite.
func numberText(member any) (string, bool) {
	switch value := member.(type) {
	case json.Number:
		return value.String(), true
	case string:
		if number, err := strconv.ParseFloat(value, 64); err == nil && (math.IsNaN(number) || math.IsInf(number, 0)) {
			return value, true
		}
	}
	return "", false
}

func lastText(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if strings.TrimSpace(line) != "" {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// excerpt shortens a line for a message.
func excerpt(line string) string {
	const limit = 500
	if len(line) <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:limit], "") + " ..."
}
