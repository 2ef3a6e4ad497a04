package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
)

// launchTemplate is what all launches of a campaign have in common, and what
// each knob adds.
type launchTemplate struct {
	kind      string
	args      []string
	env       map[string]string
	secrets   []runners.Secret
	inherit   []string
	directory string
	model     string

	knobs       []search.Knob
	bindings    map[string]binding
	speculation *speculation
}

// effect is what a configuration does to the launch.
type effect struct {
	env   map[string]string // as asked, NCCL's variables as intents
	unset []string          // variables of knobs that are absent
	args  []string
}

// effect collects what the knobs do, in the order of the knobs' ids, so that
// the order of the file plays no part.
func (t *launchTemplate) effect(values search.Values) (effect, error) {
	out := effect{env: map[string]string{}, unset: []string{}, args: []string{}}
	for _, id := range slices.Sorted(maps.Keys(t.bindings)) {
		bound, value := t.bindings[id], values[id]
		switch bound.kind {
		case bindEnv:
			if value.IsUnset() {
				out.unset = append(out.unset, bound.name)
			} else {
				out.env[bound.name] = value.String()
			}
		case bindFlag:
			if !value.IsUnset() {
				out.args = append(out.args, bound.name, value.String())
			}
		case bindSwitch:
			if on, _ := value.Boolean(); on {
				out.args = append(out.args, bound.name)
			}
		case bindGroup:
			t.addBundle(bound, value, &out)
		}
	}
	if t.speculation != nil {
		args, err := t.speculation.render(t.kind, values)
		if err != nil {
			return effect{}, err
		}
		out.args = append(out.args, args...)
	}
	return out, nil
}

// addBundle adds the chosen bundle; the variables of the others are absent.
func (t *launchTemplate) addBundle(bound binding, value search.Value, out *effect) {
	chosen := bound.bundles[value.String()]
	out.args = append(out.args, chosen.args...)
	maps.Copy(out.env, chosen.env)
	for _, other := range bound.bundles {
		for name := range other.env {
			if _, set := out.env[name]; !set && !slices.Contains(out.unset, name) {
				out.unset = append(out.unset, name)
			}
		}
	}
}

// render turns the variables as asked into those that are launched: the
// canonical form for the NCCL at hand (what it ignores is left out), in the
// spelling that its version takes.
func (t *launchTemplate) render(asked map[string]string, facts nccl.Context) (map[string]string, error) {
	settings := ncclOnly(t.env)
	maps.Copy(settings, ncclOnly(asked))
	canonical, _, err := nccl.Canonical(facts, settings)
	if err != nil {
		return nil, err
	}
	rendered, err := nccl.Render(facts, canonical)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, value := range asked {
		if !strings.HasPrefix(name, "NCCL_") {
			out[name] = value
		} else if text, kept := rendered[name]; kept {
			out[name] = text
		}
	}
	return out, nil
}

func ncclOnly(env map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range env {
		if strings.HasPrefix(name, "NCCL_") {
			out[name] = value
		}
	}
	return out
}

// canonicalizer maps a configuration to the form that the NCCL at hand makes
// of it, so that two that come to the same launch are one for the search.
func canonicalizer(base map[string]string, knobs []search.Knob, bindings map[string]binding, facts nccl.Context) func(search.Values) search.Values {
	template := launchTemplate{env: base, bindings: bindings, knobs: knobs}
	return func(values search.Values) search.Values { return template.canonicalValues(values, facts) }
}

func (t *launchTemplate) canonicalValues(values search.Values, facts nccl.Context) search.Values {
	settings := ncclOnly(t.env)
	var asked []string
	for id, value := range values {
		if bound := t.bindings[id]; bound.kind == bindEnv && strings.HasPrefix(bound.name, "NCCL_") && !value.IsUnset() {
			settings[bound.name] = value.String()
			asked = append(asked, id)
		}
	}
	canonical, _, err := nccl.Canonical(facts, settings)
	if err != nil {
		return values // not legal for NCCL: such a configuration equals only itself
	}
	for _, id := range asked {
		text, kept := canonical[t.bindings[id].name]
		switch {
		case !kept:
			values[id] = search.Unset
		case text != values[id].String():
			values[id] = search.Text(text)
		}
	}
	return values
}

// Facts are what is known of NCCL on the machine.
func (c *Campaign) Facts() nccl.Context { return c.facts }

// WithFacts is the campaign with what a launch told about NCCL: configurations
// that this NCCL makes equal are one from then on.
func (c *Campaign) WithFacts(facts nccl.Context) (*Campaign, error) {
	changed := *c
	space, err := search.NewSpace(c.launch.knobs, c.Space.Constraints(), canonicalizer(c.launch.env, c.launch.knobs, c.launch.bindings, facts))
	if err != nil {
		return nil, fmt.Errorf("space with NCCL %s: %w", facts.Version, err)
	}
	changed.Space, changed.facts = space, facts
	return &changed, nil
}

// Configuration is the identity of a configuration and what it does to the
// launch. Values keep what was asked; env and args are what is launched.
func (c *Campaign) Configuration(values search.Values, facts nccl.Context) (store.Configuration, error) {
	asked, err := c.launch.effect(values)
	if err != nil {
		return store.Configuration{}, err
	}
	env, err := c.launch.render(asked.env, facts)
	if err != nil {
		return store.Configuration{}, err
	}
	configuration := store.Configuration{Hash: c.launch.hash(asked), Values: values, Env: env, Args: asked.args, Unset: asked.unset}
	for name := range asked.env {
		if _, launched := env[name]; !launched {
			configuration.Unset = append(configuration.Unset, name)
		}
	}
	slices.Sort(configuration.Unset)
	canonical, err := c.launch.effect(c.launch.canonicalValues(maps.Clone(values), facts))
	if err != nil {
		return store.Configuration{}, err
	}
	if hash := c.launch.hash(canonical); hash != configuration.Hash {
		configuration.EquivalentTo = &hash
	}
	return configuration, nil
}

// Job is what a host needs to launch and measure a configuration. The caller
// adds ids, the attempt, the seed of the prompts and the log folder.
func (c *Campaign) Job(values search.Values, facts nccl.Context) (runners.Job, error) {
	asked, err := c.launch.effect(values)
	if err != nil {
		return runners.Job{}, err
	}
	env, err := c.launch.render(asked.env, facts)
	if err != nil {
		return runners.Job{}, err
	}
	job := runners.Job{
		Kind: c.Kind, Args: slices.Concat(c.launch.args, asked.args), Env: maps.Clone(c.launch.env),
		Inherit: c.launch.inherit, Secrets: c.launch.secrets, Directory: c.launch.directory, Model: c.launch.model,
		GPUs: c.GPUs, Timeouts: c.Timeouts, Workload: c.Workload, Command: c.Command, ServingScale: c.ServingScale,
		Prove: c.launch.tuned(),
	}
	maps.Copy(job.Env, env)
	return job, nil
}

// tuned lists the variables that knobs set or remove.
func (t *launchTemplate) tuned() []string {
	names := map[string]bool{}
	for _, bound := range t.bindings {
		if bound.kind == bindEnv {
			names[bound.name] = true
		}
		for _, choice := range bound.bundles {
			for name := range choice.env {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
