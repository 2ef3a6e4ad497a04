package main

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// canned is a result whose distance falls as a straight line.
func canned(scenario, sampler string, from, to float64, trials int) result {
	r := result{Scenario: scenario, Sampler: sampler, Date: "2026-12-01", Seeds: 40, First: heldOut, Trials: trials,
		WithinTwo: 20, WithinFive: 55, Crashes: 1, Ask: 12.5, AskP95: 31}
	for n := range trials {
		middle := rounded(from + (to-from)*float64(n)/float64(trials-1))
		r.Low, r.Median, r.High = append(r.Low, rounded(middle/2)), append(r.Median, middle), append(r.High, rounded(1.5*middle))
	}
	return r
}

// cannedResults has something for every table.
func cannedResults() results {
	var r results
	for _, s := range scenarios() {
		for _, sampler := range s.samplers {
			to := map[string]float64{"random": 20, "sobol": 18, "tpe": 12, "cmaes": 13, "descent": 6, "auto": 3}[sampler]
			one := canned(s.name, sampler, 36, to, s.trials)
			if sampler == "auto" {
				one.Model = map[int]float64{}
				for _, n := range checkpoints(s.trials) {
					one.Model[n] = rounded(0.9 * one.after(n))
				}
			}
			if s.name == "limit" {
				one.Broken = 7
			}
			r = append(r, one)
		}
	}
	return append(r, canned("server", "optuna-tpe", 36, 11, usualTrials))
}

// TestDocumentLayout compares the document of canned results with a golden file;
// -update rewrites it.
func TestDocumentLayout(t *testing.T) {
	b := &bench{seeds: 40, first: heldOut, date: "2026-12-01"}
	all := cannedResults()
	d := newDocument(all, b, "2 cores of linux/amd64, go1.26", all.inScenario("long"))
	got, err := d.text()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("testdata", "document.md")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the document differs from %s; see what -update changes", name)
	}
}

func TestSavedResultsAreReadBack(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "saved.json")
	first := results{canned("server", "auto", 30, 3, 40), canned("server", "descent", 30, 6, 40)}
	if err := first.save(name); err != nil {
		t.Fatal(err)
	}
	second := results{canned("server", "auto", 30, 2, 40)}
	if err := second.save(name); err != nil {
		t.Fatal(err)
	}
	all, err := readResults(folder)
	if err != nil {
		t.Fatal(err)
	}
	auto, ok := all.of("server", "auto")
	if len(all) != 2 || !ok || auto.after(40) != 2 {
		t.Errorf("read %d results, auto ends at %v, want 2 results and the later one", len(all), auto.after(40))
	}
	if err := os.WriteFile(filepath.Join(folder, "broken.json"), []byte(`[{"scenario": "server"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(folder); err == nil || !strings.Contains(err.Error(), "broken.json") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestGoals(t *testing.T) {
	replaced := func(changes ...result) results {
		r := results(changes)
		return append(r, r.lacking(cannedResults())...)
	}
	flat := func(scenario, sampler string, at float64) result {
		return canned(scenario, sampler, at, at, usualTrials)
	}
	slow := flat("history-foreign", "auto", 36)
	copy(slow.Median[11:], []float64{20, 20, 19}) // 10 trials without it end at 19 %
	for i := 14; i < len(slow.Median); i++ {
		slow.Median[i] = 3
	}
	clean := flat("server", "auto", 36)
	for i := 9; i < len(clean.Median); i++ {
		clean.Median[i] = 19 - 16*float64(min(i-9, 10))/10
	}
	for _, c := range []struct {
		what  string
		r     results
		value float64
		where string
		met   string
	}{
		{"server: distance after 40 trials", replaced(), 3, "", "yes"},
		{"server: distance after 40 trials", replaced(flat("server", "auto", 3.2)), 3.2, "", "**no**"},
		{"server: distance after 40 trials by that of descent", replaced(flat("server", "auto", 9)), 1.5, "", "**no**"},
		{"server: distance after 40 trials by that of the best of goptuna and Optuna", replaced(flat("server", "optuna-tpe", 10)), 0.3, "optuna-tpe", "yes"},
		{"worse than descent at 10, 20 or 40 trials, of all classes of problems", replaced(flat("flat", "auto", 8), flat("flat", "descent", 7)), 1, "flat after 10", "**no**"},
		{"history-foreign: trials to be as near as without it after 10, 20 and 30, by those without it", replaced(slow, clean), 1.4, "after 10", "**no**"},
		{"screening-none: trials to be as near as without it after 10, 20 and 30, by those without it",
			replaced(flat("screening-none", "auto", 36)), 41.0 / 10, "at least, after 10", "**no**"},
		{"recipe-foreign: lost against no recipe, at 10, 20 or 40 trials", replaced(flat("recipe-foreign", "auto", 4)), 1, "after 40", "**no**"},
		{"long: distance after 80 trials by that after 40", replaced(flat("long", "auto", 3)), 0, "", ""},
		{"long: distance after 80 trials by that after 40", replaced(canned("long", "auto", 32, 0.2, 160)), 16.2 / 24.2, "", "yes"},
	} {
		found := false
		for _, v := range judge(c.r) {
			if v.what != c.what {
				continue
			}
			found = true
			if math.Abs(v.value-c.value) > 0.005 || v.where != c.where || v.met(v.goal.goal) != c.met {
				t.Errorf("%s: measured %v (%s), met %q, want %v (%s), %q", c.what, v.value, v.where, v.met(v.goal.goal), c.value, c.where, c.met)
			}
		}
		if !found {
			t.Errorf("there is no goal %q", c.what)
		}
	}
}

// TestGoalsWithoutResults are neither met nor missed.
func TestGoalsWithoutResults(t *testing.T) {
	for _, v := range judge(nil) {
		if v.known || v.met(v.goal.goal) != "" || v.measured() != "not measured" {
			t.Errorf("%s: known %v, met %q", v.what, v.known, v.met(v.goal.goal))
		}
	}
}
