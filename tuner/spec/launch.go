package spec

import (
	"fmt"
	"maps"
	"slices"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/servers"
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
	// limits are the arguments of every launch that keep speculation from moving an
	// admission limit; part of each configuration, since they are measured with it.
	limits []string
	// version is that of the server, where it is known; the zero one is the newest.
	version servers.Version
}

// effect is what a configuration does to the launch.
type effect struct {
	env   map[string]string // as asked, NCCL's variables as intents
	unset []string          // variables of knobs that are absent
	args  []string
}

// asked is what the knobs do in the words of the newest server: what identifies a
// configuration whatever is installed.
func (t *launchTemplate) asked(values search.Values) (effect, error) {
	return t.effect(values, servers.Version{})
}

// effect collects what the knobs do to a server of that version, in the order of
// the knobs' ids, so that the order of the file plays no part.
func (t *launchTemplate) effect(values search.Values, version servers.Version) (effect, error) {
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
			out.addBundle(bound, value)
		}
	}
	if t.speculation != nil {
		args, err := t.speculation.render(t.kind, version, values)
		if err != nil {
			return effect{}, err
		}
		out.args = append(out.args, args...)
	}
	out.args = append(out.args, t.limits...)
	return out, nil
}

// addBundle adds the chosen bundle; the variables of the others are absent.
func (e *effect) addBundle(bound binding, value search.Value) {
	chosen := bundle{}
	if !value.IsUnset() {
		chosen = bound.bundles[value.String()]
	}
	e.args = append(e.args, chosen.Args...)
	maps.Copy(e.env, chosen.Env)
	for _, name := range bound.variables() {
		if _, set := chosen.Env[name]; !set {
			e.unset = append(e.unset, name)
		}
	}
}

// variables lists what a group may set.
func (b binding) variables() []string {
	names := map[string]bool{}
	for _, choice := range b.bundles {
		for name := range choice.Env {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// flags lists those that a group may give.
func (b binding) flags() []string {
	var names []string
	for _, choice := range b.bundles {
		for _, arg := range choice.Args {
			if flag := flagOf(arg); flag != "" {
				names = append(names, flag)
			}
		}
	}
	return names
}

// acting is the whole environment of a configuration, NCCL's variables as
// intents in their canonical form for the NCCL at hand: what it ignores is left
// out, what it clamps stands at its clamp. What the file sets for all trials
// alike stays as it is written.
func (t *launchTemplate) acting(asked map[string]string, facts nccl.Context) (map[string]string, error) {
	whole := maps.Clone(t.env)
	maps.Copy(whole, asked)
	canonical, _, err := nccl.Canonical(facts, ncclOnly(whole))
	if err != nil {
		return nil, err
	}
	out := maps.Clone(canonical)
	for name, value := range whole {
		if !isNCCL(name) {
			out[name] = value
		}
	}
	maps.Copy(out, t.env)
	return out, nil
}

// rendered is the environment that is launched: the acting one in the spelling
// that the NCCL at hand takes.
func (t *launchTemplate) rendered(asked map[string]string, facts nccl.Context) (map[string]string, error) {
	acting, err := t.acting(asked, facts)
	if err != nil {
		return nil, err
	}
	written, err := nccl.Render(facts, ncclOnly(acting))
	if err != nil {
		return nil, err
	}
	maps.Copy(acting, written)
	return acting, nil
}

func ncclOnly(env map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range env {
		if isNCCL(name) {
			out[name] = value
		}
	}
	return out
}

// Facts are what is known of NCCL on the machine.
func (c *Campaign) Facts() nccl.Context { return c.facts }

// WithFacts is the campaign with what a launch told about NCCL: configurations
// that this NCCL makes equal are one from then on.
func (c *Campaign) WithFacts(facts nccl.Context) (*Campaign, error) {
	changed := *c
	space, err := search.NewSpace(c.launch.knobs, c.Space.Constraints(), canonicalizer(c.launch.env, c.launch.bindings, facts))
	if err != nil {
		return nil, fmt.Errorf("space with NCCL %s: %w", facts.Version, err)
	}
	changed.Space, changed.facts = space, facts
	return &changed, nil
}

// Configuration is the identity of a configuration and what it does to the
// launch. Values keep what was asked; env and args are what is launched.
func (c *Campaign) Configuration(values search.Values, facts nccl.Context) (store.Configuration, error) {
	asked, err := c.launch.asked(values)
	if err != nil {
		return store.Configuration{}, err
	}
	written, err := c.launch.effect(values, c.launch.version)
	if err != nil {
		return store.Configuration{}, err
	}
	launched, err := c.launch.rendered(asked.env, facts)
	if err != nil {
		return store.Configuration{}, err
	}
	acting, err := c.launch.acting(asked.env, facts)
	if err != nil {
		return store.Configuration{}, err
	}
	configuration := store.Configuration{Hash: c.launch.hash(asked), Values: values, Env: map[string]string{}, Args: []string{}, Unset: asked.unset}
	for _, arg := range written.args {
		configuration.Args = append(configuration.Args, unescape(arg))
	}
	for name, value := range launched {
		if _, fixed := c.launch.env[name]; !fixed {
			configuration.Env[name] = unescape(value)
		}
	}
	for name := range asked.env {
		if _, kept := launched[name]; !kept {
			configuration.Unset = append(configuration.Unset, name)
		}
	}
	slices.Sort(configuration.Unset)
	if hash := c.launch.hash(effect{env: acting, args: asked.args}); hash != configuration.Hash {
		configuration.EquivalentTo = &hash
	}
	return configuration, nil
}

// Job is what a host needs to launch and measure a configuration. The caller
// adds ids, the attempt, the seed of the prompts and the log folder.
func (c *Campaign) Job(values search.Values, facts nccl.Context) (runners.Job, error) {
	asked, err := c.launch.effect(values, c.launch.version)
	if err != nil {
		return runners.Job{}, err
	}
	env, err := c.launch.rendered(asked.env, facts)
	if err != nil {
		return runners.Job{}, err
	}
	args := slices.Concat(c.launch.args, asked.args)
	args = append(args, c.launch.counting(args)...)
	for i, arg := range args {
		args[i] = forHost(arg)
	}
	for name, value := range env {
		env[name] = forHost(value)
	}
	return runners.Job{
		Kind: c.Kind, ServerVersion: c.launch.version.String(), Args: args, Env: env,
		Inherit: slices.Clone(c.launch.inherit), Secrets: slices.Clone(c.launch.secrets), Directory: c.launch.directory, Model: c.launch.model,
		GPUs: c.GPUs, Timeouts: c.Timeouts, Workload: c.Workload, Command: c.Command, ServingScale: c.ServingScale,
		Prove: c.launch.tuned(),
	}, nil
}

// counting is the flag that makes the server tell its counters, where it needs one
// and a command has flags at all: a script without any is not given its first.
func (t *launchTemplate) counting(args []string) []string {
	kind, err := servers.Get(t.kind)
	if err != nil || commandHead(args) == len(args) {
		return nil
	}
	if kind, _ = kind.At(t.version); !kind.Metrics.Off(servers.Command{Args: args}) {
		return nil
	}
	return []string{kind.Metrics.Flag}
}

// WithServer is the campaign for a server of that version, which decides how
// speculation is written. What the version cannot do at all is an error.
func (c *Campaign) WithServer(version servers.Version) (*Campaign, error) {
	changed := *c
	changed.launch.version = version
	if c.launch.speculation == nil {
		return &changed, nil
	}
	var constraints []string
	for _, constraint := range c.Space.Constraints() {
		constraints = append(constraints, constraint.Source)
	}
	for values := range combinationsOf(c.launch.knobs, constraints, idSteps, idTopK, idDraftTokens) {
		if _, err := c.launch.speculation.render(c.Kind, version, values); err != nil {
			return nil, fmt.Errorf("the server that is installed here is %s: %w", version, err)
		}
	}
	return &changed, nil
}

// ServerKind is the kind of server at the version at hand; nil for a command.
func (c *Campaign) ServerKind() *servers.Kind {
	kind, err := servers.Get(c.Kind)
	if err != nil {
		return nil
	}
	kind, _ = kind.At(c.launch.version)
	return kind
}

// tuned lists the variables and flags that knobs set or remove. Those of
// speculation are proved as speculation.
func (t *launchTemplate) tuned() []string {
	var names []string
	for _, bound := range t.bindings {
		switch bound.kind {
		case bindEnv, bindFlag, bindSwitch:
			names = append(names, bound.name)
		case bindGroup:
			names = append(names, bound.variables()...)
			names = append(names, bound.flags()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
