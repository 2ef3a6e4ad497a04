package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"nocturne/runners/load"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) bench() *cobra.Command {
	flags := newBenchFlags()
	command := &cobra.Command{
		Use:   "bench URL",
		Short: "The load generator alone, on a running server",
		Long: `Measures a running server and prints the metrics as ` + "`vllm bench serve`" + ` does,
then what that does not tell: itl_ms, the time for each token (ITL in the table is
the time between chunks, whatever they hold), schedule delay, the steady rate, how
busy the load generator itself was. Options of that command are understood under
their names there as well. A list of rates or concurrencies measures several load
points.

--save and --save-result write a result file that tools for that command read, one
line for each load point. Exit status: 0 measured, 1 the numbers must not count.`,
		Example: `  nocturne bench http://127.0.0.1:8000 --concurrency 8 --requests 64 --output-tokens 256
  nocturne bench http://127.0.0.1:8000 --kind vllm --request-rate 1,2,4 --goodput ttft:500,tpot:50
  nocturne bench 'http://[::1]:30000' --kind sglang --dataset prompts --file prompts.jsonl --save result.json`,
		Args: exactly(1, "one URL"),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.check(command.Flags()); err != nil {
				return usage(err)
			}
			return a.runBench(command.Context(), args[0], flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (a *app) runBench(ctx context.Context, url string, flags *benchFlags) error {
	dataset, err := load.NewDataset(flags.dataset)
	if err != nil {
		return usage(err)
	}
	target, err := openBenchTarget(ctx, url, flags)
	if err != nil {
		return usage(err)
	}
	bench := &benchRun{flags: flags, target: target, dataset: dataset}
	if err := bench.warm(ctx); err != nil {
		return err
	}
	var points []output.BenchPoint
	var metas []load.VLLMMeta
	var outcomes []load.RoundOutcome
	for i, point := range flags.points() {
		outcome, err := bench.measure(ctx, i, point)
		if err != nil {
			return err
		}
		meta := flags.meta(point, target.model, outcome.Started)
		if err := flags.write(outcome, meta); err != nil {
			return err
		}
		points = append(points, output.BenchPointOf(outcome, point.concurrency, point.arrival))
		outcomes, metas = append(outcomes, outcome), append(metas, meta)
	}
	answer := output.BenchOf(target.model, points)
	var unwritten error
	err = a.answer(answer, func(p *screen.Page) { unwritten = a.benchTables(p, answer, outcomes, metas) })
	if err := errors.Join(err, unwritten); err != nil {
		return err
	}
	if faults := answer.Faults; len(faults) > 0 {
		return &statusError{status: exitFailed, cause: fmt.Errorf("the numbers must not count: %s: %s", faults[0].Reason, faults[0].Message)}
	}
	return nil
}

// benchTables shows every load point: the table of `vllm bench serve`, then what
// that does not hold.
func (a *app) benchTables(p *screen.Page, answer output.Bench, outcomes []load.RoundOutcome, metas []load.VLLMMeta) error {
	for i, point := range answer.Points {
		if err := load.WriteVLLMTable(a.stdout, outcomes[i], metas[i]); err != nil {
			return err
		}
		p.Bench(output.Bench{Model: answer.Model, Metrics: load.BeyondVLLM(outcomes[i], metas[i]), Failures: point.Failures})
		for _, line := range append(point.GPUs, point.Notes...) {
			a.printf("  %s\n", line)
		}
		for _, fault := range point.Faults {
			a.printf("  %s: %s\n", fault.Reason, fault.Message)
		}
	}
	return nil
}

// benchRun measures the load points of one call.
type benchRun struct {
	flags   *benchFlags
	target  *benchTarget
	dataset *load.Dataset
}

// benchPoint is a load point: a number in flight, a rate, or both.
type benchPoint struct {
	concurrency int
	arrival     load.Arrival
}

// warm sends requests whose numbers are thrown away.
func (b *benchRun) warm(ctx context.Context) error {
	prompts := b.dataset.Prompts(0, load.WarmupRound)
	if len(prompts) == 0 {
		return nil
	}
	spec := b.spec(benchPoint{concurrency: b.flags.widest(len(prompts))}, prompts)
	spec.Window, spec.KeepDetails, spec.KeepTexts, spec.Counters, spec.Sampler = 0, false, false, nil, nil
	if _, err := b.target.client.Round(ctx, spec); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	return nil
}

func (b *benchRun) spec(point benchPoint, prompts []load.Prompt) load.RoundSpec {
	entries, texts := b.flags.details()
	return load.RoundSpec{
		Prompts: prompts, Concurrency: point.concurrency, Arrival: point.arrival, Window: b.flags.window,
		OutputTokens: b.flags.outputTokens, IgnoreEOS: b.flags.ignoreEOS, Temperature: b.flags.temperature,
		Goodput: b.flags.limits, ServingScale: b.flags.scale, Counters: b.target.counters, Sampler: b.target.sampler,
		SharedPrefixes: b.flags.dataset.Dataset == load.DatasetSharedPrefix,
		KeepDetails:    entries, KeepTexts: texts,
	}
}

// measure runs one load point.
func (b *benchRun) measure(ctx context.Context, index int, point benchPoint) (load.RoundOutcome, error) {
	const round = load.WarmupRound + 1
	prompts, err := b.prompts(ctx, index, round)
	if err != nil {
		return load.RoundOutcome{}, err
	}
	spec := b.spec(point, prompts)
	spec.InputTokens = b.dataset.Spec().Length()
	return b.target.client.Round(ctx, spec)
}

// prompts returns those of a load point, fitted where the server's tokenizer tells
// their length.
func (b *benchRun) prompts(ctx context.Context, index, round int) ([]load.Prompt, error) {
	if b.target.tokenizer == nil {
		return b.dataset.Prompts(index, round), nil
	}
	prompts, err := b.dataset.Fitted(ctx, index, round, b.target.tokenizer)
	if errors.Is(err, load.ErrNoTokenizer) {
		b.target.tokenizer = nil
		return b.dataset.Prompts(index, round), nil
	}
	return prompts, err
}
