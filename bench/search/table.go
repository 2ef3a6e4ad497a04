package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nocturne/search/problems"
)

// tableOptions are the flags of recorded tables.
type tableOptions struct {
	file, objective string
	ignore          []string
	constraints     []string
	minimize, first bool
}

func (t *tableOptions) flags(flags *flag.FlagSet) {
	flags.StringVar(&t.file, "table", "", "run on this recorded table instead, CSV or JSON: a column for each knob, and for an invalid configuration nothing in the objective's")
	flags.StringVar(&t.objective, "objective", "", "column of the table that holds the value")
	flags.BoolVar(&t.minimize, "minimize", false, "the table's value is better when smaller")
	flags.BoolVar(&t.first, "first-is-default", false, "the table's first row is the default; else each campaign has another of the worse half")
	flags.Func("ignore", "columns of the table that are no knobs, separated by commas", func(text string) error {
		t.ignore = strings.Split(text, ",")
		return nil
	})
	flags.Func("constraint", "a rule, as in a campaign file, that rejects what the table lacks; may be given several times", func(text string) error {
		t.constraints = append(t.constraints, text)
		return nil
	})
}

func (t *tableOptions) check() error {
	if t.file != "" && t.objective == "" {
		return errors.New("-table needs -objective, the column that holds the value")
	}
	return nil
}

// scenario reads the table.
func (t *tableOptions) scenario() (scenario, error) {
	file, err := os.Open(t.file)
	if err != nil {
		return scenario{}, fmt.Errorf("recorded table: %w", err)
	}
	defer file.Close()
	read := problems.ReadCSV
	if strings.EqualFold(filepath.Ext(t.file), ".json") {
		read = problems.ReadJSON
	}
	return t.from(read, file)
}

func (t *tableOptions) from(read func(io.Reader, string, []string) ([]problems.Record, []string, error), file io.Reader) (scenario, error) {
	rows, knobs, err := read(file, t.objective, t.ignore)
	if err != nil {
		return scenario{}, err
	}
	given := problems.RecordedOptions{
		Name: strings.TrimSuffix(filepath.Base(t.file), filepath.Ext(t.file)), Knobs: knobs,
		Minimize: t.minimize, Constraints: t.constraints, FirstIsDefault: t.first,
	}
	// A table that makes a problem for one seed makes one for each.
	if _, err := problems.Recorded(0, rows, given); err != nil {
		return scenario{}, err
	}
	draw := func(seed uint64) *problems.Problem {
		problem, err := problems.Recorded(seed, slices.Clone(rows), given)
		if err != nil {
			panic("bench/search: " + err.Error())
		}
		return problem
	}
	return scenario{
		name: given.Name, about: fmt.Sprintf("%d recorded configurations of %d knobs", len(rows), len(knobs)),
		group: table, draw: draw, trials: usualTrials, samplers: own,
	}, nil
}
