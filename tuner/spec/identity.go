package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"nocturne/runners"
)

// digest is the first 12 bytes of a SHA-256 over the JSON of the parts, behind
// the name of the recipe.
func digest(recipe string, parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic("spec: identity of a value that has no JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return recipe + ":" + hex.EncodeToString(sum[:12])
}

// hash is the identity "c1:" of a launch as asked: the argument vector and the
// variables set, base and knobs alike, so that campaigns with different spaces
// still pair. Where the server listens, what it logs and the runner's paths are
// no part of it, nor is any version. A variable that is removed is one that is
// not set, since the environment is built and not inherited; names of inherited
// ones and of secrets count, their values do not.
func (t *launchTemplate) hash(asked effect) string {
	env := maps.Clone(t.env)
	maps.Copy(env, asked.env)
	secrets := make([]string, 0, len(t.secrets))
	for _, secret := range t.secrets {
		secrets = append(secrets, secret.Name)
	}
	slices.Sort(secrets)
	inherit := slices.Sorted(slices.Values(t.inherit))
	args := slices.Concat(t.args, asked.args)
	if t.kind != KindCommand {
		args = normalArguments(args)
	}
	return digest("c1", args, env, secrets, inherit)
}

// unidentified flags say where a server listens and what it logs.
var unidentified = map[string]bool{
	"--port": true, "--host": true, "--nccl-port": true, "--dist-init-addr": true,
	"--log-level": true, "--log-file": true, "--log-level-http": true, "--log-requests": true,
	"--log-verbosity": true, "-lv": true, "--log-disable": true, "--log-colors": true, "--verbose": true, "-v": true,
	"--disable-log-requests": true, "--uvicorn-log-level": true,
}

// normalArguments is the argument vector of a server as an identity: what
// stands before the first flag, then each flag with its values, sorted by flag,
// since servers read their flags in any order. --a=b and --a b are the same.
func normalArguments(args []string) []string {
	first := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--") })
	if first < 0 {
		return args
	}
	var groups [][]string
	for _, arg := range args[first:] {
		switch {
		case flagName.MatchString(strings.SplitN(arg, "=", 2)[0]):
			if flag, value, pair := strings.Cut(arg, "="); pair {
				groups = append(groups, []string{flag, value})
			} else {
				groups = append(groups, []string{arg})
			}
		default:
			last := len(groups) - 1
			groups[last] = append(groups[last], arg)
		}
	}
	groups = slices.DeleteFunc(groups, func(group []string) bool { return unidentified[group[0]] })
	slices.SortStableFunc(groups, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return slices.Concat(args[:first], slices.Concat(groups...))
}

// WorkloadKey is "wl1:" and a digest of everything in the workload that
// changes the numbers: not its name, not where its file lies, not how often it
// is repeated.
func (c *Campaign) WorkloadKey() string {
	w := c.Workload
	w.Name, w.File, w.Rounds, w.Seed = "", "", runners.Rounds{}, 0
	return digest("wl1", c.Kind == KindCommand, w)
}

// ModelKey is "m1:" and a digest of the label and of the model's own
// configuration where it can be read on this machine (the draft's too).
func (c *Campaign) ModelKey() string {
	return digest("m1", c.Model, modelDigests(c.launch))
}

// Digest covers what must not change when a run goes on.
func (c *Campaign) Digest() string {
	resolved, err := c.Resolved()
	if err != nil {
		return ""
	}
	return digest("s1", resolved.Fixed)
}
