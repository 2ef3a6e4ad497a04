// Command search compares samplers on families of synthetic tuning problems and
// prints tables in Markdown:
//
//	go run ./bench/search -seeds 40 -families server,interaction
//
// Each problem is drawn from its seed; all samplers see the same problems and the
// same noise, and all of them begin with the default. The distance is that of the
// configuration with the best observed value, noise-free, from the optimum.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"nocturne/search"
	"nocturne/search/problems"
)

// families are the problems that can be drawn, by name.
var families = map[string]func(seed uint64) *problems.Problem{
	"server": problems.Server,
	"interaction": table(problems.TableOptions{
		Knobs: 8, MinLevels: 2, MaxLevels: 8, Interaction: 0.6, Crash: 0.17, Gap: 0.4,
	}),
	"inert": table(problems.TableOptions{
		Knobs: 15, MinLevels: 2, MaxLevels: 6, Interaction: 0.2, Inert: 0.6, Crash: 0.1, Gap: 0.3,
	}),
	"small": table(problems.TableOptions{
		Knobs: 4, MinLevels: 3, MaxLevels: 5, Interaction: 0.3, Crash: 0.1, Gap: 0.3,
	}),
	"steep": table(problems.TableOptions{
		Knobs: 10, MinLevels: 2, MaxLevels: 8, Interaction: 0.3, Inert: 0.2, Crash: 0.17, Gap: 0.9,
	}),
	"flat": table(problems.TableOptions{
		Knobs: 10, MinLevels: 2, MaxLevels: 8, Interaction: 0.3, Inert: 0.2, Crash: 0.1, Gap: 0.06,
	}),
}

func table(options problems.TableOptions) func(uint64) *problems.Problem {
	return func(seed uint64) *problems.Problem { return problems.Table(seed, options) }
}

type options struct {
	seeds, first, trials int
	samplers, families   []string
	noise, drift         float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench/search:", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (options, error) {
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	var o options
	var samplers, names string
	flags.IntVar(&o.seeds, "seeds", 40, "problems of each family")
	flags.IntVar(&o.first, "first", 5000, "seed of the first problem")
	flags.IntVar(&o.trials, "trials", 40, "trials of each campaign, the default included")
	flags.StringVar(&samplers, "samplers", "random,tpe,descent,auto", "samplers to compare")
	flags.StringVar(&names, "families", "server", "families of problems: "+strings.Join(familyNames(), ", ")+", or all")
	flags.Float64Var(&o.noise, "noise", 0.015, "standard deviation of a launch, relative")
	flags.Float64Var(&o.drift, "drift", 0, "relative change of all values over 100 trials")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.seeds < 1 || o.trials < 1 {
		return o, fmt.Errorf("seeds and trials must be at least 1, got %d and %d", o.seeds, o.trials)
	}
	o.samplers, o.families = strings.Split(samplers, ","), strings.Split(names, ",")
	if names == "all" {
		o.families = familyNames()
	}
	for _, name := range o.families {
		if families[name] == nil {
			return o, fmt.Errorf("unknown family %s, want %s", name, strings.Join(familyNames(), ", "))
		}
	}
	return o, nil
}

func familyNames() []string {
	var names []string
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func run(ctx context.Context, o options, out io.Writer) error {
	for _, family := range o.families {
		drawn, err := draw(ctx, o, family)
		if err != nil {
			return err
		}
		writeHeader(out, o, family, drawn)
		for _, name := range o.samplers {
			if err := compare(ctx, o, out, name, drawn); err != nil {
				return err
			}
		}
		fmt.Fprintln(out)
	}
	return nil
}

func draw(ctx context.Context, o options, family string) ([]*problems.Problem, error) {
	drawn := make([]*problems.Problem, o.seeds)
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range drawn {
		group.Go(func() error {
			drawn[i] = families[family](uint64(o.first + i))
			drawn[i].Noise, drawn[i].Drift = o.noise, o.drift
			return ctx.Err()
		})
	}
	return drawn, group.Wait()
}

// checkpoints are the trial counts of the table's columns.
func checkpoints(trials int) []int {
	var list []int
	for _, n := range []int{5, 10, 20, 30, 40, 80, 160} {
		if n <= trials {
			list = append(list, n)
		}
	}
	if len(list) == 0 || list[len(list)-1] != trials {
		list = append(list, trials)
	}
	return list
}

func writeHeader(out io.Writer, o options, family string, drawn []*problems.Problem) {
	crash, start := 0.0, 0.0
	for _, p := range drawn {
		crash += p.CrashShare() / float64(len(drawn))
		start += p.Regret(p.Space.Default()) / float64(len(drawn))
	}
	fmt.Fprintf(out, "### %s: %d problems, %.1f %% noise, %.0f %% of random configurations crash, the default is %.0f %% from the optimum\n\n",
		family, o.seeds, 100*o.noise, 100*crash, 100*start)
	fmt.Fprint(out, "| sampler |")
	for _, n := range checkpoints(o.trials) {
		fmt.Fprintf(out, " %d trials |", n)
	}
	fmt.Fprintln(out, " within 2 / 5 % | crashes | proposal ms |")
	fmt.Fprintln(out, "| --- |"+strings.Repeat(" --- |", len(checkpoints(o.trials))+3))
}

func compare(ctx context.Context, o options, out io.Writer, name string, drawn []*problems.Problem) error {
	runs := make([]*problems.Run, len(drawn))
	times := make([]float64, len(drawn))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, problem := range drawn {
		group.Go(func() error {
			sampler, err := search.New(name)
			if err != nil {
				return err
			}
			began := time.Now()
			runs[i], err = problem.Campaign(ctx, sampler, o.trials, uint64(i))
			times[i] = time.Since(began).Seconds() * 1000 / float64(o.trials)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", name, problem.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "| %s |", name)
	for _, n := range checkpoints(o.trials) {
		low, middle, high := quartiles(runs, func(r *problems.Run) float64 { return 100 * r.After(n) })
		fmt.Fprintf(out, " %.1f [%.1f, %.1f] |", middle, low, high)
	}
	_, crashes, _ := quartiles(runs, func(r *problems.Run) float64 { return float64(r.Crashes) })
	slices.Sort(times)
	fmt.Fprintf(out, " %.0f / %.0f %% | %.0f | %.1f |\n", within(runs, o.trials, 0.02), within(runs, o.trials, 0.05), crashes, times[len(times)/2])
	return nil
}

func quartiles(runs []*problems.Run, of func(*problems.Run) float64) (low, middle, high float64) {
	list := make([]float64, len(runs))
	for i, r := range runs {
		list[i] = of(r)
	}
	slices.Sort(list)
	return list[len(list)/4], list[len(list)/2], list[3*len(list)/4]
}

// within is the share of the runs that end so near to the optimum, in percent.
func within(runs []*problems.Run, trials int, distance float64) float64 {
	n := 0
	for _, r := range runs {
		if r.After(trials) <= distance {
			n++
		}
	}
	return 100 * float64(n) / float64(len(runs))
}
