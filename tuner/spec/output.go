package spec

import (
	"regexp"
	"strconv"
	"strings"

	"nocturne/runners"
)

// commandOutput reads how a command tells what it measured.
func (r *resolver) commandOutput() runners.CommandOutput {
	out := runners.CommandOutput{}
	for _, key := range []string{"metrics", "failure"} {
		if r.file.Where.has(key) && r.launch.kind != KindCommand && r.launch.kind != "" {
			r.fault(r.file.Where.of(key), "%s belongs to kind: command; a server is measured by the load generator", key)
		}
	}
	for _, entry := range present(&r.collector, r.file.Metrics) {
		r.pattern(&out, entry)
	}
	if f := r.file.Failure; f != nil {
		out.Exit = map[int]runners.Class{}
		r.exits(&out, "infeasible", f.Infeasible, runners.ClassInfeasible)
		r.exits(&out, "transient", f.Transient, runners.ClassTransient)
		r.exits(&out, "environment", f.Environment, runners.ClassEnvironment)
	}
	return out
}

func (r *resolver) pattern(out *runners.CommandOutput, file entry[filePattern]) {
	if !metricName.MatchString(file.Key) {
		r.fault(file.At, "%q is not the name of a metric; want small letters, digits and underscores", file.Key)
	}
	written := file.Value.Regex
	if written == nil {
		if file.Value.Where.read() && !file.Value.Where.has("regex") {
			r.fault(file.At, "metrics.%s: regex is missing, such as {regex: 'busbw: ([0-9.]+)'}", file.Key)
		}
		return
	}
	expression, err := regexp.Compile(written.Text)
	switch {
	case err != nil:
		r.fault(written.Position, "metrics.%s.regex: %v", file.Key, err)
	case expression.NumSubexp() == 0:
		r.fault(written.Position, "metrics.%s.regex: want a group around the number, such as busbw: ([0-9.]+)", file.Key)
	}
	out.Patterns = append(out.Patterns, runners.MetricPattern{Metric: file.Key, Regex: written.Text, Unit: r.label(file.Value.Unit)})
}

// exits gives exit statuses a class.
func (r *resolver) exits(out *runners.CommandOutput, key string, statuses []scalar, class runners.Class) {
	for _, written := range statuses {
		status, err := written.whole()
		other, twice := out.Exit[status]
		switch {
		case err != nil || status < 1 || status > 255:
			r.fault(written.Position, "failure.%s: %q: want exit statuses from 1 to 255; 0 is a measurement", key, written.Text)
		case twice:
			r.fault(written.Position, "failure.%s: %d is %s already; each status has one class", key, status, other)
		default:
			out.Exit[status] = class
		}
	}
}

func pointsText(points []runners.LoadPoint) string {
	texts := make([]string, len(points))
	for i, point := range points {
		texts[i] = strconv.Itoa(point.Concurrency)
		if point.RequestRate > 0 {
			texts[i] = strconv.FormatFloat(point.RequestRate, 'f', -1, 64) + "/s"
		}
	}
	return strings.Join(texts, ", ")
}
