package spec

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/servers"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	flagName     = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9_.-]*$`)
)

// server reads what is launched for every trial alike.
func (r *resolver) server() {
	file := r.file.Server
	r.launch = launchTemplate{env: map[string]string{}, directory: r.directory}
	if !file.Where.read() {
		return
	}
	kinds := append(servers.Names(), KindCommand)
	if !file.Where.has("kind") {
		r.fault(file.Where.Begin, "server: kind is missing: one of %s", strings.Join(kinds, ", "))
	}
	r.launch.kind = r.word("server.kind", file.Kind, "", kinds)
	r.launch.model = r.label(file.Model)
	r.command()
	if file.Directory != nil {
		r.launch.directory = r.path(file.Directory)
	}
	for _, entry := range present(&r.collector, file.Env) {
		r.serverVariable(entry)
	}
	for _, name := range file.Inherit {
		r.inherit(name)
	}
	r.address()
}

// command reads the argument vector that all launches share.
func (r *resolver) command() {
	file := r.file.Server
	if !file.Where.has("command") {
		r.fault(file.Where.Begin, "server: command is missing: a list of arguments, such as [python3, -m, sglang.launch_server, --port=${port}]")
	}
	if file.Command == nil {
		return
	}
	if len(*file.Command) == 0 {
		r.fault(file.Where.of("command"), "server.command is empty; want a list of arguments, such as [python3, -m, sglang.launch_server, --port=${port}]")
	}
	for _, argument := range *file.Command {
		r.launch.args = append(r.launch.args, r.launchText(argument))
		if flag := flagOf(argument.Text); flag != "" {
			r.claimFlag(flag, claim{owner: "server.command", at: argument.Position})
		}
	}
	r.secretArguments(*file.Command)
}

// address refuses a server that nobody could reach.
func (r *resolver) address() {
	if r.serverKind() == nil || len(r.launch.args) == 0 {
		return
	}
	named := slices.ContainsFunc(r.launch.args, func(arg string) bool { return strings.Contains(arg, "${port") })
	for _, value := range r.launch.env {
		named = named || strings.Contains(value, "${port")
	}
	if _, fixed := (servers.Command{Args: r.launch.args}).Int("--port"); !named && !fixed {
		r.fault(r.file.Server.Where.of("command"), "server.command says nowhere on which port the server listens; add --port=${port}, or what the server calls it: a free port is filled in at launch")
	}
}

func (r *resolver) serverVariable(entry entry[environment]) {
	if !r.variable(entry.Key, entry.At, "server.env", "") {
		return
	}
	if secret := entry.Value.Secret; secret != nil {
		r.secretSource(entry.Key, *secret)
		return
	}
	if r.secretVariable(entry.Key, entry.Value.Value, entry.At) {
		return
	}
	if r.always(entry.Key) {
		r.warn(entry.At, "%s overwrites %s itself, so what stands here has no effect", r.serverKind().Title, entry.Key)
	}
	if value, ok := r.environmentValue(entry.Key, entry.Value.Value); ok {
		r.launch.env[entry.Key] = value
	}
}

func (r *resolver) secretSource(name string, file fileSecret) {
	secret := runners.Secret{Name: name, FromEnv: r.label(file.FromEnv)}
	if file.FromFile != nil {
		secret.FromFile = r.path(file.FromFile)
	}
	if secret.FromEnv != "" && !variableName.MatchString(secret.FromEnv) {
		r.fault(file.FromEnv.Position, "from_env: %q is not a variable's name; want letters, digits and underscores", secret.FromEnv)
	}
	r.launch.secrets = append(r.launch.secrets, secret)
}

func (r *resolver) inherit(name text) {
	variable := r.label(&name)
	if slices.Contains(r.launch.inherit, variable) {
		r.fault(name.Position, "server.inherit: %s stands in the list twice", variable)
		return
	}
	if !r.variable(variable, name.Position, "server.inherit", "") {
		return
	}
	r.launch.inherit = append(r.launch.inherit, variable)
}

// variable checks the name of an environment variable, against NCCL's catalogue
// too: a misspelt one has no effect, and nothing would say so. The owner is the
// part of the file that sets it.
func (r *resolver) variable(name string, at Position, owner, preset string) bool {
	if !variableName.MatchString(name) {
		r.fault(at, "%q is not a variable's name; want letters, digits and underscores", name)
		return false
	}
	switch recognition, known := nccl.Recognize(name); recognition {
	case nccl.NearName:
		r.fault(at, "%s is not a variable of NCCL, which would ignore it in silence: did you mean %s?", name, known)
		return false
	case nccl.UnknownName:
		r.warn(at, "%s is not a variable that Nocturne knows NCCL to read; if it is misspelt it has no effect", name)
	case nccl.KnownName:
		if variable, _ := nccl.Lookup(name); variable.Successor != "" {
			r.warn(at, "%s is an old name, read by NCCL in %s; today it is %s", name, variable.Versions, variable.Successor)
		}
	}
	return r.claimVariable(name, claim{owner: owner, preset: preset, at: at})
}

// always reports whether the server overwrites a variable whatever it is given.
func (r *resolver) always(name string) bool {
	kind := r.serverKind()
	if kind == nil {
		return false
	}
	written, known := kind.WrittenBy(name)
	return known && written.Always
}

// environmentValue reads the value of a variable that is set for all trials, or
// by a bundle.
func (r *resolver) environmentValue(name string, value scalar) (string, bool) {
	if value.isUnset() {
		r.fault(value.Position, "%s: unset is what every variable is that the file does not set; remove the line, or write \"unset\" to mean the text", name)
		return "", false
	}
	if !isNCCL(name) {
		if reason := value.unclear(); reason != "" {
			r.fault(value.Position, "%s: %s%s", name, reason, value.switchAdvice(", or 0 and 1 for a switch"))
			return "", false
		}
		return r.launchText(value), true
	}
	if value.style == null {
		value.ambiguous(&r.collector)
		return "", false
	}
	text, err := nccl.Canonicalize(name, r.launchText(value), nccl.Reading{Quoted: value.quoted()})
	if err != nil {
		r.fault(value.Position, "%s", r.refusal(err, "; or make it a knob of space.env with one choice, that as its default, and unsafe: true"))
		return "", false
	}
	return text, true
}

// isNCCL reports whether NCCL reads the variable, so that its catalogue knows
// what the values mean.
func isNCCL(name string) bool {
	_, known := nccl.Lookup(name)
	return known || strings.HasPrefix(name, "NCCL_")
}

// modelLabel is the label that people gave, or the model that the command names:
// an id, or the last part of a path.
func (r *resolver) modelLabel() string {
	if label := r.label(r.file.Model); label != "" || r.launch.kind == KindCommand {
		return label
	}
	models := modelsOf(r.launch.args)
	if len(models) == 0 {
		return ""
	}
	if name := models[0]; !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, ".") {
		return name
	}
	return filepath.Base(models[0])
}

// servingScale is 1 but for the simulated server, whose own flag must say the
// same: reported times would be wrong by the difference.
func (r *resolver) servingScale() float64 {
	flag, given := servers.Command{Args: r.launch.args}.Number("--sim-serving-scale")
	if r.file.Simulation == nil {
		if given && flag != 1 {
			r.fault(r.file.Server.Where.of("command"), "the simulated server serves %g times faster than real; add simulation: {serving_scale: %g}, so that metrics are reported in real units", flag, flag)
		}
		return 1
	}
	file := r.file.Simulation
	if file.ServingScale == nil {
		if file.Where.read() && !file.Where.has("serving_scale") {
			r.fault(file.Where.Begin, "simulation: serving_scale is missing")
		}
		return 1
	}
	scale, err := file.ServingScale.float()
	switch {
	case err != nil || scale < 1 || scale > 10_000:
		r.fault(file.ServingScale.Position, "simulation.serving_scale: %q: want a number from 1 to 10000", file.ServingScale.Text)
		return 1
	case !given && scale != 1:
		r.fault(file.ServingScale.Position, "simulation is for the simulated server only: server.command has no --sim-serving-scale=%s, and a real server would be reported %s times too fast", file.ServingScale.Text, file.ServingScale.Text)
	case given && flag != scale:
		r.fault(file.ServingScale.Position, "simulation.serving_scale is %s, and server.command has --sim-serving-scale=%s; both must be the same", file.ServingScale.Text, strconv.FormatFloat(flag, 'g', -1, 64))
	}
	return scale
}
