package main

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"
)

//go:embed document.md.tmpl
var documentText string

// document is what the template shows.
type document struct {
	Date, Machine          string
	Seeds, Trials          int
	First, Last            uint64
	Goals, Unmet           string
	BlackBox               string
	Classes, Knowledge     string
	Long                   string
	Cached                 string
	Duplicates, Violations int
}

// newDocument sorts results into tables; cached are those of other runs.
func newDocument(r results, b *bench, machine string, cached results) document {
	list := scenarios()
	verdicts := judge(r)
	d := document{
		Date: b.date, Machine: machine, Seeds: b.seeds, Trials: usualTrials, First: b.first, Last: b.first + uint64(b.seeds) - 1,
		Goals: goalTable(verdicts), Unmet: unmet(verdicts),
		BlackBox: samplerTable(r.inScenario("server")), Long: samplerTable(r.inScenario("long")),
		Classes: scenarioTable(r, inGroup(list, classes)), Knowledge: scenarioTable(r, inGroup(list, knowledge)),
		Cached: cachedText(cached),
	}
	d.Duplicates, d.Violations = r.faults()
	return d
}

// inScenario are the results of one, those of Optuna before descent and auto.
func (r results) inScenario(name string) results {
	some := slices.DeleteFunc(slices.Clone(r), func(one result) bool { return one.Scenario != name })
	slices.SortStableFunc(some, func(a, b result) int { return rank(a.Sampler) - rank(b.Sampler) })
	return some
}

func rank(sampler string) int {
	return slices.Index([]string{"random", "sobol", "grid", "tpe", "cmaes", "optuna-tpe", "optuna-gp", "optuna-cmaes", "descent", "auto"}, sampler)
}

// cachedText says when and on how many problems the results were measured that
// this run did not measure.
func cachedText(cached results) string {
	var lines []string
	for i := range cached {
		r := &cached[i]
		lines = append(lines, fmt.Sprintf("- %s in %s: %s, problems %d to %d", r.Sampler, r.Scenario, r.Date, r.First, r.First+uint64(r.Seeds)-1))
	}
	return strings.Join(lines, "\n")
}

func (d *document) text() (string, error) {
	parsed, err := template.New("document").Parse(documentText)
	if err != nil {
		return "", fmt.Errorf("document: %w", err)
	}
	var text strings.Builder
	if err := parsed.Execute(&text, d); err != nil {
		return "", fmt.Errorf("document: %w", err)
	}
	return text.String(), nil
}

func (d *document) write(name string) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return nil
}
