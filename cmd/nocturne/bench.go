package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/spf13/cobra"

	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/runners/servers"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

type benchFlags struct {
	model, endpoint, dataset, file, kind, save string
	input, outputTokens, requests, warmup      int
	concurrency                                int
	ignoreEOS                                  bool
	temperature, scale                         float64
	seed                                       uint64
}

func (a *app) bench() *cobra.Command {
	var flags benchFlags
	command := &cobra.Command{
		Use:   "bench URL",
		Short: "The load generator alone, on a running server",
		Long: `Sends one round of a workload to a running server and prints the metrics under the
names of ` + "`vllm bench serve`" + `. --save writes a result file that tools for that command
read. Exit status: 0 measured, 1 the numbers must not count.`,
		Example: "  nocturne bench http://127.0.0.1:8000 --concurrency 8 --requests 64 --output-tokens 256\n  nocturne bench 'http://[::1]:30000' --kind sglang --save result.json",
		Args:    exactly(1, "one URL"),
		RunE: func(command *cobra.Command, args []string) error {
			return a.runBench(command.Context(), args[0], flags)
		},
	}
	f := command.Flags()
	f.StringVar(&flags.model, "model", "", "model id (default: the one that the server lists)")
	f.StringVar(&flags.endpoint, "endpoint", "completions", "completions, chat, or generate")
	f.StringVar(&flags.dataset, "dataset", "random", "random, or prompts with --file")
	f.StringVar(&flags.file, "file", "", "prompts: JSON lines or ShareGPT")
	f.StringVar(&flags.kind, "kind", "", "server kind: what its requests carry and which counters are read (sglang, vllm, llamacpp)")
	f.StringVar(&flags.save, "save", "", "write a result file in the form of `vllm bench serve`")
	f.IntVar(&flags.input, "input-tokens", 512, "length of random prompts")
	f.IntVar(&flags.outputTokens, "output-tokens", 256, "tokens to generate for each request")
	f.IntVar(&flags.requests, "requests", 32, "requests in the round")
	f.IntVar(&flags.warmup, "warmup", 2, "requests sent and discarded first")
	f.IntVar(&flags.concurrency, "concurrency", 1, "requests in flight")
	f.BoolVar(&flags.ignoreEOS, "ignore-eos", true, "force the output length")
	f.Float64Var(&flags.temperature, "temperature", 0, "sampling temperature")
	f.Float64Var(&flags.scale, "serving-scale", 1, "of a simulated server")
	f.Uint64Var(&flags.seed, "seed", 0, "of the prompts (default: drawn)")
	return command
}

func (a *app) runBench(ctx context.Context, url string, flags benchFlags) error {
	workload := runners.Workload{
		Name: "bench", Dataset: flags.dataset, File: flags.file, InputTokens: flags.input, OutputTokens: flags.outputTokens,
		Requests: flags.requests, Warmup: flags.warmup, Endpoint: flags.endpoint, IgnoreEOS: flags.ignoreEOS, Temperature: flags.temperature,
		Points: []runners.LoadPoint{{Concurrency: flags.concurrency}}, Seed: flags.seed,
	}
	if flags.seed == 0 {
		var raw [8]byte
		if _, err := rand.Read(raw[:]); err != nil {
			return fmt.Errorf("drawing a seed: %w", err)
		}
		workload.Seed = binary.LittleEndian.Uint64(raw[:])
	}
	if flags.concurrency < 1 || flags.requests < 1 || flags.outputTokens < 1 || flags.warmup < 0 {
		return usage(errors.New("--concurrency, --requests and --output-tokens want whole numbers from 1, --warmup from 0"))
	}
	client, model, err := benchClient(ctx, url, flags)
	if err != nil {
		return usage(err)
	}
	outcome, err := benchRound(ctx, client, workload, flags)
	if err != nil {
		return err
	}
	if flags.save != "" {
		if err := saveResult(flags.save, outcome, model, flags); err != nil {
			return err
		}
	}
	return a.benchAnswer(outcome, model)
}

// benchClient pins the server's address and finds its model.
func benchClient(ctx context.Context, url string, flags benchFlags) (*load.Client, string, error) {
	address, err := load.Pin(ctx, url)
	if err != nil {
		return nil, "", err
	}
	target := load.Target{BaseURL: url, Address: address, Model: flags.model, Protocol: load.Protocol(flags.endpoint)}
	if flags.kind != "" {
		kind, err := servers.Get(flags.kind)
		if err != nil {
			return nil, "", err
		}
		target.Extra, target.Header = kind.Fields(flags.endpoint), http.Header{}
		for name, value := range kind.Header {
			target.Header.Set(name, value)
		}
	}
	if target.Model == "" && target.Protocol != load.SGLangGenerate {
		if target.Model, err = listedModel(ctx, url); err != nil {
			return nil, "", err
		}
	}
	client, err := load.New(target)
	return client, target.Model, err
}

// listedModel is the only model that a server lists.
func listedModel(ctx context.Context, url string) (string, error) {
	root := strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
	client := retryablehttp.NewClient()
	client.Logger, client.RetryMax = nil, 2
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, root+"/v1/models", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking the server for its model (name it with --model): %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list.Data) != 1 {
		return "", fmt.Errorf("%s/v1/models lists %d models: name one with --model", root, len(list.Data))
	}
	return list.Data[0].ID, nil
}

func benchRound(ctx context.Context, client *load.Client, workload runners.Workload, flags benchFlags) (load.RoundOutcome, error) {
	dataset, err := load.OpenDataset(workload)
	if err != nil {
		return load.RoundOutcome{}, usage(err)
	}
	spec := load.SpecFor(workload, workload.Points[0], dataset.Prompts(0, 1))
	spec.ServingScale, spec.KeepDetails = flags.scale, flags.save != ""
	if flags.kind != "" {
		table, known := load.CountersOf(flags.kind)
		if !known {
			return load.RoundOutcome{}, usage(fmt.Errorf("--kind %q has no table of counters", flags.kind))
		}
		spec.Counters = &table
	}
	if workload.Warmup > 0 {
		warming := spec
		warming.Prompts, warming.Counters = dataset.Prompts(0, load.WarmupRound), nil
		warming.Prompts = warming.Prompts[:min(workload.Warmup, len(warming.Prompts))]
		if _, err := client.Round(ctx, warming); err != nil {
			return load.RoundOutcome{}, fmt.Errorf("warm-up: %w", err)
		}
	}
	return client.Round(ctx, spec)
}

func saveResult(path string, outcome load.RoundOutcome, model string, flags benchFlags) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	backends := map[string]string{"completions": "openai", "chat": "openai-chat", "generate": "sglang"}
	return load.WriteVLLMResult(file, outcome, load.VLLMMeta{
		Date: time.Now(), Backend: backends[flags.endpoint], Model: model, MaxConcurrency: flags.concurrency,
	})
}

func (a *app) benchAnswer(outcome load.RoundOutcome, model string) error {
	answer := output.BenchOf(outcome, model)
	if err := a.answer(answer, func(p *screen.Page) { p.Bench(answer) }); err != nil {
		return err
	}
	if faults := answer.Faults; len(faults) > 0 {
		return &statusError{status: exitFailed, cause: fmt.Errorf("the numbers must not count: %s: %s", faults[0].Reason, faults[0].Message)}
	}
	return nil
}
