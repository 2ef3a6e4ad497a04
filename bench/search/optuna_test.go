package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

// dies is the reply of a process that ends.
const dies = ""

// served plays Optuna: it answers each line with the next reply and keeps what it
// was told.
func served(t *testing.T, replies ...string) (*pythonProcess, func() []string) {
	t.Helper()
	var lines []string
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer answers.Close()
		scanner := bufio.NewScanner(requests)
		for _, reply := range replies {
			if !scanner.Scan() {
				return
			}
			lines = append(lines, scanner.Text())
			if reply == dies {
				return
			}
			fmt.Fprintln(answers, reply)
		}
	}()
	return &pythonProcess{in: in, out: bufio.NewScanner(out)}, func() []string {
		in.Close()
		<-done
		return lines
	}
}

func TestOptunaIsToldAndAsked(t *testing.T) {
	space, err := search.NewSpace([]search.Knob{
		{ID: "proto", Kind: search.Categorical, Levels: search.Choices("LL", "Simple"), Default: search.Text("Simple")},
		{ID: "steps", Kind: search.Integer, Levels: []search.Value{search.Int(0), search.Int(1), search.Int(2)}, Default: search.Int(0)},
		{ID: "topk", Kind: search.Ordinal, Levels: []search.Value{search.Int(1), search.Int(4)}, Default: search.Int(4),
			When: search.Condition{Knob: "steps", In: []search.Value{search.Int(0)}, Not: true}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	process, told := served(t, "{}", "{}", "{}", `{"levels": [0, 0, 1]}`)
	sampler := &optunaSampler{name: "optuna-tpe", kind: "tpe", process: process}
	proposal, err := sampler.Ask(context.Background(), search.Request{Space: space, Minimize: true, Seed: 7, History: []search.Observation{
		{Values: space.Default(), Value: 2.5},
		{Values: search.Values{"proto": search.Text("LL"), "steps": search.Int(2), "topk": search.Int(1)}, Outcome: search.Infeasible},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := proposal.Values.String(); got != `proto="LL" steps=0` {
		t.Errorf("proposed %s, want the levels as values and no top-k without steps", got)
	}
	want := []string{
		`{"new":{"knobs":[{"id":"proto","levels":2,"ordered":false},{"id":"steps","levels":3,"ordered":true},{"id":"topk","levels":2,"ordered":true}],"sampler":"tpe","seed":7}}`,
		`{"tell":{"levels":[1,0,1],"value":-2.5}}`,
		`{"tell":{"levels":[0,2,0],"value":null}}`,
		`{"ask":{}}`,
	}
	if got := told(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("Optuna was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOptunasFaultsAreErrors(t *testing.T) {
	for want, replies := range map[string][]string{
		"ValueError: no":            {`{"error": "ValueError: no"}`},
		"answered \"Traceback\"":    {"Traceback"},
		"ended without an answer":   {dies},
		"left out: No module named": {`{"missing": "No module named torch"}`},
		"1 levels for 13 knobs":     {"{}", `{"levels": [1]}`},
	} {
		process, told := served(t, replies...)
		sampler := &optunaSampler{name: "optuna-gp", kind: "gp", process: process}
		_, err := sampler.Ask(context.Background(), search.Request{Space: problems.Server(1).Space})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		told()
	}
}
