package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"nocturne/runners/load"
)

// benchFlags are the options of `bench`.
type benchFlags struct {
	model, kind, endpoint, backend string
	dataset                        load.DatasetSpec
	outputTokens                   int
	concurrency                    []int
	rates                          []float64
	burstiness                     float64
	window                         time.Duration
	goodput                        []string
	ignoreEOS                      bool
	temperature, scale             float64
	header                         []string
	extraBody                      string
	benchSaving

	// What check makes of them.
	protocol load.Protocol
	limits   load.Goodput
	headers  http.Header
	extra    map[string]any
	unbound  bool // a rate without a bound on the requests in flight
}

func newBenchFlags() *benchFlags {
	return &benchFlags{dataset: load.DatasetSpec{Workload: "bench"}}
}

// benchSynonyms are the names of `vllm bench serve` for options that have another
// one here.
var benchSynonyms = map[string]string{
	"max-concurrency": "concurrency", "num-prompts": "requests", "num-warmups": "warmup",
	"dataset-name": "dataset", "dataset-path": "file",
	"input-len": "input-tokens", "random-input-len": "input-tokens", "prefix-repetition-suffix-len": "input-tokens",
	"output-len": "output-tokens", "random-output-len": "output-tokens", "sharegpt-output-len": "output-tokens",
	"custom-output-len": "output-tokens", "prefix-repetition-output-len": "output-tokens",
	"prefix-repetition-prefix-len": "prefix-tokens", "prefix-repetition-num-prefixes": "prefixes",
}

// benchDatasets are other words for the datasets, with the same meaning.
var benchDatasets = map[string]string{
	"sharegpt": load.DatasetPrompts, "custom": load.DatasetPrompts, "prefix_repetition": load.DatasetSharedPrefix,
}

// benchEndpoints maps the words for an endpoint to its protocol.
var benchEndpoints = map[string]load.Protocol{
	"completions": load.OpenAICompletions, "/v1/completions": load.OpenAICompletions,
	"chat": load.OpenAIChat, "/v1/chat/completions": load.OpenAIChat,
	"generate": load.SGLangGenerate, "/generate": load.SGLangGenerate,
}

// benchBackends maps the backends of `vllm bench serve` and SGLang's benchmark to
// protocols.
var benchBackends = map[string]load.Protocol{
	"openai": load.OpenAICompletions, "vllm": load.OpenAICompletions, "llama.cpp": load.OpenAICompletions, "sglang-oai": load.OpenAICompletions,
	"openai-chat": load.OpenAIChat, "vllm-chat": load.OpenAIChat, "sglang-oai-chat": load.OpenAIChat, "sglang": load.SGLangGenerate,
}

func (b *benchFlags) register(f *pflag.FlagSet) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if ours, ok := benchSynonyms[name]; ok {
			name = ours
		}
		return pflag.NormalizedName(name)
	})
	f.StringVar(&b.model, "model", "", "model id (default: the one that the server lists)")
	f.StringVar(&b.endpoint, "endpoint", "completions", "completions, chat, or generate")
	f.StringVar(&b.backend, "backend", "", "the endpoint, by its name in `vllm bench serve`: openai, openai-chat, sglang")
	f.StringVar(&b.kind, "kind", "", "server kind: what its requests carry, which counters are read, how prompts are counted (sglang, vllm, llamacpp, trtllm)")
	f.StringVar(&b.dataset.Dataset, "dataset", load.DatasetRandom, "random, prompts with --file, or shared-prefix")
	f.StringVar(&b.dataset.File, "file", "", "prompts: JSON lines or ShareGPT")
	f.IntVar(&b.dataset.InputTokens, "input-tokens", 512, "length of random prompts, or of what follows a shared prefix; exact with --kind")
	f.IntVar(&b.dataset.PrefixTokens, "prefix-tokens", 256, "length of a shared prefix")
	f.IntVar(&b.dataset.Prefixes, "prefixes", 10, "shared prefixes, each of an equal part of the requests")
	f.IntVar(&b.outputTokens, "output-tokens", 256, "tokens to generate for each request")
	f.IntVar(&b.dataset.Requests, "requests", 32, "requests at each load point")
	f.IntVar(&b.dataset.Warmup, "warmup", 2, "requests sent and discarded first")
	f.IntSliceVar(&b.concurrency, "concurrency", nil, "requests in flight; with a rate the most of them (default: 1, or no bound with a rate); several: load points")
	f.Float64SliceVar(&b.rates, "request-rate", nil, "requests a second, at times of their own (default: as soon as there is a place); several: load points")
	f.Float64Var(&b.burstiness, "burstiness", 1, "shape of the gamma distribution of the times between requests: 1 is Poisson, more is steadier, inf is an even beat")
	f.DurationVar(&b.window, "window", 0, "stop sending after so long (default: when all requests are sent)")
	f.StringSliceVar(&b.goodput, "goodput", nil, "service level for goodput in milliseconds: ttft:500,tpot:50,e2el:5000")
	f.BoolVar(&b.ignoreEOS, "ignore-eos", true, "force the output length")
	f.Float64Var(&b.temperature, "temperature", 0, "sampling temperature")
	f.StringArrayVar(&b.header, "header", nil, "KEY=VALUE, sent with every request")
	f.StringVar(&b.extraBody, "extra-body", "", "JSON object of further fields of every request")
	f.Float64Var(&b.scale, "serving-scale", 1, "of a simulated server")
	f.Uint64Var(&b.dataset.Seed, "seed", 0, "of prompts and arrivals (default: drawn)")
	b.benchSaving.register(f)
}

// check refuses what cannot be, and fills in what depends on other options.
func (b *benchFlags) check(f *pflag.FlagSet) error {
	if name, ok := benchDatasets[b.dataset.Dataset]; ok {
		b.dataset.Dataset = name
	}
	if b.dataset.Dataset != load.DatasetSharedPrefix {
		b.dataset.PrefixTokens, b.dataset.Prefixes = 0, 0
	}
	if len(b.concurrency) == 0 {
		b.unbound = len(b.rates) > 0
		b.concurrency = []int{1}
	}
	if slices.Min(b.concurrency) < 1 || b.dataset.Requests < 1 || b.outputTokens < 1 || b.dataset.Warmup < 0 {
		return errors.New("--concurrency, --requests and --output-tokens want whole numbers from 1, --warmup from 0")
	}
	if b.burstiness <= 0 || b.window < 0 || slices.ContainsFunc(b.rates, func(rate float64) bool { return !(rate > 0) }) {
		return errors.New("--request-rate, --burstiness and --window want numbers above 0")
	}
	if b.dataset.File != "" && b.dataset.Dataset != load.DatasetPrompts {
		return fmt.Errorf("--file belongs to --dataset prompts, not %s", b.dataset.Dataset)
	}
	if b.dataset.Seed == 0 {
		var raw [8]byte
		if _, err := rand.Read(raw[:]); err != nil {
			return fmt.Errorf("drawing a seed: %w", err)
		}
		b.dataset.Seed = binary.LittleEndian.Uint64(raw[:])
	}
	return errors.Join(b.checkTarget(f.Changed("endpoint")), b.checkLimits(), b.benchSaving.check())
}

// checkTarget reads what is said about the server and its requests.
func (b *benchFlags) checkTarget(endpointGiven bool) error {
	var known bool
	if b.protocol, known = benchEndpoints[b.endpoint]; !known {
		return fmt.Errorf("--endpoint %q: want completions, chat or generate", b.endpoint)
	}
	if b.backend != "" {
		protocol, known := benchBackends[b.backend]
		if !known {
			return fmt.Errorf("--backend %q: want one of %s", b.backend, strings.Join(slices.Sorted(maps.Keys(benchBackends)), ", "))
		}
		if endpointGiven && protocol != b.protocol {
			return fmt.Errorf("--backend %s has the endpoint %s, not %s; leave one of the two out", b.backend, protocol, b.protocol)
		}
		b.protocol = protocol
	}
	b.headers = http.Header{}
	for _, header := range b.header {
		name, value, ok := strings.Cut(header, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return errors.New("--header wants KEY=VALUE") // the value may be a secret
		}
		b.headers.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if b.extraBody != "" {
		if err := json.Unmarshal([]byte(b.extraBody), &b.extra); err != nil || b.extra == nil {
			return fmt.Errorf("--extra-body wants a JSON object, not %s", b.extraBody)
		}
	}
	return nil
}

func (b *benchFlags) checkLimits() (err error) {
	if b.limits, err = load.ParseGoodput(b.goodput); err != nil {
		return fmt.Errorf("--goodput: %w", err)
	}
	return nil
}

// points are the load points in the order in which they are measured: every rate
// at every concurrency.
func (b *benchFlags) points() []benchPoint {
	rates := b.rates
	if len(rates) == 0 {
		rates = []float64{0}
	}
	var points []benchPoint
	for _, concurrency := range b.concurrency {
		if b.unbound {
			concurrency = 0
		}
		for _, rate := range rates {
			point := benchPoint{concurrency: concurrency}
			if rate > 0 {
				point.arrival = load.Arrival{Rate: rate, Burstiness: b.burstiness, Seed: b.dataset.Seed + uint64(len(points))}
			}
			if !point.arrival.Open() { // an infinite rate is a closed loop
				point.concurrency = max(point.concurrency, 1)
			}
			points = append(points, point)
		}
	}
	return points
}

// widest is how many of the warm-up's requests are in flight at once.
func (b *benchFlags) widest(requests int) int { return min(slices.Max(b.concurrency), requests) }
