package servers

import (
	"strconv"
	"strings"

	"nocturne/runners"
)

// Phases of loading, as shown to people. A server may go through the same
// phases again for its draft model.
const (
	PhaseStarting     = "starting"
	PhaseDistributed  = "distributed"
	PhaseWeights      = "weights"
	PhaseCompile      = "compile"
	PhaseKVCache      = "kv_cache"
	PhaseAutotune     = "autotune"
	PhaseGraphCapture = "graph_capture"
	PhaseWarmup       = "warmup"
	PhaseServing      = "serving"
)

// unknownPercent is the percentage of a phase whose line does not say.
const unknownPercent = -1

// Progress recognises one kind of log line that tells how far loading is, or a
// fact about what the server runs with.
type Progress struct {
	ID string
	// Phase is empty for a line that only holds facts.
	Phase string
	// Percent is what the line means when it holds no group "percent".
	Percent float64
	// Pattern may name groups: "percent", and any other name for a fact.
	Pattern Pattern
}

// Report is what a log line says about progress.
type Report struct {
	Phase runners.Phase // Name is empty when the line holds only facts
	Facts map[string]string
}

// Observe reads one line, without the server's prefix.
func (k *Kind) Observe(text string) (Report, bool) {
	lower := strings.ToLower(text)
	for i := range k.Progress {
		progress := &k.Progress[i]
		if !progress.Pattern.mayMatch(lower) {
			continue
		}
		if groups := progress.Pattern.compiled().FindStringSubmatch(text); groups != nil {
			return progress.report(groups), true
		}
	}
	return Report{}, false
}

// Groups are the names of the facts that the line may hold.
func (p *Progress) Groups() []string {
	var names []string
	for _, name := range p.Pattern.compiled().SubexpNames() {
		if name != "" && name != "percent" {
			names = append(names, name)
		}
	}
	return names
}

func (p *Progress) report(groups []string) Report {
	report := Report{Phase: runners.Phase{Name: p.Phase, Percent: p.Percent}}
	for i, name := range p.Pattern.compiled().SubexpNames() {
		switch {
		case name == "" || groups[i] == "":
		case name == "percent":
			if percent, err := strconv.ParseFloat(groups[i], 64); err == nil {
				report.Phase.Percent = percent
			}
		default:
			if report.Facts == nil {
				report.Facts = make(map[string]string)
			}
			report.Facts[name] = groups[i]
		}
	}
	return report
}

// progress compiles one row of a table.
func progress(id, phase string, percent float64, pattern string) Progress {
	return Progress{
		ID: id, Phase: phase, Percent: percent,
		Pattern: newPattern(pattern),
	}
}
