package main

import (
	"fmt"
	"slices"
	"strings"

	"nocturne/search/problems"
)

// scenario is a kind of problem together with what a sampler is told about it.
type scenario struct {
	name string
	// about says in the document what is special.
	about string
	group group
	draw  func(seed uint64) *problems.Problem
	// earlier, if set, gives the problem on which the same sampler has run a campaign
	// of as many trials before.
	earlier  func(*problems.Problem) *problems.Problem
	trials   int
	samplers []string
	// slow scenarios run only when they are named.
	slow bool
}

// group is the table of the document in which a scenario stands.
type group string

const (
	blackBox  group = "black box"
	classes   group = "classes"
	knowledge group = "knowledge"
	long      group = "long"
	table     group = "table"
)

// usualTrials is the budget of a night.
const usualTrials = 40

var (
	// own are the samplers of this project, those of goptuna behind their guards
	// included.
	own  = []string{"random", "sobol", "tpe", "cmaes", "descent", "auto"}
	pair = []string{"descent", "auto"}
)

// scenarios lists all but recorded tables. Every class of problem that the family
// has is in the groups blackBox and classes.
func scenarios() []scenario {
	ruled := problems.RuledServers()
	list := []scenario{
		{name: "server", group: blackBox, draw: problems.Server, samplers: own,
			about: "13 knobs, 1.7e9 configurations, 1.5 % noise"},
		{name: "ruled", group: classes, draw: ruled, about: "the server with NCCL's rules: 2e9 settings, 2.4e8 launches"},
		{name: "size-200", group: classes, draw: sized(200), about: "tables of about 200 configurations"},
		{name: "size-1e4", group: classes, draw: sized(1e4), about: "tables of about 10,000"},
		{name: "size-1e7", group: classes, draw: sized(1e7), about: "tables of about 10 million"},
		{name: "size-1e12", group: classes, draw: sized(1e12), about: "tables of about 1e12"},
		{name: "interaction", group: classes, about: "8 knobs, 60 % of the variance in pairs of them", draw: tables(problems.TableOptions{
			Knobs: 8, MinLevels: 2, MaxLevels: 8, Interaction: 0.6, Crash: 0.17, Gap: 0.4})},
		{name: "inert", group: classes, about: "15 knobs, 60 % of them without effect", draw: tables(problems.TableOptions{
			Knobs: 15, MinLevels: 2, MaxLevels: 6, Interaction: 0.2, Inert: 0.6, Crash: 0.1, Gap: 0.3})},
		{name: "steep", group: classes, about: "10 knobs, the default at a tenth of the optimum", draw: tables(problems.TableOptions{
			Knobs: 10, MinLevels: 2, MaxLevels: 8, Interaction: 0.3, Inert: 0.2, Crash: 0.17, Gap: 0.9})},
		{name: "flat", group: classes, about: "10 knobs, the default 6 % from the optimum", draw: tables(problems.TableOptions{
			Knobs: 10, MinLevels: 2, MaxLevels: 8, Interaction: 0.3, Inert: 0.2, Crash: 0.1, Gap: 0.06})},
		{name: "constrained", group: classes, about: "8 knobs, 30 % crash, every other rule is a known constraint", draw: tables(problems.TableOptions{
			Knobs: 8, MinLevels: 2, MaxLevels: 8, Interaction: 0.3, Crash: 0.3, Published: true, Gap: 0.35})},
		{name: "mixed", group: classes, draw: problems.Mixed, about: "200 to 1e7 configurations, all options drawn, noise and drift too"},
		{name: "quiet", group: classes, draw: noisy(0.005, 0, 0), about: "the server at 0.5 % noise"},
		{name: "noisy", group: classes, draw: noisy(0.03, 0, 0), about: "the server at 3 % noise"},
		{name: "launches", group: classes, draw: noisy(0.005, 0.05, 0.5), about: "the server, launches vary by 0.5 % without and 5 % with speculation"},
		{name: "drift", group: classes, draw: drifting(-0.1), about: "the server, all values fall by 4 % over the night"},
		{name: "hosts", group: classes, draw: onHosts(2), about: "the server, measured on two hosts at a time"},
		{name: "limit", group: classes, draw: limited(0.6), about: "the server, a limit on the time to first token cuts off up to 60 %"},
	}
	list = append(list, knowledgeable(ruled)...)
	list = append(list, scenario{name: "long", group: long, draw: problems.Server, trials: 160, slow: true,
		about: "the server, 160 trials"})
	for i := range list {
		if list[i].trials == 0 {
			list[i].trials = usualTrials
		}
		if list[i].samplers == nil {
			list[i].samplers = pair
		}
	}
	return list
}

// screened are the measurements of a screening.
const screened = 150

func knowledgeable(ruled func(uint64) *problems.Problem) []scenario {
	screening := func(options problems.ScreeningOptions) func(uint64) *problems.Problem {
		options.Measurements = screened
		return func(seed uint64) *problems.Problem { return problems.Server(seed).WithScreening(options) }
	}
	sibling := func(share float64) func(*problems.Problem) *problems.Problem {
		return func(p *problems.Problem) *problems.Problem { return p.Sibling(share) }
	}
	recipe := func(fits bool) func(uint64) *problems.Problem {
		return func(seed uint64) *problems.Problem { return problems.Server(seed).WithRecipe(fits) }
	}
	list := []scenario{
		{name: "counters", draw: func(seed uint64) *problems.Problem { return problems.Server(seed).WithCounters() },
			about: "the server reports its acceptance length"},
		{name: "ruled-counters", draw: func(seed uint64) *problems.Problem { return ruled(seed).WithCounters() },
			about: "the same with NCCL's rules"},
		{name: "screening", draw: screening(problems.ScreeningOptions{Correlation: 0.8}),
			about: "150 screenings of all knobs, correlation 0.8, the rest by chance"},
		{name: "screening-law", draw: screening(problems.ScreeningOptions{Correlation: 0.8, Systematic: true}),
			about: "the same, the rest by a law of its own"},
		{name: "screening-nccl", draw: screening(problems.ScreeningOptions{Correlation: 0.8, CollectivesOnly: true}),
			about: "150 screenings of NCCL's knobs alone, correlation 0.8, the rest by chance"},
		{name: "screening-none", draw: screening(problems.ScreeningOptions{Systematic: true}),
			about: "misleading: correlation 0, a law of its own"},
		{name: "screening-reversed", draw: screening(problems.ScreeningOptions{Correlation: -0.5, Systematic: true}),
			about: "misleading: correlation -0.5"},
		{name: "history-5", draw: problems.Server, earlier: sibling(0.05), about: "an earlier campaign, effects 5 % off"},
		{name: "history-15", draw: problems.Server, earlier: sibling(0.15), about: "an earlier campaign, effects 15 % off"},
		{name: "history-foreign", draw: problems.Server, earlier: (*problems.Problem).Unrelated,
			about: "misleading: an earlier campaign on an unrelated problem"},
		{name: "recipe", draw: recipe(true), about: "a recipe 1 to 3 % from the optimum"},
		{name: "recipe-foreign", draw: recipe(false), about: "a recipe that is the best of an unrelated problem"},
		{name: "everything", draw: func(seed uint64) *problems.Problem {
			return ruled(seed).WithCounters().WithScreening(problems.ScreeningOptions{
				Measurements: screened, Correlation: 0.8, CollectivesOnly: true}).WithRecipe(true)
		}, earlier: sibling(0.15), about: "NCCL's rules, counters, screenings of NCCL's knobs, an earlier campaign 15 % off and a recipe that fits"},
	}
	for i := range list {
		list[i].group = knowledge
	}
	return list
}

func tables(options problems.TableOptions) func(uint64) *problems.Problem {
	return func(seed uint64) *problems.Problem { return problems.Table(seed, options) }
}

func sized(size float64) func(uint64) *problems.Problem {
	return tables(problems.TableOptions{
		Size: size, MinLevels: 2, MaxLevels: 8, Interaction: 0.3, Inert: 0.2, Crash: 0.15, Gap: 0.35,
	})
}

// noisy has launches that vary by the shares without and with speculation, and
// rounds by a share of that.
func noisy(without, with, rounds float64) func(uint64) *problems.Problem {
	return func(seed uint64) *problems.Problem {
		problem := problems.Server(seed)
		problem.Noise, problem.SpeculationNoise, problem.RoundShare = without, with, rounds
		return problem
	}
}

func drifting(drift float64) func(uint64) *problems.Problem {
	return func(seed uint64) *problems.Problem {
		problem := problems.Server(seed)
		problem.Drift = drift
		return problem
	}
}

func onHosts(hosts int) func(uint64) *problems.Problem {
	return func(seed uint64) *problems.Problem {
		problem := problems.Server(seed)
		problem.Hosts = hosts
		return problem
	}
}

func limited(share float64) func(uint64) *problems.Problem {
	return func(seed uint64) *problems.Problem { return problems.Server(seed).WithLimit(share) }
}

// choose picks scenarios by name; "all" is all that are not slow, "none" nothing,
// and the name of a group what is in it.
func choose(names []string) ([]scenario, error) {
	var chosen []scenario
	list := scenarios()
	for _, name := range names {
		found := name == "none"
		for _, s := range list {
			if s.name == name || string(s.group) == name || name == "all" && !s.slow {
				found, chosen = true, append(chosen, s)
			}
		}
		if !found {
			return nil, fmt.Errorf("unknown scenario %s, want all, none, classes, knowledge or %s", name, strings.Join(scenarioNames(list), ", "))
		}
	}
	return chosen, nil
}

func scenarioNames(list []scenario) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.name
	}
	slices.Sort(names)
	return names
}
