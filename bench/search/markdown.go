package main

import (
	"fmt"
	"slices"
	"strings"
)

// checkpoints are the trial counts of a table's columns.
func checkpoints(trials int) []int {
	var list []int
	for _, n := range []int{3, 5, 10, 20, 40, 80, 160} {
		if n <= trials {
			list = append(list, n)
		}
	}
	if len(list) == 0 || list[len(list)-1] != trials {
		list = append(list, trials)
	}
	return list
}

// markdown is a table under construction.
type markdown struct {
	strings.Builder
	columns int
}

func newMarkdown(header ...string) *markdown {
	m := &markdown{columns: len(header)}
	m.row(header...)
	fmt.Fprintf(m, "|%s\n", strings.Repeat(" --- |", m.columns))
	return m
}

func (m *markdown) row(cells ...string) {
	fmt.Fprintf(m, "| %s |\n", strings.Join(cells, " | "))
}

// samplerTable has a row for each sampler of one scenario.
func samplerTable(rows results) string {
	if len(rows) == 0 {
		return ""
	}
	trials := 0
	for i := range rows {
		trials = max(trials, rows[i].Trials)
	}
	at := checkpoints(trials)
	header := []string{"sampler"}
	for _, n := range at {
		header = append(header, fmt.Sprintf("%d trials", n))
	}
	m := newMarkdown(append(header, "within 2 / 5 %", "crashes", "proposal ms, p95")...)
	descent, _ := rows.of(rows[0].Scenario, "descent")
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Sampler}
		for _, n := range at {
			cells = append(cells, cell(r, n)+ratioText(r, descent, n))
		}
		m.row(append(cells, fmt.Sprintf("%.0f / %.0f %%", r.WithinTwo, r.WithinFive), fmt.Sprintf("%.0f", r.Crashes),
			fmt.Sprintf("%.1f, %.1f", r.Ask, r.AskP95))...)
		if r.Model != nil {
			m.row(modelCells(r, at)...)
		}
	}
	return m.String()
}

// modelCells are the row of the model's own choice.
func modelCells(r *result, at []int) []string {
	cells := []string{r.Sampler + ", the model's choice"}
	for _, n := range at {
		text := ""
		if choice, known := r.Model[n]; known {
			text = fmt.Sprintf("%.1f", choice)
		}
		cells = append(cells, text)
	}
	return append(cells, "", "", "")
}

// cell is a median with its quartiles.
func cell(r *result, n int) string {
	n = min(n, len(r.Median))
	return fmt.Sprintf("%.1f [%.1f, %.1f]", r.Median[n-1], r.Low[n-1], r.High[n-1])
}

// ratioText is the share of the descent's distance.
func ratioText(r, descent *result, n int) string {
	if descent == nil || r.Sampler == descent.Sampler || descent.after(n) == 0 {
		return ""
	}
	return fmt.Sprintf(" ×%.2f", r.after(n)/descent.after(n))
}

// scenarioTable has a row for each scenario and sampler.
func scenarioTable(rows results, list []scenario) string {
	at := []int{3, 10, 20, 40}
	header := []string{"problems", "sampler"}
	for _, n := range at {
		header = append(header, fmt.Sprintf("%d trials", n))
	}
	m := newMarkdown(append(header, "crashes")...)
	for _, s := range list {
		descent, _ := rows.of(s.name, "descent")
		label := fmt.Sprintf("**%s**: %s", s.name, s.about)
		for i := range rows {
			r := &rows[i]
			if r.Scenario != s.name {
				continue
			}
			cells := []string{label, r.Sampler}
			for _, n := range at {
				cells = append(cells, cell(r, n)+ratioText(r, descent, n))
			}
			crashes := fmt.Sprintf("%.0f", r.Crashes)
			if r.Broken > 0 {
				crashes += fmt.Sprintf(", %.0f broke the limit", r.Broken)
			}
			m.row(append(cells, crashes)...)
			label = ""
		}
	}
	return m.String()
}

// goalTable has a row for each goal.
func goalTable(verdicts []verdict) string {
	m := newMarkdown("what", "goal", "gate", "measured", "goal met", "gate met")
	for _, v := range verdicts {
		m.row(v.what, v.limit(v.goal.goal), v.limit(v.goal.gate), v.measured(), v.met(v.goal.goal), v.met(v.goal.gate))
	}
	return m.String()
}

// faults counts repeats and violations over everything.
func (r results) faults() (duplicates, violations int) {
	for i := range r {
		if !strings.HasPrefix(r[i].Sampler, "optuna") {
			duplicates += r[i].Duplicates
			violations += r[i].Violations
		}
	}
	return duplicates, violations
}

// inGroup picks the scenarios of a table.
func inGroup(list []scenario, g group) []scenario {
	return slices.DeleteFunc(slices.Clone(list), func(s scenario) bool { return s.group != g })
}
