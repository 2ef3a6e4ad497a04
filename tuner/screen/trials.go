package screen

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/output"
)

// Trials lists the trials of a campaign that optimizes a metric.
func (p *Page) Trials(answer output.Trials, metric string, minimize bool) {
	if len(answer.Trials) == 0 {
		p.lines("no trials yet")
		return
	}
	var baseline output.Trial
	for _, trial := range answer.Trials {
		if trial.Role == store.RoleBaseline {
			baseline = trial
			break
		}
	}
	var rows [][]string
	for _, trial := range answer.Trials {
		value, gain, expected := "-", "", ""
		if trial.Value != nil {
			value = valueText(trial, minimize)
			gain = gainOver(trial.Value, baseline.Value, minimize)
		}
		if trial.State == store.TrialPruned {
			gain = "" // of a bound
		}
		if trial.Expected != nil {
			expected = Ratio(trial.Expected.Ratio)
		}
		rows = append(rows, []string{fmt.Sprint(trial.Trial), string(trial.Role), string(trial.State), expected, value, gain,
			secondsOrDash(trial.LoadingS), secondsOrDash(trial.MeasuringS), proofText(trial), whatHappened(trial, baseline.Configuration)})
	}
	head := metric
	if unit := Unit(metric); unit != "" {
		head = unit
	}
	p.table([]column{{head: "trial", right: true}, {head: "role"}, {head: "state"}, {head: "expected", right: true}, {head: head, right: true}, {head: "vs baseline", right: true},
		{head: "load", right: true}, {head: "measure", right: true}, {head: "proof"}, {head: "settings"}}, rows)
	p.lines("", "values are "+metric)
	if slices.ContainsFunc(answer.Trials, func(trial output.Trial) bool { return weakest(trial.Proof) != "" }) {
		p.lines("proof is where all settings were seen: in the env of the processes, told by the server, or in the log of NCCL")
	}
	if slices.ContainsFunc(answer.Trials, func(trial output.Trial) bool { return trial.Expected != nil }) {
		p.lines("expected is against the best until then")
	}
	if slices.ContainsFunc(answer.Trials, func(trial output.Trial) bool { return trial.Failure != nil }) {
		p.lines(fmt.Sprintf("why trials failed, with their last words: nocturne show %s@%d", answer.Campaign, answer.Run))
	}
}

// valueText is the value of a trial; of one that was stopped early it is the best
// that it could have come to.
func valueText(trial output.Trial, minimize bool) string {
	bound := ""
	if trial.State == store.TrialPruned {
		bound = map[bool]string{false: "< ", true: "> "}[minimize]
	}
	return bound + Number(*trial.Value)
}

func gainOver(value, reference *float64, minimize bool) string {
	if value == nil || reference == nil || *value == 0 || *reference == 0 {
		return ""
	}
	if minimize {
		return Ratio(*reference / *value)
	}
	return Ratio(*value / *reference)
}

// whatHappened is the last column of a trial: its settings, and why it failed.
func whatHappened(trial output.Trial, baseline store.Configuration) string {
	text := Settings(trial.Configuration.Values, baseline.Values)
	if trial.RepeatOf != nil {
		text = fmt.Sprintf("relaunch of trial %d", *trial.RepeatOf)
	}
	if trial.Failure != nil {
		text += "  " + trial.Failure.Reason + ": " + Headline(trial.Failure.Message)
	}
	return text
}

// Headline is a failure's message in one line: what happened, and the last line
// of the log where the first says nothing of the cause.
func Headline(message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	_, log, found := strings.Cut(rest, "last lines:\n")
	if !found {
		return first
	}
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" || strings.Contains(log, first) {
		return first
	}
	return first + ": " + last
}

// proofText sums up what was proved: that the settings are in force and where that
// was seen, or of how many it is known.
func proofText(trial output.Trial) string {
	applied := 0
	for _, proof := range trial.Proof {
		if proof.Status == runners.ProofApplied {
			applied++
		}
	}
	switch len(trial.Proof) {
	case 0:
		return ""
	case applied:
		if where := weakest(trial.Proof); where != "" {
			return where
		}
		return "applied"
	}
	return fmt.Sprintf("%d of %d", applied, len(trial.Proof))
}

// seenIn says where a setting was seen.
func seenIn(proof runners.Proof) string {
	switch proof.Evidence {
	case runners.EvidenceEnvironment:
		return "env"
	case runners.EvidenceServer:
		return "server"
	case runners.EvidenceNCCL:
		return "NCCL"
	}
	return "-"
}

// weakest is where that setting of a trial was seen which has the least evidence;
// empty when none has any.
func weakest(proofs []runners.Proof) string {
	order := []runners.Evidence{runners.EvidenceEnvironment, runners.EvidenceServer, runners.EvidenceNCCL}
	least := len(order)
	for _, proof := range proofs {
		if proof.Status == runners.ProofApplied {
			if at := slices.Index(order, proof.Evidence); at >= 0 {
				least = min(least, at)
			}
		}
	}
	if least == len(order) {
		return ""
	}
	return seenIn(runners.Proof{Evidence: order[least]})
}

// pointText is the heading of a load point's metrics.
func pointText(point runners.PointResult) string {
	text := count(len(point.Rounds), "round", "rounds")
	if point.Concurrency > 0 {
		text = fmt.Sprintf("concurrency %d, %s", point.Concurrency, text)
	}
	if point.RequestRate > 0 {
		text = fmt.Sprintf("%g requests/s, %s", point.RequestRate, text)
	}
	return text
}

// Tried shows a single trial in full, and the store that keeps it.
func (p *Page) Tried(trial output.Trial, campaign string, run int, location string) {
	p.lines(ConfigurationLines("", trial.Configuration)...)
	if trial.Failure != nil {
		p.lines("", fmt.Sprintf("%s: %s (%s)", trial.State, trial.Failure.Reason, trial.Failure.Class))
		p.lines(indented("  ", trial.Failure.Message)...)
	}
	for _, point := range trial.Points {
		p.lines("", pointText(point))
		p.Metrics(point.Metrics)
	}
	if len(trial.Proof) > 0 {
		p.lines("")
		var rows [][]string
		for _, proof := range trial.Proof {
			rows = append(rows, []string{proof.Knob, string(proof.Status), seenIn(proof), proof.Detail})
		}
		p.table([]column{{head: "setting"}, {head: "proof"}, {head: "seen in"}, {head: "detail"}}, rows)
	}
	p.lines("", fmt.Sprintf("loading %s, measuring %s", secondsOrDash(trial.LoadingS), secondsOrDash(trial.MeasuringS)))
	if trial.LogPath != "" {
		p.lines("log " + trial.LogPath)
	}
	p.lines(fmt.Sprintf("kept as %s@%d in %s", campaign, run, location))
}

func indented(indent, text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return lines
}

// Bench shows what a running server did.
func (p *Page) Bench(answer output.Bench) {
	if answer.Model != "" {
		p.lines("model " + answer.Model)
	}
	p.Metrics(answer.Metrics)
	for _, kind := range slices.Sorted(maps.Keys(answer.Failures)) {
		failed := answer.Failures[kind]
		first, _, _ := strings.Cut(failed.First, "\n")
		p.lines(fmt.Sprintf("  %s failed (%s), the first: %s", count(failed.Count, "request", "requests"), kind, first))
	}
}

// countOrMeasure writes counts without decimals.
func countOrMeasure(value float64, name string) string {
	if Unit(name) == "" && value == math.Trunc(value) {
		return fmt.Sprintf("%.0f", value)
	}
	return Measure(value, name)
}

// statistic is a metric's name that begins with a statistic: mean_ttft_ms.
var statistic = regexp.MustCompile(`^(mean|median|std|p[0-9]+)_(.+)$`)

// Metrics lists metrics by name; those that come as several statistics of one
// quantity in a table.
func (p *Page) Metrics(metrics runners.Metrics) {
	families := map[string]map[string]string{}
	for name, value := range metrics {
		if parts := statistic.FindStringSubmatch(name); parts != nil {
			if families[parts[2]] == nil {
				families[parts[2]] = map[string]string{}
			}
			families[parts[2]][parts[1]] = Number(value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if parts := statistic.FindStringSubmatch(name); parts == nil || len(families[parts[2]]) < 2 {
			p.lines(fmt.Sprintf("  %-26s %s", name, countOrMeasure(metrics[name], name)))
		}
	}
	statistics := []string{"mean", "median", "p90", "p95", "p99", "std"}
	var rows [][]string
	for _, family := range slices.Sorted(maps.Keys(families)) {
		if len(families[family]) < 2 {
			continue
		}
		row := []string{"  " + family}
		for _, statistic := range statistics {
			row = append(row, families[family][statistic])
		}
		rows = append(rows, row)
	}
	columns := []column{{head: "  latency"}}
	for _, statistic := range statistics {
		columns = append(columns, column{head: statistic, right: true})
	}
	p.table(columns, rows)
}
