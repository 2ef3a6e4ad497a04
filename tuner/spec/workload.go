package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"time"

	"nocturne/runners"
	"nocturne/runners/load"
)

// leastTimeout catches a slip of the unit: nothing that is waited for is done
// in less.
const leastTimeout = time.Second

// timeouts fills in the defaults and refuses slips of a unit.
func (r *resolver) timeouts() runners.Timeouts {
	file := r.file.Timeouts
	out := runners.Timeouts{}
	for _, one := range []struct {
		name  string
		given duration
		usual time.Duration
		into  *time.Duration
	}{
		{"launching", file.Launching, 2 * time.Minute, &out.Launching},
		{"loading", file.Loading, 45 * time.Minute, &out.Loading},
		{"stalled", file.Stalled, 10 * time.Minute, &out.Stalled},
		{"verifying", file.Verifying, 5 * time.Minute, &out.Verifying},
		{"warming", file.Warming, 10 * time.Minute, &out.Warming},
		{"round", file.Round, 10 * time.Minute, &out.Round},
		{"stopping", file.Stopping, time.Minute, &out.Stopping},
	} {
		*one.into = one.usual
		if !one.given.given() {
			continue
		}
		if one.given.Duration < leastTimeout {
			r.fault(one.given.Position, "timeouts.%s: %s is less than 1s, the least that makes sense; is the unit right?", one.name, one.given.Duration)
		}
		*one.into = one.given.Duration
	}
	return out
}

// count reads a whole number within bounds.
func (r *resolver) count(key string, value *scalar, usual, least, most int) int {
	if value == nil {
		return usual
	}
	number, err := value.whole()
	if err != nil || number < least || number > most {
		r.fault(value.Position, "%s: %q: want a whole number from %d to %d", key, value.Text, least, most)
		return usual
	}
	return number
}

// fraction reads a number from 0 up to, but not including, 1.
func (r *resolver) fraction(key string, value *scalar, usual float64) float64 {
	if value == nil {
		return usual
	}
	number, err := value.float()
	if err != nil || number < 0 || number >= 1 {
		r.fault(value.Position, "%s: %q: want a fraction from 0 to 1, such as 0.02 for 2 %%", key, value.Text)
		return usual
	}
	return number
}

const (
	mostTokens   = 10_000_000
	mostRequests = 10_000_000
)

var (
	datasets  = []string{load.DatasetRandom, load.DatasetPrompts, load.DatasetSharedPrefix}
	endpoints = []string{"completions", "chat", "generate"}
)

func (r *resolver) workload() runners.Workload {
	file := r.file.Workload
	out := runners.Workload{Name: r.label(file.Name), Rounds: runners.Rounds{Min: 2, Max: 6, Precision: 0.005}, Points: []runners.LoadPoint{{Concurrency: 1}}}
	if file.Rounds != nil && file.Rounds.Fixed > 0 {
		out.Rounds = runners.Rounds{Fixed: file.Rounds.Fixed}
	}
	if out.Rounds.Metric = r.label(r.file.Objective.Maximize); out.Rounds.Metric == "" {
		out.Rounds.Metric = r.label(r.file.Objective.Minimize)
	}
	if r.launch.kind == KindCommand {
		r.commandWorkload(&out)
		return out
	}
	largest := r.loadPoints(&out)
	out.OutputTokens = r.count("workload.output_tokens", file.OutputTokens, 256, 1, mostTokens)
	out.Requests = r.count("workload.requests", file.Requests, max(16, 4*largest, windowful(out)), 1, mostRequests)
	out.Warmup = r.count("workload.warmup", file.Warmup, max(2, largest), 0, mostRequests)
	out.IgnoreEOS = file.IgnoreEOS == nil || *file.IgnoreEOS
	if out.Requests < largest && file.RequestRate == nil {
		r.fault(file.Where.of("requests"), "workload.requests: %d requests cannot keep %d in flight; want at least as many", out.Requests, largest)
	}
	r.sampling(&out)
	r.dataset(&out)
	return out
}

// windowful is how many requests a window takes at the highest rate. The times
// between them are random, so it may be a quarter more than the rate says.
func windowful(out runners.Workload) int {
	highest := 0.0
	for _, point := range out.Points {
		highest = max(highest, point.RequestRate)
	}
	return min(int(math.Ceil(1.25*highest*out.Window.Seconds())), mostRequests)
}

// loadPoints reads every rate at every concurrency, and what belongs to an open
// loop; it returns the highest concurrency.
func (r *resolver) loadPoints(out *runners.Workload) (largest int) {
	file := r.file.Workload
	concurrencies, rates := []int{1}, []float64{0}
	if file.RequestRate != nil && len(file.RequestRate.Rates) > 0 {
		concurrencies, rates = []int{0}, file.RequestRate.Rates
	}
	if file.Concurrency != nil && len(file.Concurrency.Numbers) > 0 {
		concurrencies = file.Concurrency.Numbers
	}
	out.Points = nil
	for _, concurrency := range concurrencies {
		for _, rate := range rates {
			out.Points = append(out.Points, runners.LoadPoint{Concurrency: concurrency, RequestRate: rate})
		}
	}
	if file.Burstiness != nil {
		value, err := file.Burstiness.float()
		switch {
		case err != nil || value <= 0:
			r.fault(file.Burstiness.Position, "workload.burstiness: %q: want a number above 0; 1 is a Poisson process", file.Burstiness.Text)
		case file.RequestRate == nil:
			r.fault(file.Burstiness.Position, "workload.burstiness belongs to request_rate; add that, or remove it")
		default:
			out.Burstiness = value
		}
	}
	out.Window = file.Window.Duration
	if file.Window.given() && out.Window < leastTimeout {
		r.fault(file.Window.Position, "workload.window: %s is less than 1s, the least that makes sense; is the unit right?", out.Window)
	}
	if file.Goodput != nil {
		out.Goodput = runners.Goodput{TTFT: file.Goodput.TTFT.Duration, TPOT: file.Goodput.TPOT.Duration, E2EL: file.Goodput.E2EL.Duration}
	}
	return max(1, slices.Max(concurrencies))
}

// commandWorkload: a command brings its own workload.
func (r *resolver) commandWorkload(out *runners.Workload) {
	file := r.file.Workload
	if file.Rounds == nil {
		out.Rounds = runners.Rounds{Fixed: 1, Metric: out.Rounds.Metric}
	}
	for _, key := range keysOf(reflect.TypeFor[fileWorkload]()) {
		if file.Where.has(key) && key != "rounds" && key != "name" {
			r.fault(file.Where.of(key), "workload.%s: a command brings its own workload; with kind: command only rounds and name are allowed", key)
		}
	}
}

// sampling reads how the server is asked to answer.
func (r *resolver) sampling(out *runners.Workload) {
	file := r.file.Workload
	out.Endpoint = r.word("workload.endpoint", file.Endpoint, "completions", endpoints)
	if out.Endpoint == "generate" && r.launch.kind != "sglang" && r.launch.kind != "custom" && r.launch.kind != "" {
		r.fault(file.Endpoint.Position, "workload.endpoint: generate is SGLang's own, and the server is %s; write completions or chat", r.launch.kind)
	}
	if file.Temperature == nil {
		return
	}
	value, err := file.Temperature.float()
	if err != nil || value < 0 {
		r.fault(file.Temperature.Position, "workload.temperature: %q: want a number from 0", file.Temperature.Text)
	}
	out.Temperature = value
}

// dataset reads where the prompts come from.
func (r *resolver) dataset(out *runners.Workload) {
	file := r.file.Workload
	out.Dataset = r.word("workload.dataset", file.Dataset, load.DatasetRandom, datasets)
	for key, given := range map[string]*scalar{"prefix_tokens": file.PrefixTokens, "prefixes": file.Prefixes} {
		if given != nil && out.Dataset != load.DatasetSharedPrefix {
			r.fault(given.Position, "workload.%s belongs to dataset: shared-prefix; add that, or remove it", key)
		}
	}
	if out.Dataset == load.DatasetPrompts {
		if file.InputTokens != nil {
			r.fault(file.InputTokens.Position, "workload.input_tokens belongs to dataset: random; a prompts file has its own lengths")
		}
		r.prompts(out)
		return
	}
	out.InputTokens = r.count("workload.input_tokens", file.InputTokens, 512, 1, mostTokens)
	if out.Dataset == load.DatasetSharedPrefix {
		out.PrefixTokens = r.count("workload.prefix_tokens", file.PrefixTokens, 256, 1, mostTokens)
		out.Prefixes = r.count("workload.prefixes", file.Prefixes, 10, 1, mostRequests)
	}
	if file.File != nil {
		r.fault(file.File.Position, "workload.file belongs to dataset: prompts; add that, or remove the file")
	}
	if r.file.Space.Where.has("speculative") {
		r.warn(r.file.Space.Where.of("speculative"), "speculation on random prompts: acceptance there says nothing about real traffic; give workload.dataset: prompts with a file")
	}
}

// prompts reads the prompts' file, so that a fault in it is told before
// anything is started.
func (r *resolver) prompts(out *runners.Workload) {
	file := r.file.Workload
	if file.File == nil {
		if !file.Where.has("file") {
			r.fault(file.Where.of("dataset"), "workload: dataset: prompts needs a file: JSON lines with a prompt field each")
		}
		return
	}
	out.File = r.path(file.File)
	content, err := readPrompts(out.File)
	if err != nil {
		r.fault(file.File.Position, "workload.file: %v; paths start from the folder of the campaign file", err)
		return
	}
	sum := sha256.Sum256(content)
	out.FileDigest = hex.EncodeToString(sum[:])
	if _, err := load.OpenDataset(*out); err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // without the name of the workload
		}
		r.fault(file.File.Position, "workload.file: %v", err)
	}
}

// largestPrompts bounds a prompts file, in bytes: it is held in memory.
const largestPrompts = 256 << 20

func readPrompts(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > largestPrompts:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are taken", path, info.Size(), largestPrompts)
	}
	return os.ReadFile(path)
}
