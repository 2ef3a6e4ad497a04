package spec

import (
	"maps"
	"slices"
	"strconv"

	"nocturne/nccl"
	"nocturne/runners/servers"
	"nocturne/search"
)

// reference is a configuration that is measured whatever the search proposes.
type reference struct {
	name   string
	values search.Values
	file   section[scalar] // empty for the baseline
}

// checkLaunches looks at what NCCL and the server would do with the launches
// that are known beforehand, and with each value by itself.
func (r *resolver) checkLaunches(campaign *Campaign) {
	references := []reference{{name: "baseline", values: campaign.Baseline}}
	if campaign.Current != nil {
		references = append(references, reference{"current", campaign.Current, r.file.Current})
	}
	for i, hint := range campaign.Hints {
		references = append(references, reference{"try[" + strconv.Itoa(i) + "]", hint, r.file.Try[i]})
	}
	whole := len(r.faults) == 0 // a server is judged by its whole command
	known := r.checkBase()
	for _, ref := range references {
		r.checkNCCL(ref, known)
		if whole {
			r.checkServer(campaign, ref)
		}
	}
	r.checkLevels(known)
	r.checkOneGPU()
}

// at is where the reference stands in the file; the baseline stands nowhere.
func (ref reference) at(otherwise Position) Position {
	if ref.file.Begin.Line > 0 {
		return ref.file.Begin
	}
	return otherwise
}

// checkServer applies the rules of the server kind.
func (r *resolver) checkServer(campaign *Campaign, ref reference) {
	at := r.file.Server.Where.of("command")
	job, err := campaign.Job(ref.values, r.facts)
	if err != nil {
		r.fault(ref.at(at), "%s: %v", ref.name, err)
		return
	}
	kind := r.serverKind()
	if kind == nil {
		return
	}
	for _, finding := range kind.Check(job.Args, job.Env) {
		if finding.Severity == servers.Refuse {
			r.fault(ref.at(at), "%s: %s", ref.name, finding.Message)
		} else {
			r.warn(at, "%s", finding.Message)
		}
	}
}

// told are the problems that have been told: one of the variables that all
// launches share is told once.
type told map[string]bool

func (t told) before(problem nccl.Problem) bool {
	was := t[problem.Message]
	t[problem.Message] = true
	return was
}

// checkNCCL applies NCCL's own rules to a reference.
func (r *resolver) checkNCCL(ref reference, known told) {
	asked, err := r.launch.asked(ref.values)
	if err != nil {
		return // told by the job
	}
	for _, problem := range r.problems(asked.env) {
		if known.before(problem) {
			continue
		}
		at := r.problemPlace(ref, problem)
		switch {
		case problem.Effect == nccl.Warning:
			r.warn(at, "%s: %s", ref.name, problem)
		case problem.Effect == nccl.Unsafe && r.admitted(problem.Variables):
			r.warn(at, "%s: %s (admitted by unsafe: true)", ref.name, problem)
		default:
			r.fault(at, "%s: %s", ref.name, problem)
		}
	}
}

// problems are what is wrong with NCCL's variables in a launch.
func (r *resolver) problems(asked map[string]string) []nccl.Problem {
	acting, err := r.launch.acting(asked, r.facts)
	if err != nil {
		return nil // values were checked one by one
	}
	return nccl.Check(r.facts, ncclOnly(acting))
}

// problemPlace is where one of the variables of a problem is set.
func (r *resolver) problemPlace(ref reference, problem nccl.Problem) Position {
	for _, name := range problem.Variables {
		for _, entry := range ref.file.Entries {
			if entry.Key == name {
				return entry.At
			}
		}
	}
	for _, name := range problem.Variables {
		if claimed, known := r.claims.variables[name]; known {
			return claimed.at
		}
	}
	return ref.at(r.file.Space.Where.Begin)
}

// admitted reports whether a knob among the variables is declared unsafe.
func (r *resolver) admitted(variables []string) bool {
	return slices.ContainsFunc(variables, func(name string) bool { return r.bindings[name].unsafe })
}

// checkLevels looks at each value of NCCL's knobs by itself: one that must not
// be tried alone must not be in the space, and one that this NCCL cannot be told
// could not be launched.
func (r *resolver) checkLevels(known told) {
	for _, knob := range r.knobs {
		bound := r.bindings[knob.ID]
		if !bound.isNCCL() {
			continue
		}
		for _, level := range knob.Levels {
			if level.IsUnset() {
				continue
			}
			at, there := bound.levels[level]
			if !there {
				at = bound.at
			}
			r.checkLevel(bound, level, at, known)
		}
	}
}

func (r *resolver) checkLevel(bound binding, level search.Value, at Position, known told) {
	asked := map[string]string{bound.name: level.String()}
	if _, err := r.launch.rendered(asked, r.facts); err != nil {
		r.fault(at, "%v", err)
		return
	}
	for _, problem := range r.problems(asked) {
		if !slices.Contains(problem.Variables, bound.name) || known.before(problem) {
			continue
		}
		switch {
		case problem.Effect == nccl.Warning:
			r.warn(at, "%s=%s: %s", bound.name, level, problem)
		case problem.Effect == nccl.Infeasible:
			r.warn(at, "%s=%s will fail here: %s", bound.name, level, problem)
		case bound.unsafe && problem.Effect == nccl.Unsafe:
		case problem.Effect == nccl.Unsafe:
			r.fault(at, "%s; or add unsafe: true to the knob", problem)
		default:
			r.fault(at, "%s", problem)
		}
	}
}

// checkBase tells what NCCL makes of the variables that are set for all trials.
// What is merely unsafe among them is production's own choice.
func (r *resolver) checkBase() told {
	known := told{}
	for _, problem := range r.problems(nil) {
		known.before(problem)
		at := r.problemPlace(reference{}, problem)
		if problem.Effect == nccl.Infeasible || problem.Effect == nccl.Forbidden {
			r.fault(at, "server.env: %s", problem)
		} else {
			r.warn(at, "server.env: %s", problem)
		}
	}
	r.checkInert()
	return known
}

// checkInert warns of variables that are set for all trials without effect.
func (r *resolver) checkInert() {
	_, notes, err := nccl.Canonical(r.facts, ncclOnly(r.launch.env))
	if err != nil {
		return // values were checked one by one
	}
	for _, note := range notes {
		if note.Effect == nccl.Inert || note.Effect == nccl.Clamped {
			r.warn(r.claims.variables[note.Variable].at, "%s=%s has no such effect in NCCL: %s", note.Variable, note.From, note.Message)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.launch.env)) {
		variable, known := nccl.Lookup(name)
		if !known || variable.SameAs == "" || variable.SameAs < name {
			continue
		}
		if _, both := r.launch.env[variable.SameAs]; both {
			r.warn(r.claims.variables[variable.SameAs].at, "%s limits the same as %s; keep one of them", variable.SameAs, name)
		}
	}
}

// checkOneGPU warns of knobs that cannot do anything.
func (r *resolver) checkOneGPU() {
	if g := r.file.GPUs; g == nil || g.All || len(g.Indices) != 1 {
		return
	}
	for _, knob := range r.knobs {
		if bound := r.bindings[knob.ID]; bound.isNCCL() {
			r.warn(bound.at, "%s: one GPU has no collectives, so NCCL's settings change nothing; remove the knob", bound.name)
		}
	}
}
