package spec

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"nocturne/nccl"
	"nocturne/search"
)

// canonicalizer maps a configuration to the form that the NCCL at hand makes of
// it, so that two that come to the same launch are one for the search. It is nil
// for a space that NCCL has no part in.
func canonicalizer(base map[string]string, bindings map[string]binding, facts nccl.Context) func(search.Values) search.Values {
	c := &canonicalForms{template: launchTemplate{env: base, bindings: bindings}, facts: facts, known: map[string]map[string]search.Value{}}
	for _, id := range slices.Sorted(maps.Keys(bindings)) {
		if bound := bindings[id]; bound.isNCCL() || slices.ContainsFunc(bound.variables(), isNCCL) {
			c.knobs = append(c.knobs, id)
		}
	}
	if len(c.knobs) == 0 {
		return nil
	}
	return c.of
}

// mostCanonicalForms bounds what is remembered.
const mostCanonicalForms = 1 << 16

// canonicalForms remembers what NCCL makes of settings: a search asks for the
// same ones thousands of times, beside other values of other knobs.
type canonicalForms struct {
	template launchTemplate
	facts    nccl.Context
	knobs    []string // that NCCL has a part in, sorted

	mutex sync.RWMutex
	known map[string]map[string]search.Value
}

// of replaces the knobs of NCCL by the settings that act. A setting that another
// variable carries stands under that one's name.
func (c *canonicalForms) of(values search.Values) search.Values {
	acting, legal := c.acting(values)
	if !legal {
		return values // not legal for NCCL: such a configuration equals only itself
	}
	for _, id := range c.knobs {
		if c.template.bindings[id].kind == bindEnv {
			delete(values, id)
		}
	}
	maps.Copy(values, acting)
	return values
}

func (c *canonicalForms) acting(values search.Values) (settings map[string]search.Value, legal bool) {
	var key strings.Builder
	for _, id := range c.knobs {
		key.WriteString(values[id].String())
		key.WriteByte(0)
	}
	c.mutex.RLock()
	settings, found := c.known[key.String()]
	c.mutex.RUnlock()
	if !found {
		settings = c.work(values)
		c.mutex.Lock()
		if len(c.known) < mostCanonicalForms {
			c.known[key.String()] = settings
		}
		c.mutex.Unlock()
	}
	return settings, settings != nil
}

// work asks NCCL's rules; nil when they refuse a value.
func (c *canonicalForms) work(values search.Values) map[string]search.Value {
	asked := map[string]string{}
	for _, id := range c.knobs {
		bound, value := c.template.bindings[id], values[id]
		switch {
		case value.IsUnset():
		case bound.kind == bindGroup:
			maps.Copy(asked, ncclOnly(bound.bundles[value.String()].Env))
		default:
			asked[bound.name] = value.String()
		}
	}
	acting, err := c.template.acting(asked, c.facts)
	if err != nil {
		return nil
	}
	settings := map[string]search.Value{}
	for name, text := range acting {
		if _, fixed := c.template.env[name]; !fixed && isNCCL(name) {
			settings[name] = ncclLevel(text)
		}
	}
	return settings
}
