package spec

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/store"
)

// timeouts fills in the defaults and refuses slips of a unit.
func (r *resolver) timeouts() runners.Timeouts {
	file := r.file.Timeouts
	out := runners.Timeouts{}
	for _, one := range []struct {
		name  string
		given Duration
		usual time.Duration
		into  *time.Duration
	}{
		{"launching", file.Launching, 2 * time.Minute, &out.Launching},
		{"loading", file.Loading, 45 * time.Minute, &out.Loading},
		{"stalled", file.Stalled, 10 * time.Minute, &out.Stalled},
		{"verifying", file.Verifying, 5 * time.Minute, &out.Verifying},
		{"warming", file.Warming, 10 * time.Minute, &out.Warming},
		{"round", file.Round, 10 * time.Minute, &out.Round},
		{"stopping", file.Stopping, time.Minute, &out.Stopping},
	} {
		*one.into = one.usual
		if !one.given.given() {
			continue
		}
		if one.given.Duration < time.Second {
			r.fault(one.given.Position, "timeouts.%s: %s is less than 1s, the least that makes sense; is the unit right?", one.name, one.given.Duration)
		}
		*one.into = one.given.Duration
	}
	return out
}

// number reads a whole number within bounds.
func (r *resolver) number(key string, scalar *Scalar, usual, least, most int) int {
	if scalar == nil {
		return usual
	}
	value, err := strconv.Atoi(scalar.Text)
	if err != nil || scalar.Quoted || scalar.leadingZero() || value < least || value > most {
		r.fault(scalar.Position, "%s: %q: want a whole number from %d to %d", key, scalar.Text, least, most)
		return usual
	}
	return value
}

// fraction reads a number from 0 up to, but not including, 1.
func (r *resolver) fraction(key string, scalar *Scalar, usual float64) float64 {
	if scalar == nil {
		return usual
	}
	value, err := scalar.float()
	if err != nil || value < 0 || value >= 1 {
		r.fault(scalar.Position, "%s: %q: want a fraction such as 0.02 for 2 %%", key, scalar.Text)
		return usual
	}
	return value
}

func (r *resolver) workload() runners.Workload {
	file := r.file.Workload
	out := runners.Workload{Name: file.Name, Rounds: runners.Rounds{Min: 2, Max: 6, Precision: 0.005}}
	if file.Rounds != nil && file.Rounds.Fixed > 0 {
		out.Rounds = runners.Rounds{Fixed: file.Rounds.Fixed}
	}
	out.Rounds.Metric = r.file.Objective.Maximize + r.file.Objective.Minimize
	out.Points = []runners.LoadPoint{{Concurrency: 1}}
	if r.file.Server.Kind == KindCommand {
		if out.Rounds.Fixed == 0 {
			out.Rounds = runners.Rounds{Fixed: 1}
		}
		return out
	}
	largest := 1
	if file.Concurrency != nil && len(file.Concurrency.Numbers) > 0 {
		out.Points = nil
		for _, number := range file.Concurrency.Numbers {
			out.Points = append(out.Points, runners.LoadPoint{Concurrency: number})
			largest = max(largest, number)
		}
	}
	out.OutputTokens = r.number("workload.output_tokens", file.OutputTokens, 256, 1, 10_000_000)
	out.Requests = r.number("workload.requests", file.Requests, max(16, 4*largest), 1, 10_000_000)
	out.Warmup = r.number("workload.warmup", file.Warmup, max(2, largest), 0, 10_000_000)
	out.IgnoreEOS = file.IgnoreEOS == nil || *file.IgnoreEOS
	if file.Temperature != nil {
		value, err := file.Temperature.float()
		if err != nil || value < 0 {
			r.fault(file.Temperature.Position, "workload.temperature: %q: want a number from 0", file.Temperature.Text)
		}
		out.Temperature = value
	}
	if out.Requests < largest {
		r.fault(file.At["requests"], "workload.requests: %d requests cannot keep %d in flight; want at least as many", out.Requests, largest)
	}
	out.Endpoint = r.word("workload.endpoint", file.Endpoint, file.At["endpoint"], "completions", "completions", "chat", "generate")
	out.Dataset = r.word("workload.dataset", file.Dataset, file.At["dataset"], "random", "random", "prompts")
	if out.Dataset == "random" {
		out.InputTokens = r.number("workload.input_tokens", file.InputTokens, 512, 1, 10_000_000)
	} else if file.InputTokens != nil {
		r.fault(file.InputTokens.Position, "workload.input_tokens belongs to dataset: random; a prompts file has its own lengths")
	}
	r.prompts(&out)
	if out.Dataset == "random" && r.file.Space.Speculative != nil {
		r.warn(r.file.Space.At["speculative"], "speculation on random prompts: acceptance there says nothing about real traffic; give workload.dataset: prompts with a file")
	}
	return out
}

// word reads one of a few words.
func (r *resolver) word(key, given string, at Position, usual string, allowed ...string) string {
	if given == "" {
		return usual
	}
	if !slices.Contains(allowed, given) {
		r.fault(at, "%s: %q is not known: %s", key, given, suggestion(given, allowed))
		return usual
	}
	return given
}

// prompts reads the prompts' file, so that a fault in it is told before
// anything is started.
func (r *resolver) prompts(out *runners.Workload) {
	file := r.file.Workload
	if out.Dataset != "prompts" {
		if file.File != "" {
			r.fault(file.At["file"], "workload.file belongs to dataset: prompts")
		}
		return
	}
	if file.File == "" {
		r.fault(file.Begin, "workload: dataset: prompts needs a file")
		return
	}
	out.File = r.path(file.File)
	text, err := readFile(out.File)
	if err != nil {
		r.fault(file.At["file"], "workload.file: %v", err)
		return
	}
	sum := sha256.Sum256(text)
	out.FileDigest = hex.EncodeToString(sum[:])
	if _, err := load.OpenDataset(*out); err != nil {
		r.fault(file.At["file"], "workload.file: %v", err)
	}
}

func (r *resolver) objective(workload runners.Workload) store.Objective {
	file := r.file.Objective
	out := store.Objective{Metric: file.Maximize, Direction: "maximize"}
	if _, there := r.file.At["objective"]; !there {
		return out
	}
	if (file.Maximize == "") == (file.Minimize == "") {
		r.fault(file.Begin, "objective: want exactly one of maximize and minimize, such as maximize: output_throughput")
		return out
	}
	if file.Minimize != "" {
		out.Metric, out.Direction = file.Minimize, "minimize"
	}
	r.metric(out.Metric, r.at(file.At, file.Begin, "maximize", "minimize"))
	out.Aggregate = r.word("objective.aggregate", file.Aggregate, file.At["aggregate"], "", "geomean")
	if file.At != nil {
		r.loadPoint(&out, workload)
	}
	for _, entry := range file.Limits.Entries {
		r.metric(entry.Key, entry.At)
		limit := store.Limit{Max: r.bound(entry.Key, entry.Value.Max), Min: r.bound(entry.Key, entry.Value.Min)}
		if limit.Max == nil && limit.Min == nil {
			r.fault(entry.At, "objective.limits.%s: want max or min", entry.Key)
			continue
		}
		if out.Limits == nil {
			out.Limits = map[string]store.Limit{}
		}
		out.Limits[entry.Key] = limit
	}
	return out
}

// at is the position of the first of the keys that stands in the file.
func (r *resolver) at(places placeMap, otherwise Position, keys ...string) Position {
	for _, key := range keys {
		if at, there := places[key]; there {
			return at
		}
	}
	return otherwise
}

func (r *resolver) bound(metric string, scalar *Scalar) *float64 {
	if scalar == nil {
		return nil
	}
	value, err := scalar.float()
	if err != nil {
		r.fault(scalar.Position, "objective.limits.%s: %v", metric, err)
		return nil
	}
	return &value
}

// loadPoint ties the objective to load points: with several of them the file
// says which counts.
func (r *resolver) loadPoint(out *store.Objective, workload runners.Workload) {
	file := r.file.Objective
	several := len(workload.Points) > 1
	switch {
	case file.Point != nil && out.Aggregate != "":
		r.fault(file.Point.Position, "objective: at and aggregate exclude each other")
	case file.Point != nil:
		point, err := strconv.Atoi(file.Point.Text)
		if err != nil || !slices.Contains(workload.Points, runners.LoadPoint{Concurrency: point}) {
			r.fault(file.Point.Position, "objective.at: %q is none of the load points of workload.concurrency", file.Point.Text)
			return
		}
		if several {
			out.At = &point
		}
	case several && out.Aggregate == "":
		r.fault(file.Begin, "objective: with several load points say which counts: at: %d, or aggregate: geomean", workload.Points[0].Concurrency)
	case !several:
		out.Aggregate = ""
	}
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// metric checks the name of a metric of the load generator. A command names
// its own.
func (r *resolver) metric(name string, at Position) {
	if !metricName.MatchString(name) {
		r.fault(at, "%q is not the name of a metric; want small letters, digits and underscores", name)
		return
	}
	if known := load.MetricNames(); r.file.Server.Kind != KindCommand && !slices.Contains(known, name) {
		near, ok := nearest(name, known)
		if !ok {
			near = "output_throughput"
		}
		r.fault(at, "metric %q is not known: did you mean %q? The reference lists all", name, near)
	}
}

func (r *resolver) commandOutput() runners.CommandOutput {
	out := runners.CommandOutput{}
	command := r.file.Server.Kind == KindCommand
	for _, key := range []string{"metrics", "failure"} {
		if at, there := r.file.At[key]; there && !command {
			r.fault(at, "%s belongs to kind: command", key)
		}
	}
	for _, entry := range r.file.Metrics.Entries {
		r.metric(entry.Key, entry.At)
		expression, err := regexp.Compile(entry.Value.Regex.Text)
		if err != nil {
			r.fault(entry.Value.Regex.Position, "metrics.%s.regex: %v", entry.Key, err)
			continue
		}
		if expression.NumSubexp() == 0 {
			r.fault(entry.At, "metrics.%s.regex: want a group around the number, such as busbw: ([0-9.]+)", entry.Key)
		}
		out.Patterns = append(out.Patterns, runners.MetricPattern{Metric: entry.Key, Regex: entry.Value.Regex.Text, Unit: entry.Value.Unit})
	}
	if f := r.file.Failure; f != nil {
		out.Exit = map[int]runners.Class{}
		for class, statuses := range map[runners.Class][]int{
			runners.ClassInfeasible: f.Infeasible, runners.ClassTransient: f.Transient, runners.ClassEnvironment: f.Environment,
		} {
			for _, status := range statuses {
				if _, twice := out.Exit[status]; twice || status < 1 || status > 255 {
					r.fault(f.Begin, "failure: %d: want exit statuses from 1 to 255, each in one class", status)
				}
				out.Exit[status] = class
			}
		}
	}
	return out
}

func (r *resolver) servingScale() float64 {
	if r.file.Simulation == nil {
		return 1
	}
	scalar := r.file.Simulation.ServingScale
	if scalar == nil {
		r.fault(r.file.Simulation.Begin, "simulation: serving_scale is missing")
		return 1
	}
	value, err := scalar.float()
	if err != nil || value < 1 || value > 10_000 {
		r.fault(scalar.Position, "simulation.serving_scale: %q: want a number from 1 to 10000", scalar.Text)
		return 1
	}
	return value
}

func (r *resolver) budget(options Options) Budget {
	file := r.file.Budget
	out := Budget{Nights: r.number("budget.nights", file.Nights, 1, 1, 365), Until: options.Until}
	if file.Trials == nil {
		if _, there := r.file.At["budget"]; there {
			r.fault(file.Begin, "budget: trials is missing: the number of search trials, such as trials: 40")
		}
	} else {
		out.Trials = r.number("budget.trials", file.Trials, 1, 1, 100_000)
	}
	if file.Time.given() {
		if out.Time = file.Time.Duration; out.Time < time.Second {
			r.fault(file.Time.Position, "budget.time: %s is less than 1s; is the unit right?", file.Time.Duration)
		}
	}
	if file.Window != nil {
		window, err := parseWindow(file.Window.Text)
		if err != nil {
			r.fault(file.Window.Position, "budget.window: %v", err)
		}
		out.Window = window
	} else if file.Nights != nil && out.Nights > 1 {
		r.fault(file.Nights.Position, "budget.nights: several nights need a window")
	}
	if file.Until != nil && out.Until == nil {
		until, err := time.Parse(time.RFC3339, file.Until.Text)
		if err != nil {
			r.fault(file.Until.Position, "budget.until: %q: want an instant with its zone, such as 2026-12-02T07:00:00+01:00", file.Until.Text)
		} else {
			out.Until = &until
		}
	}
	return out
}

func (r *resolver) confirm() Confirm {
	file := r.file.Confirm
	if file == nil || file.Auto {
		return Confirm{Auto: true}
	}
	return Confirm{
		Top:        r.number("confirm.top", file.Confirmation.Top, 1, 1, 20),
		Relaunches: r.number("confirm.relaunches", file.Confirmation.Relaunches, 3, 2, 100),
	}
}

// seed is the file's, or drawn.
func (r *resolver) seed() uint64 {
	if r.file.Seed == nil {
		var raw [8]byte
		if _, err := rand.Read(raw[:]); err != nil {
			panic(fmt.Sprintf("spec: no randomness: %v", err))
		}
		return binary.LittleEndian.Uint64(raw[:]) >> 11 // a JSON number holds it exactly
	}
	value, err := strconv.ParseUint(r.file.Seed.Text, 10, 64)
	if err != nil || value > math.MaxInt64>>10 {
		r.fault(r.file.Seed.Position, "seed: %q: want a whole number from 0 to %d", r.file.Seed.Text, int64(math.MaxInt64>>10))
	}
	return value
}
