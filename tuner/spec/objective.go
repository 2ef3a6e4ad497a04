package spec

import (
	"regexp"
	"slices"

	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/store"
)

var aggregates = []string{"geomean"}

func (r *resolver) objective(workload runners.Workload, output runners.CommandOutput) store.Objective {
	file := r.file.Objective
	out := store.Objective{Direction: "maximize"}
	if !file.Where.read() {
		return out
	}
	metric := file.Maximize
	if file.Where.has("maximize") == file.Where.has("minimize") {
		r.fault(file.Where.Begin, "objective: want exactly one of maximize and minimize, such as maximize: output_throughput")
		return out
	}
	if file.Minimize != nil {
		metric, out.Direction = file.Minimize, "minimize"
	}
	if metric != nil {
		out.Metric = r.plainText(metric.scalar)
		r.measured(out.Metric, metric.Position, output)
	}
	out.Aggregate = r.word("objective.aggregate", file.Aggregate, "", aggregates)
	r.loadPoint(&out, workload)
	for _, entry := range present(&r.collector, file.Limits) {
		r.limit(&out, entry, output)
	}
	return out
}

func (r *resolver) limit(out *store.Objective, file entry[fileLimit], output runners.CommandOutput) {
	r.measured(file.Key, file.At, output)
	where := file.Value.Where
	limit := store.Limit{Max: r.bound(file.Key, file.Value.Max), Min: r.bound(file.Key, file.Value.Min)}
	switch {
	case !where.read():
		return // no mapping, which has been told
	case !where.has("max") && !where.has("min"):
		r.fault(file.At, "objective.limits.%s: want max or min, such as {max: 2000}", file.Key)
		return
	case limit.Max != nil && limit.Min != nil && *limit.Min > *limit.Max:
		r.fault(where.of("min"), "objective.limits.%s: min %g is above max %g", file.Key, *limit.Min, *limit.Max)
	}
	if out.Limits == nil {
		out.Limits = map[string]store.Limit{}
	}
	out.Limits[file.Key] = limit
}

func (r *resolver) bound(metric string, value *scalar) *float64 {
	if value == nil {
		return nil
	}
	number, err := value.float()
	if err != nil {
		r.fault(value.Position, "objective.limits.%s: %v", metric, err)
		return nil
	}
	return &number
}

// loadPoint ties the objective to load points: with several of them the file
// says which counts.
func (r *resolver) loadPoint(out *store.Objective, workload runners.Workload) {
	file := r.file.Objective
	several := len(workload.Points) > 1
	switch {
	case file.Point != nil && out.Aggregate != "":
		r.fault(file.Point.Position, "objective: at and aggregate exclude each other; keep one of them")
	case file.Point != nil:
		if workload.Points[0].RequestRate > 0 {
			r.fault(file.Point.Position, "objective.at picks a concurrency, and the load points are request rates (%s); write aggregate: geomean, or one rate", pointsText(workload.Points))
			return
		}
		point, err := file.Point.whole()
		if err != nil || !slices.Contains(workload.Points, runners.LoadPoint{Concurrency: point}) {
			r.fault(file.Point.Position, "objective.at: %q is none of the load points of workload.concurrency (%s)", file.Point.Text, pointsText(workload.Points))
			return
		}
		if several {
			out.At = &point
		}
	case several && workload.Points[0].RequestRate > 0 && !file.Where.has("aggregate"):
		r.fault(file.Where.Begin, "objective: with several request rates write aggregate: geomean")
	case several && !file.Where.has("aggregate") && !file.Where.has("at"):
		r.fault(file.Where.Begin, "objective: with several load points say which counts: at: %d, or aggregate: geomean", workload.Points[0].Concurrency)
	case !several && out.Aggregate != "":
		r.warn(file.Where.of("aggregate"), "objective.aggregate has no effect with one load point; give workload.concurrency a list, or remove it")
		out.Aggregate = ""
	}
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// metric checks the name of a metric of the load generator. A command names its
// own.
func (r *resolver) metric(name string, at Position) {
	if !metricName.MatchString(name) {
		r.fault(at, "%q is not the name of a metric; want small letters, digits and underscores", name)
		return
	}
	known := load.MetricNames()
	if r.launch.kind == KindCommand || r.launch.kind == "" || slices.Contains(known, name) {
		return
	}
	if near, ok := nearest(name, known); ok {
		r.fault(at, "metric %q is not known: did you mean %q? The reference lists all", name, near)
		return
	}
	r.fault(at, "metric %q is not known; there are output_throughput, request_throughput, mean_ttft_ms, p99_tpot_ms and more: the reference lists all", name)
}

// measured checks the name of a metric that must come out of every round.
func (r *resolver) measured(name string, at Position, output runners.CommandOutput) {
	r.metric(name, at)
	if name == load.MetricGoodput && r.launch.kind != KindCommand && r.file.Workload.Goodput == nil {
		r.fault(at, "%s needs to know what is good: write workload.goodput, such as {ttft: 500ms, tpot: 50ms}", name)
	}
	if len(output.Patterns) == 0 || r.launch.kind != KindCommand {
		return
	}
	names := make([]string, len(output.Patterns))
	for i, pattern := range output.Patterns {
		names[i] = pattern.Metric
	}
	if !slices.Contains(names, name) {
		r.fault(at, "%q is none of the metrics that the file reads from the output: %s", name, suggestion(name, names))
	}
}
