package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// result is what one sampler did in one scenario. Distances are in percent of the
// optimum.
type result struct {
	Scenario string `json:"scenario"`
	Sampler  string `json:"sampler"`
	// Date of the measurement, as 2026-12-01.
	Date   string `json:"date"`
	Seeds  int    `json:"seeds"`
	First  uint64 `json:"first_seed"`
	Trials int    `json:"trials"`
	// Quartiles of the distance after each trial.
	Low    []float64 `json:"low"`
	Median []float64 `json:"median"`
	High   []float64 `json:"high"`
	// Model is the median distance of what the model holds for the best, by the number
	// of trials; for auto alone.
	Model map[int]float64 `json:"model,omitempty"`
	// Shares of the campaigns that end within 2 and 5 %, in percent.
	WithinTwo  float64 `json:"within_2"`
	WithinFive float64 `json:"within_5"`
	// Medians of the trials that crashed and that broke a limit.
	Crashes float64 `json:"crashes"`
	Broken  float64 `json:"broken"`
	// Faults over all campaigns.
	Duplicates int `json:"duplicates"`
	Violations int `json:"violations"`
	// Milliseconds of a proposal: the median and the 95th percentile.
	Ask    float64 `json:"ask_ms"`
	AskP95 float64 `json:"ask_p95_ms"`
}

// after is the median distance after so many trials, or at the end.
func (r *result) after(n int) float64 { return r.Median[min(n, len(r.Median))-1] }

func summarize(runs []outcome, trials int) result {
	var r result
	for n := 1; n <= trials; n++ {
		low, middle, high := quartiles(runs, func(run outcome) float64 { return 100 * run.After(n) })
		r.Low, r.Median, r.High = append(r.Low, rounded(low)), append(r.Median, rounded(middle)), append(r.High, rounded(high))
	}
	r.WithinTwo, r.WithinFive = within(runs, trials, 0.02), within(runs, trials, 0.05)
	_, r.Crashes, _ = quartiles(runs, func(run outcome) float64 { return float64(run.Crashes) })
	_, r.Broken, _ = quartiles(runs, func(run outcome) float64 { return float64(run.Broken) })
	var asks []float64
	for _, run := range runs {
		r.Duplicates += run.Duplicates
		r.Violations += run.Violations
		for _, took := range run.Asks {
			asks = append(asks, 1000*took.Seconds())
		}
	}
	if slices.Sort(asks); len(asks) > 0 {
		r.Ask, r.AskP95 = rounded(asks[len(asks)/2]), rounded(asks[len(asks)*95/100])
	}
	return r
}

// rounded keeps two digits after the point: more are noise.
func rounded(x float64) float64 { return math.Round(100*x) / 100 }

func quartiles(runs []outcome, of func(outcome) float64) (low, middle, high float64) {
	list := make([]float64, len(runs))
	for i, r := range runs {
		list[i] = of(r)
	}
	slices.Sort(list)
	return list[len(list)/4], list[len(list)/2], list[3*len(list)/4]
}

// within is the share of the runs that end so near to the optimum, in percent.
func within(runs []outcome, trials int, distance float64) float64 {
	n := 0
	for _, r := range runs {
		if r.After(trials) <= distance {
			n++
		}
	}
	return math.Round(100 * float64(n) / float64(len(runs)))
}

// results are of any scenarios and samplers.
type results []result

// of finds one.
func (r results) of(scenario, sampler string) (*result, bool) {
	for i := range r {
		if r[i].Scenario == scenario && r[i].Sampler == sampler {
			return &r[i], true
		}
	}
	return nil, false
}

// lacking are those of others that r lacks.
func (r results) lacking(others results) results {
	var lacking results
	for i := range others {
		if _, known := r.of(others[i].Scenario, others[i].Sampler); !known {
			lacking = append(lacking, others[i])
		}
	}
	return lacking
}

// readResults reads all JSON files of a folder, in the order of their names.
func readResults(folder string) (results, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("results in %s: %w", folder, err)
	}
	var all results
	for _, name := range names {
		some, err := readFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, all.lacking(some)...)
	}
	return all, nil
}

func readFile(name string) (results, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var some results
	if err := json.Unmarshal(text, &some); err != nil {
		return nil, fmt.Errorf("results in %s: %w", name, err)
	}
	for i := range some {
		if r := &some[i]; len(r.Median) == 0 || len(r.Low) != len(r.Median) || len(r.High) != len(r.Median) {
			return nil, fmt.Errorf("results in %s: %s in %s has no quartiles for each trial", name, r.Sampler, r.Scenario)
		}
	}
	return some, nil
}

// save adds the results to a file, one a line, in place of those of the same
// samplers and scenarios.
func (r results) save(name string) error {
	earlier, err := readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := append(r.lacking(earlier), r...)
	text := []byte("[\n")
	for i := range all {
		line, err := json.Marshal(&all[i])
		if err != nil {
			return fmt.Errorf("results: %w", err)
		}
		if text = append(text, line...); i < len(all)-1 {
			text = append(text, ',')
		}
		text = append(text, '\n')
	}
	if err := os.WriteFile(name, append(text, "]\n"...), 0o644); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}
