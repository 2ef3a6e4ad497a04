package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"regexp"
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
	maps.DeleteFunc(env, func(name, value string) bool { return isLogVariable(name) || filledByHost(value) })
	for name, value := range env {
		env[name] = normalNumber(value)
	}
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

// unidentified flags say where a server listens and what it logs; true for those
// with a value.
var unidentified = map[string]bool{
	// What the simulated server plays is a stack, and where it counts launches a
	// path: neither is asked of the launch.
	"--sim-driver": true, "--sim-cuda": true, "--sim-nccl": true, "--sim-state": true,
	"--port": true, "--host": true, "--nccl-port": true, "--dist-init-addr": true,
	"--log-level": true, "--log-file": true, "--log-level-http": true, "--uvicorn-log-level": true,
	"--log-verbosity": true, "-lv": true, "--log-colors": true, "--log-requests-level": true,
	"--log-requests": false, "--log-disable": false, "--verbose": false, "-v": false,
	"--disable-log-requests": false, "--enable-log-requests": false, "--show-time-cost": false,
}

// logVariables say what is logged.
var logVariables = regexp.MustCompile(`^(NCCL_DEBUG|VLLM_LOGGING_|VLLM_CONFIGURE_LOGGING$|SGLANG_LOGGING_|TLLM_LOG_|TRTLLM_LOG_|LLAMA_LOG_)`)

func isLogVariable(name string) bool { return logVariables.MatchString(name) }

// filledByHost reports whether a text holds an address or a path of the launch.
// ${nocturne} is no such thing: it is what is launched.
func filledByHost(text string) bool {
	text = strings.ReplaceAll(text, "$${", "")
	return strings.Contains(text, "${port}") || strings.Contains(text, "${host}") || strings.Contains(text, "${trial_dir}")
}

// normalArguments is the argument vector of a server as an identity: the program
// and what stands before the first flag, then each flag with its values, sorted
// by flag, since servers read their flags in any order. --a=b and --a b are the
// same, and so are 0.90 and 0.9.
func normalArguments(args []string) []string {
	head := commandHead(args)
	normal := slices.Clone(args[:head])
	var kept [][]string
	for _, group := range flagGroups(args[head:]) {
		valued, ignored := unidentified[group[0]]
		dropped := 0
		switch {
		case len(group) > 1 && (valued || filledByHost(group[1])):
			dropped = 2
		case ignored:
			dropped = 1
		}
		if dropped > 0 {
			normal = append(normal, group[dropped:]...) // what follows stands for itself
			continue
		}
		kept = append(kept, group)
	}
	slices.SortStableFunc(kept, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	for _, word := range slices.Concat(kept...) {
		normal = append(normal, normalNumber(word))
	}
	return normal
}

// flagGroups splits arguments into flags, each with the words up to the next.
func flagGroups(args []string) [][]string {
	var groups [][]string
	for _, arg := range args {
		flag, value, pair := strings.Cut(arg, "=")
		switch {
		case !flagName.MatchString(flag):
			last := len(groups) - 1
			groups[last] = append(groups[last], arg)
		case pair:
			groups = append(groups, []string{normalFlag(flag), value})
		default:
			groups = append(groups, []string{normalFlag(flag)})
		}
	}
	return groups
}

var interpreter = regexp.MustCompile(`^python[0-9.]*$`)

// commandHead is the number of arguments before the first flag of the server.
// The flags of a Python interpreter, up to its module, belong to the program.
func commandHead(args []string) int {
	i := 0
	for i < len(args) && flagOf(args[i]) == "" {
		i++
		if !interpreter.MatchString(path.Base(args[i-1])) {
			continue
		}
		for i < len(args) && strings.HasPrefix(args[i], "-") {
			i++
			if args[i-1] == "-m" {
				break
			}
		}
	}
	return i
}

var decimalFraction = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)

// normalNumber drops zeros at the end of a fraction, as the value of a knob is
// written.
func normalNumber(text string) string {
	if !decimalFraction.MatchString(text) {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// WorkloadKey is "wl1:" and a digest of everything in the workload that
// changes the numbers: not its name, not where its file lies, not how often it
// is repeated. The workload of a command is the command itself, as the file has
// it, and how its output is read.
func (c *Campaign) WorkloadKey() string {
	if c.Kind == KindCommand {
		return digest("wl1", c.Kind, c.launch.args, c.Command.Patterns)
	}
	w := c.Workload
	w.Name, w.File, w.Rounds, w.Seed = "", "", runners.Rounds{}, 0
	return digest("wl1", w)
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
