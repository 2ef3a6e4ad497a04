// Command search compares samplers on families of synthetic tuning problems and on
// recorded tables, prints tables in Markdown, checks them against the goals of the
// search, and writes docs/search.md:
//
//	go run ./bench/search                                  all scenarios, 40 problems each
//	go run ./bench/search -scenarios server -samplers descent,auto -seeds 8
//	go run ./bench/search -table kernel.csv -objective time -minimize
//	go run ./bench/search -write docs/search.md
//
// All samplers see the same problems and the same noise, and all of them begin with
// the default. The distance is that of the configuration with the best observed
// value, noise-free, from the optimum.
//
// What takes long is measured apart and kept in bench/search/results, from where
// -write takes what it did not measure itself:
//
//	go run ./bench/search -scenarios long -first 5000 -save bench/search/results/long.json
//	go run ./bench/search -scenarios server -samplers optuna-tpe,optuna-gp,optuna-cmaes \
//	    -first 5000 -save bench/search/results/optuna.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// heldOut is the first seed of the problems that the document reports; those below
// are for work on the samplers.
const heldOut = 5000

type options struct {
	bench
	scenarios           []string
	write, save, folder string
	earlier             string
	python              string
	table               tableOptions
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/search:", err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench/search:", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (*options, error) {
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	o := &options{}
	var samplers, names string
	flags.IntVar(&o.seeds, "seeds", 40, "problems of each scenario")
	flags.Uint64Var(&o.first, "first", 0, "seed of the first problem; the document's are from 5000 on")
	flags.IntVar(&o.trials, "trials", 0, "trials of each campaign, the default included; 0 is what the scenario says")
	flags.StringVar(&samplers, "samplers", "", "samplers to compare, also optuna-tpe, optuna-gp and optuna-cmaes; empty is what the scenario says")
	flags.StringVar(&names, "scenarios", "all", "scenarios or groups of them; all is all but the slow ones: "+strings.Join(scenarioNames(scenarios()), ", "))
	flags.StringVar(&o.write, "write", "", "write the document to this file")
	flags.StringVar(&o.save, "save", "", "add the results to this file of JSON")
	flags.StringVar(&o.earlier, "from", "", "results saved by an earlier run that count as this one's; with -scenarios none -write the page is only written anew")
	flags.StringVar(&o.folder, "results", "bench/search/results", "folder of saved results, for -write")
	flags.StringVar(&o.date, "date", time.Now().Format(time.DateOnly), "date of the measurement")
	flags.StringVar(&o.python, "python", "python3", "the Python that has Optuna")
	o.table.flags(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	if o.seeds < 1 || o.trials < 0 {
		return nil, fmt.Errorf("want at least 1 seed and 0 trials, got %d and %d", o.seeds, o.trials)
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "first" })
	if o.write != "" && !given {
		o.first = heldOut
	}
	o.scenarios = strings.Split(names, ",")
	if samplers != "" {
		o.samplers = strings.Split(samplers, ",")
	}
	_, err := choose(o.scenarios)
	return o, errors.Join(err, o.table.check())
}

func run(ctx context.Context, o *options, out, progress io.Writer) (err error) {
	o.progress, o.optuna = progress, newOptuna(ctx, o.python)
	defer func() { err = errors.Join(err, o.optuna.close()) }()
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	all, err := o.from()
	if err != nil {
		return err
	}
	for _, s := range chosen {
		m, err := o.run(ctx, s)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "### %s: %s\n\n%d problems, %.0f %% of random configurations crash, the default is %.0f %% from the optimum\n\n%s\n",
			s.name, s.about, o.seeds, 100*m.crashShare, 100*m.start, samplerTable(m.results))
		all = append(all, m.results...)
		if o.save != "" {
			if err := m.results.save(o.save); err != nil {
				return err
			}
		}
	}
	if o.write == "" {
		printGoals(out, all)
		return nil
	}
	saved, err := readResults(o.folder)
	if err != nil {
		return err
	}
	cached := all.lacking(saved)
	all = append(all, cached...)
	printGoals(out, all)
	d := newDocument(all, &o.bench, machine(), cached)
	return d.write(o.write)
}

// printGoals prints those for which there are results.
func printGoals(out io.Writer, all results) {
	if verdicts := slices.DeleteFunc(judge(all), func(v verdict) bool { return !v.known }); len(verdicts) > 0 {
		fmt.Fprintf(out, "### Goals\n\n%s", goalTable(verdicts))
	}
}

// from are results of an earlier run that count as this one's.
func (o *options) from() (results, error) {
	if o.earlier == "" {
		return nil, nil
	}
	return readFile(o.earlier)
}

// chosen are the scenarios to run: the recorded table, if there is one.
func (o *options) chosen() ([]scenario, error) {
	if o.table.file == "" {
		return choose(o.scenarios)
	}
	s, err := o.table.scenario()
	return []scenario{s}, err
}

func machine() string {
	return fmt.Sprintf("%d cores of %s/%s, %s", runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
