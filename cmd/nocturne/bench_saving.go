package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"nocturne/runners/load"
)

// benchSaving are the options of `bench` on what is shown and saved.
type benchSaving struct {
	save                         string
	saveResult, detailed, append bool
	directory, filename, label   string
	metadata                     []string
	families                     []string
	percentiles                  []float64

	fields map[string]string // metadata
	path   string            // of the file, once its name is known
}

func (s *benchSaving) register(f *pflag.FlagSet) {
	f.StringVar(&s.save, "save", "", "write a result file in the form of `vllm bench serve`, with an entry for each request")
	f.BoolVar(&s.saveResult, "save-result", false, "write it under --result-filename, or a name made as `vllm bench serve` does")
	f.BoolVar(&s.detailed, "save-detailed", false, "with --save-result: an entry for each request, with its text")
	f.BoolVar(&s.append, "append-result", false, "add to the file instead of replacing it")
	f.StringVar(&s.directory, "result-dir", "", "folder of the result file")
	f.StringVar(&s.filename, "result-filename", "", "name of the result file")
	f.StringVar(&s.label, "label", "", "label of the result, and the start of its file's name")
	f.StringSliceVar(&s.metadata, "metadata", nil, "KEY=VALUE, further fields of the result")
	f.StringSliceVar(&s.families, "percentile-metrics", nil, "latencies to show: "+strings.Join(load.VLLMFamilies(), ", ")+" (default: ttft,tpot,itl)")
	f.Float64SliceVar(&s.percentiles, "metric-percentiles", nil, "percentiles to show and save (default: 99)")
}

func (s *benchSaving) check() error {
	s.fields = map[string]string{}
	for _, field := range s.metadata {
		name, value, ok := strings.Cut(field, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf("--metadata %q: want KEY=VALUE", field)
		}
		s.fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	for _, family := range s.families {
		if !slices.Contains(load.VLLMFamilies(), family) {
			return fmt.Errorf("--percentile-metrics %q: want some of %s", family, strings.Join(load.VLLMFamilies(), ", "))
		}
	}
	for _, percent := range s.percentiles {
		if !(percent >= 0 && percent <= 100) {
			return fmt.Errorf("--metric-percentiles %g: want numbers from 0 to 100", percent)
		}
	}
	if s.save != "" && (s.saveResult || s.filename != "") {
		return errors.New("--save names the file already; leave --save-result and --result-filename out")
	}
	if !s.wanted() && (s.append || s.detailed || s.directory != "" || s.filename != "") {
		return errors.New("--save-detailed, --append-result, --result-dir and --result-filename say how to save; add --save-result or --save")
	}
	return nil
}

func (s *benchSaving) wanted() bool { return s.save != "" || s.saveResult }

// details tells whether an entry for each request is kept, and whether with its
// text.
func (s *benchSaving) details() (entries, texts bool) {
	return s.save != "" || s.saveResult && s.detailed, s.wanted() && s.detailed
}

// meta is what the table and the file say beside the metrics.
func (b *benchFlags) meta(point benchPoint, model string, started time.Time) load.VLLMMeta {
	backend := b.backend
	if backend == "" {
		backend = map[load.Protocol]string{load.OpenAICompletions: "openai", load.OpenAIChat: "openai-chat", load.SGLangGenerate: "sglang"}[b.protocol]
	}
	return load.VLLMMeta{
		Date: started, Backend: backend, Label: b.label, Model: model, Arrival: point.arrival,
		MaxConcurrency: point.concurrency, Percentiles: b.percentiles, Families: b.families, Metadata: b.fields,
	}
}

// write adds the outcome of a load point to the file: the first one begins it,
// unless it is to be added to.
func (s *benchSaving) write(outcome load.RoundOutcome, meta load.VLLMMeta) (err error) {
	if !s.wanted() {
		return nil
	}
	mode := os.O_APPEND
	if s.path == "" {
		s.path = s.name(meta)
		if !s.append {
			mode = os.O_TRUNC
		}
	}
	if folder := filepath.Dir(s.path); folder != "." {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("folder of the result file: %w", err)
		}
	}
	file, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return fmt.Errorf("result file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return load.WriteVLLMResult(file, outcome, meta)
}

// name is the path of the file; its usual name is that of `vllm bench serve`.
func (s *benchSaving) name(meta load.VLLMMeta) string {
	if s.save != "" {
		return filepath.Join(s.directory, s.save)
	}
	if s.filename != "" {
		return filepath.Join(s.directory, s.filename)
	}
	start, rate, bound := meta.Label, "inf", ""
	if start == "" {
		start = meta.Backend
	}
	if meta.Arrival.Open() {
		rate = strconv.FormatFloat(meta.Arrival.Rate, 'f', -1, 64)
	}
	if meta.MaxConcurrency > 0 {
		bound = fmt.Sprintf("-concurrency%d", meta.MaxConcurrency)
	}
	model := meta.Model[strings.LastIndexByte(meta.Model, '/')+1:]
	return filepath.Join(s.directory, fmt.Sprintf("%s-%sqps%s-%s-%s.json", start, rate, bound, model, meta.Date.Format("20060102-150405")))
}
