package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustParse(t *testing.T, arguments ...string) *options {
	t.Helper()
	o, err := parse(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func output(t *testing.T, arguments ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(context.Background(), mustParse(t, arguments...), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTableHasARowForEachSampler(t *testing.T) {
	out := output(t, "-seeds", "2", "-trials", "6", "-scenarios", "size-200", "-samplers", "random,descent,auto")
	for _, want := range []string{
		"### size-200: tables of about 200 configurations", "2 problems, ", "| sampler | 3 trials | 5 trials | 6 trials |",
		"| random |", "| descent |", "| auto |", "configurations twice, or against a known constraint, over everything | 0 | 0 | 0.00 | yes | yes |",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
}

// TestSameSeedsGiveTheSameDistances, whatever ran before on which processor.
func TestSameSeedsGiveTheSameDistances(t *testing.T) {
	measure := func() string {
		name := filepath.Join(t.TempDir(), "saved.json")
		output(t, "-seeds", "3", "-trials", "8", "-scenarios", "history-15", "-samplers", "descent", "-date", "2026-12-01", "-save", name)
		all, err := readFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].Ask, all[i].AskP95 = 0, 0
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if first, second := measure(), measure(); first != second {
		t.Errorf("two runs gave\n%s\n%s", first, second)
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for want, arguments := range map[string][]string{
		"unknown scenario servers, want all, none": {"-scenarios", "servers"},
		"-table needs -objective":                  {"-table", "kernel.csv"},
		"at least 1 seed":                          {"-seeds", "0"},
		"unexpected argument server":               {"server"},
	} {
		if _, err := parse(arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error with %q", arguments, err, want)
		}
	}
}

// TestThePageIsWrittenAnew from saved results, without a measurement.
func TestThePageIsWrittenAnew(t *testing.T) {
	folder := t.TempDir()
	saved, page := filepath.Join(folder, "saved.json"), filepath.Join(folder, "page.md")
	output(t, "-seeds", "2", "-trials", "5", "-scenarios", "size-200", "-save", saved)
	output(t, "-scenarios", "none", "-from", saved, "-results", filepath.Join(folder, "none"), "-seeds", "2", "-write", page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "**size-200**") || strings.Contains(string(text), "measured apart") {
		t.Errorf("the page lacks what was saved, or calls it measured apart:\n%s", text)
	}
}

// TestTheDocumentReportsHeldOutProblems unless another seed is named.
func TestTheDocumentReportsHeldOutProblems(t *testing.T) {
	if o := mustParse(t, "-write", "page.md"); o.first != heldOut {
		t.Errorf("-write begins at seed %d, want %d", o.first, heldOut)
	}
	if o := mustParse(t, "-write", "page.md", "-first", "7"); o.first != 7 {
		t.Errorf("-write -first 7 begins at seed %d", o.first)
	}
	if o := mustParse(t); o.first != 0 {
		t.Errorf("without -write the first seed is %d, want 0", o.first)
	}
}

func TestGroupsAreChosenByName(t *testing.T) {
	for _, c := range []struct {
		names string
		holds []string
		lacks []string
	}{
		{"all", []string{"server", "ruled", "counters"}, []string{"long"}},
		{"classes", []string{"ruled", "limit"}, []string{"server", "counters"}},
		{"knowledge", []string{"history-5", "everything"}, []string{"server"}},
		{"long,server", []string{"long", "server"}, []string{"ruled"}},
		{"none", nil, []string{"server"}},
	} {
		chosen, err := choose(strings.Split(c.names, ","))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, s := range chosen {
			found[s.name] = true
		}
		for _, name := range c.holds {
			if !found[name] {
				t.Errorf("%s lacks %s", c.names, name)
			}
		}
		for _, name := range c.lacks {
			if found[name] {
				t.Errorf("%s holds %s", c.names, name)
			}
		}
	}
}

func TestRecordedTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kernel.csv")
	rows := "block,order,time,energy\n"
	for _, block := range []string{"16", "32", "64", "128"} {
		for i, order := range []string{"row", "column", "tile"} {
			rows += strings.Join([]string{block, order, string(rune('1'+i)) + "." + block, "3"}, ",") + "\n"
		}
	}
	if err := os.WriteFile(name, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	out := output(t, "-table", name, "-objective", "time", "-minimize", "-ignore", "energy", "-seeds", "3", "-trials", "12", "-samplers", "descent,grid")
	for _, want := range []string{"### kernel: 12 recorded configurations of 2 knobs", "| grid | ", "0 % of random configurations crash"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
}

// TestNoOptuna: where there is no Python, or no Optuna in it, the sampler is left
// out with a word, and the others run.
func TestNoOptuna(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "bare")
	if err := os.WriteFile(bare, []byte("#!/bin/sh\necho '{\"missing\": \"No module named optuna\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for python, want := range map[string]string{"no-such-python": "no-such-python", bare: "No module named optuna"} {
		var out, progress strings.Builder
		o := mustParse(t, "-python", python, "-seeds", "1", "-trials", "3", "-scenarios", "size-200", "-samplers", "optuna-tpe,random")
		if err := run(context.Background(), o, &out, &progress); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(progress.String(), "optuna-tpe is left out") || !strings.Contains(progress.String(), want) {
			t.Errorf("%s: the message is %q", python, progress.String())
		}
		if strings.Contains(out.String(), "| optuna-tpe |") || !strings.Contains(out.String(), "| random |") {
			t.Errorf("%s: the table is\n%s", python, out.String())
		}
	}
}
