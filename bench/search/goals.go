package main

import (
	"fmt"
	"math"
	"strings"
)

// goal is a figure that the search is to reach. Smaller is better for all of them.
type goal struct {
	what string
	// goal and gate are the largest values that meet them; none is NaN.
	goal, gate float64
	unit       string
	// measure returns the figure and where it was found; false when a part of it
	// was not measured.
	measure func(results) (value float64, where string, ok bool)
}

var none = math.NaN()

// verdict is a goal with what was measured.
type verdict struct {
	goal
	value float64
	where string
	known bool
}

func judge(r results) []verdict {
	var verdicts []verdict
	for _, g := range goals() {
		v := verdict{goal: g}
		v.value, v.where, v.known = g.measure(r)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func (v *verdict) limit(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return fmt.Sprintf("%.3g%s", x, v.unit)
}

func (v *verdict) measured() string {
	switch {
	case !v.known:
		return "not measured"
	case v.where != "":
		return fmt.Sprintf("%.2f%s (%s)", v.value, v.unit, v.where)
	}
	return fmt.Sprintf("%.2f%s", v.value, v.unit)
}

func (v *verdict) met(limit float64) string {
	switch {
	case math.IsNaN(limit) || !v.known:
		return ""
	case v.value <= limit+1e-9:
		return "yes"
	}
	return "**no**"
}

func goals() []goal {
	list := []goal{
		distance("server", 10, 15, 18), distance("server", 20, 8, 9), distance("server", 40, 3, 3.5),
		ratio("descent", 10, 0.7, 1, "descent"), ratio("descent", 20, 0.7, 1, "descent"), ratio("descent", 40, 0.7, 1, "descent"),
	}
	for _, n := range []int{10, 20, 40} {
		list = append(list, ratio("the best of goptuna and Optuna", n, 0.5, none, stock...))
	}
	list = append(list,
		goal{what: "server: crashes in 40 trials", goal: 2, gate: 2, measure: func(r results) (float64, string, bool) {
			found, ok := r.of("server", "auto")
			if !ok {
				return 0, "", false
			}
			return found.Crashes, "", true
		}},
		goal{what: "worse than descent at 10, 20 or 40 trials, of all classes of problems", goal: 0.5, gate: 0.5, unit: " points", measure: worstExcess},
		distance("counters", 10, 10, none), distance("counters", 20, 5, none), distance("counters", 40, 2, none),
		distance("ruled-counters", 10, 8, none), distance("ruled-counters", 20, 3, none), distance("ruled-counters", 40, 1, none),
		distance("screening", 3, 5, none), distance("screening", 20, 2, none),
		distance("history-5", 3, 5, none), distance("history-5", 20, 2, 3.5), distance("history-15", 20, 5, none),
		misled("screening-none"), misled("screening-reversed"), misled("history-foreign"),
		distance("recipe", 3, 3, none), lost("recipe-foreign"),
		further(40, 80), further(80, 160),
		goal{what: "configurations twice, or against a known constraint, over everything", goal: 0, gate: 0,
			measure: func(r results) (float64, string, bool) {
				duplicates, violations := r.faults()
				return float64(duplicates + violations), "", len(r) > 0
			}},
	)
	return list
}

// stock are the samplers that others made.
var stock = []string{"tpe", "cmaes", "sobol", "optuna-tpe", "optuna-gp", "optuna-cmaes"}

func distance(scenario string, trials int, best, gate float64) goal {
	return goal{what: fmt.Sprintf("%s: distance after %d trials", scenario, trials), goal: best, gate: gate, unit: " %",
		measure: func(r results) (float64, string, bool) {
			found, ok := r.of(scenario, "auto")
			if !ok || found.Trials < trials {
				return 0, "", false
			}
			return found.after(trials), "", true
		}}
}

// ratio of the distance to the best of others.
func ratio(name string, trials int, best, gate float64, others ...string) goal {
	return goal{what: fmt.Sprintf("server: distance after %d trials by that of %s", trials, name), goal: best, gate: gate,
		measure: func(r results) (float64, string, bool) {
			auto, ok := r.of("server", "auto")
			least, which := math.Inf(1), ""
			for _, other := range others {
				if found, known := r.of("server", other); known && found.after(trials) < least {
					least, which = found.after(trials), other
				}
			}
			if !ok || which == "" || least == 0 {
				return 0, "", false
			}
			if len(others) == 1 {
				which = ""
			}
			return auto.after(trials) / least, which, true
		}}
}

// worstExcess is by how many points auto is behind descent where it is worst.
func worstExcess(r results) (worst float64, where string, ok bool) {
	worst = math.Inf(-1)
	for _, s := range scenarios() {
		if s.group != blackBox && s.group != classes {
			continue
		}
		auto, one := r.of(s.name, "auto")
		descent, other := r.of(s.name, "descent")
		if !one || !other {
			return 0, "", false
		}
		for _, n := range []int{10, 20, 40} {
			if excess := auto.after(n) - descent.after(n); excess > worst {
				worst, where = excess, fmt.Sprintf("%s after %d", s.name, n)
			}
		}
	}
	return worst, where, true
}

// misled is by how many times the trials rise that it takes to be as near as
// without the misleading knowledge after 10, 20 and 30 trials, at the worst of them.
func misled(scenario string) goal {
	return goal{what: scenario + ": trials to be as near as without it after 10, 20 and 30, by those without it", goal: 1.25, gate: none,
		measure: func(r results) (worst float64, where string, ok bool) {
			clean, one := r.of("server", "auto")
			bad, other := r.of(scenario, "auto")
			if !one || !other {
				return 0, "", false
			}
			for _, n := range []int{10, 20, 30} {
				needed, reached := trialsUntil(bad, clean.after(n))
				without, _ := trialsUntil(clean, clean.after(n))
				if times := float64(needed) / float64(without); times > worst {
					if worst, where = times, fmt.Sprintf("after %d", n); !reached {
						where = "at least, " + where
					}
				}
			}
			return worst, where, true
		}}
}

// trialsUntil is the first trial after which the median distance is no larger;
// false, and one trial more than there were, when it never is.
func trialsUntil(r *result, distance float64) (int, bool) {
	for n, median := range r.Median {
		if median <= distance {
			return n + 1, true
		}
	}
	return len(r.Median) + 1, false
}

// lost is by how many points a useless start sets the search back.
func lost(scenario string) goal {
	return goal{what: scenario + ": lost against no recipe, at 10, 20 or 40 trials", goal: 0.5, gate: none, unit: " points",
		measure: func(r results) (worst float64, where string, ok bool) {
			clean, one := r.of("server", "auto")
			bad, other := r.of(scenario, "auto")
			if !one || !other {
				return 0, "", false
			}
			worst = math.Inf(-1)
			for _, n := range []int{10, 20, 40} {
				if points := bad.after(n) - clean.after(n); points > worst {
					worst, where = points, fmt.Sprintf("after %d", n)
				}
			}
			return worst, where, true
		}}
}

// further is whether the distance still falls.
func further(from, to int) goal {
	return goal{what: fmt.Sprintf("long: distance after %d trials by that after %d", to, from), goal: 0.95, gate: none,
		measure: func(r results) (float64, string, bool) {
			found, ok := r.of("long", "auto")
			if !ok || found.Trials < to || found.after(from) == 0 {
				return 0, "", false
			}
			return found.after(to) / found.after(from), "", true
		}}
}

// unmet lists the goals that are measured and not met, in words.
func unmet(verdicts []verdict) string {
	var list []string
	for _, v := range verdicts {
		if v.met(v.goal.goal) == "**no**" {
			list = append(list, fmt.Sprintf("- %s: %s, the goal is %s", v.what, v.measured(), strings.TrimSpace(v.limit(v.goal.goal))))
		}
	}
	if len(list) == 0 {
		return "Every goal that was measured is met."
	}
	return strings.Join(list, "\n")
}
