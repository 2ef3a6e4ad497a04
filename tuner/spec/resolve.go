package spec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // windows carry a zone, also on hosts without zone files

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/search"
)

// KindCommand is the server kind of a program that is no server.
const KindCommand = "command"

// Options of Parse. The zero value reads prompt files from disk and assumes
// nothing about the machine.
type Options struct {
	// Host, when set, overrides the file's host.
	Host string
	// Until, when set, overrides budget.until.
	Until *time.Time
	// Facts are what is known of NCCL on the machine.
	Facts nccl.Context
}

// resolver turns the typed file into a Campaign.
type resolver struct {
	collector
	file      fileRoot
	directory string
	facts     nccl.Context

	vars     map[string]string
	varNames []string
	baseEnv  map[string]Position

	knobs       []search.Knob
	bindings    map[string]binding
	speculation *speculation
	space       *search.Space
	launch      launchTemplate
}

// Parse reads a campaign file. The error is of type Faults when the file is at
// fault; warnings are returned in both cases. Nothing is started.
func Parse(path string, text []byte, options Options) (*Campaign, []Warning, error) {
	directory, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	return parseIn(path, directory, text, options)
}

// ParseStored reads the text of a campaign that was stored, whose relative
// paths start from directory.
func ParseStored(name, directory string, text []byte, options Options) (*Campaign, []Warning, error) {
	return parseIn(name, directory, text, options)
}

func parseIn(path, directory string, text []byte, options Options) (*Campaign, []Warning, error) {
	r := &resolver{
		collector: collector{file: path}, directory: directory, facts: options.Facts,
		vars: map[string]string{}, baseEnv: map[string]Position{}, bindings: map[string]binding{},
	}
	decodeFile(&r.collector, text, &r.file)
	var campaign *Campaign
	if !r.fatal() {
		campaign = r.resolve(options)
		campaign.File, campaign.Directory = string(text), directory
	}
	faults, warnings := r.result()
	if len(faults) > 0 {
		return nil, warnings, faults
	}
	return campaign, warnings, nil
}

// fatal reports whether the text is no YAML mapping at all, so that everything
// would be missing.
func (r *resolver) fatal() bool { return len(r.faults) > 0 && r.file.At == nil }

var campaignName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (r *resolver) resolve(options Options) *Campaign {
	r.required()
	r.readVars()
	r.presets()
	campaign := &Campaign{
		Name: r.file.Campaign, Model: r.file.Model, Kind: r.file.Server.Kind, Host: "local",
		GPUs: runners.GPUSelection{All: true}, ServingScale: r.servingScale(), Expect: r.expect(),
	}
	if r.file.Campaign != "" && !campaignName.MatchString(r.file.Campaign) {
		r.fault(r.file.At["campaign"], "campaign: %q: want up to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit", r.file.Campaign)
	}
	if host := options.Host; host != "" || r.file.Host != "" {
		if host == "" {
			host = r.file.Host
		}
		if campaign.Host = host; host != "local" {
			r.fault(r.file.At["host"], "host: %q: this version runs trials on the local host only; write local", host)
		}
	}
	if g := r.file.GPUs; g != nil {
		campaign.GPUs = runners.GPUSelection{All: g.All, Indices: g.Indices}
	}
	r.server()
	campaign.Timeouts = r.timeouts()
	campaign.Workload = r.workload()
	campaign.Objective = r.objective(campaign.Workload)
	campaign.Command = r.commandOutput()
	r.buildSpace()
	if r.space != nil {
		campaign.Space, campaign.Baseline = r.space, r.space.Default()
		campaign.Current = r.configuration("current", r.file.Current)
		for i, section := range r.file.Try {
			if hint := r.configuration("try["+strconv.Itoa(i)+"]", section); hint != nil {
				campaign.Hints = append(campaign.Hints, hint)
			}
		}
	}
	campaign.Sampler = r.sampler()
	campaign.Budget = r.budget(options)
	campaign.Confirm = r.confirm()
	campaign.MinimalEffect = r.fraction("minimal_effect", r.file.MinimalEffect, 0.01)
	campaign.Seed = r.seed()
	r.launch.bindings, r.launch.speculation, r.launch.knobs = r.bindings, r.speculation, r.knobs
	campaign.launch, campaign.facts = r.launch, r.facts
	r.checkBaseline(campaign)
	return campaign
}

// required reports keys that must be there.
func (r *resolver) required() {
	for _, key := range []string{"campaign", "server", "workload", "objective", "space", "budget"} {
		if _, there := r.file.At[key]; !there {
			r.fault(Position{1, 1}, "the key %q is missing; required are campaign, server, workload, objective, space and budget", key)
		}
	}
}

func (r *resolver) readVars() {
	for _, entry := range r.file.Vars.Entries {
		if !placeholderName.MatchString(entry.Key) || slices.Contains(RunnerNames, entry.Key) {
			r.fault(entry.At, "vars: %q: want a name of letters, digits and underscores other than %s", entry.Key, strings.Join(RunnerNames, ", "))
			continue
		}
		if !entry.Value.ambiguous(r) {
			r.vars[entry.Key] = entry.Value.Text
			r.varNames = append(r.varNames, entry.Key)
		}
	}
}

// server reads what is launched for every trial alike.
func (r *resolver) server() {
	file := r.file.Server
	if _, there := r.file.At["server"]; !there {
		return
	}
	kinds := append(servers.Names(), KindCommand)
	if file.Kind == "" {
		r.fault(file.Begin, "server: kind is missing: one of %s", strings.Join(kinds, ", "))
	} else if !slices.Contains(kinds, file.Kind) {
		r.fault(file.At["kind"], "server.kind: %q is not known: %s", file.Kind, suggestion(file.Kind, kinds))
	}
	if len(file.Command) == 0 {
		r.fault(file.Begin, "server: command is missing: a list of arguments, such as [python3, -m, sglang.launch_server]")
	}
	r.launch = launchTemplate{kind: file.Kind, env: map[string]string{}, inherit: file.Inherit, model: file.Model, directory: r.directory}
	for _, argument := range file.Command {
		if !argument.Quoted && truthWords[strings.ToLower(argument.Text)] {
			argument.ambiguous(r)
			continue
		}
		r.launch.args = append(r.launch.args, r.expand(argument))
	}
	r.secretArguments(file.Command)
	if file.Directory != "" {
		r.launch.directory = r.path(file.Directory)
	}
	for _, entry := range file.Env.Entries {
		r.serverVariable(entry)
	}
	if file.Kind == KindCommand && len(r.file.Workload.At) > 0 {
		for key, at := range r.file.Workload.At {
			if key != "rounds" && key != "name" {
				r.fault(at, "workload.%s: a command brings its own workload; only rounds and name are allowed with kind: command", key)
			}
		}
	}
}

func (r *resolver) serverVariable(entry Entry[environment]) {
	r.baseEnv[entry.Key] = entry.At
	if !variableName.MatchString(entry.Key) {
		r.fault(entry.At, "%q is not a variable's name; want letters, digits and underscores", entry.Key)
		return
	}
	if !r.variable(entry.Key, entry.At, true) || entry.Remove {
		return
	}
	if secret := entry.Value.Secret; secret != nil {
		r.launch.secrets = append(r.launch.secrets, runners.Secret{Name: entry.Key, FromEnv: secret.FromEnv, FromFile: secret.FromFile})
		return
	}
	if secretName(entry.Key) {
		r.fault(entry.At, "%s holds a secret by its name, and values of the file are stored; write {from_env: %s} or {from_file: PATH}", entry.Key, entry.Key)
		return
	}
	if text, ok := r.environmentValue(entry.Key, entry.Value.Value); ok {
		r.launch.env[entry.Key] = text
	}
}

var secretWords = regexp.MustCompile(`(?i)(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIALS?)$`)

func secretName(name string) bool { return secretWords.MatchString(name) }

// secretArguments refuses keys on the command line: arguments are stored, and
// every user of the machine can read them.
func (r *resolver) secretArguments(command []Scalar) {
	for _, argument := range command {
		if flag, _, _ := strings.Cut(argument.Text, "="); strings.HasPrefix(flag, "--") && secretName(strings.ReplaceAll(flag, "-", "_")) {
			r.fault(argument.Position, "%s holds a secret by its name; arguments are stored and can be read by all users of the machine: give it by server.env with from_env or from_file", flag)
		}
	}
}

// path makes a path of the file absolute.
func (r *resolver) path(path string) string {
	path = r.expand(Scalar{Text: path, Position: Position{1, 1}})
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.directory, path)
}

// buildSpace gathers the knobs and constraints.
func (r *resolver) buildSpace() {
	r.envKnobs(r.file.Space.Env)
	r.flagKnobs(r.file.Space.Flags)
	r.groupKnobs(r.file.Space.Groups)
	r.speculativeKnobs()
	if len(r.knobs) == 0 {
		if at, there := r.file.At["space"]; there && len(r.faults) == 0 {
			r.fault(at, "space has no knobs: there is nothing to search")
		}
		return
	}
	var constraints []search.Constraint
	for _, scalar := range r.file.Space.Constraints {
		constraint, err := search.ParseConstraint(scalar.Text, r.knobs)
		if err == nil {
			constraints = append(constraints, constraint)
			continue
		}
		var inside *search.ConstraintError
		at := scalar.Position
		if errors.As(err, &inside) {
			if scalar.Quoted {
				at.Column++
			}
			at.Column += inside.Column - 1
		}
		r.fault(at, "%v", err)
	}
	if len(r.faults) > 0 && len(constraints) < len(r.file.Space.Constraints) {
		return
	}
	space, err := search.NewSpace(r.knobs, constraints, canonicalizer(r.launch.env, r.knobs, r.bindings, r.facts))
	if err != nil {
		r.fault(r.file.At["space"], "space: %v", err)
		return
	}
	r.space = space
	r.checkSpace(constraints)
}

// checkSpace refuses a space in which nothing, or not the baseline, is legal.
func (r *resolver) checkSpace(constraints []search.Constraint) {
	err := r.space.Check(r.space.Default())
	var rejected *search.RejectedError
	if !errors.As(err, &rejected) {
		return
	}
	at := r.file.At["space"]
	for _, scalar := range r.file.Space.Constraints {
		if scalar.Text == rejected.Constraint {
			at = scalar.Position
		}
	}
	if _, any := r.space.AnyLegal(context.Background()); !any {
		r.fault(at, "the constraints exclude every configuration; %q rejects the baseline too", rejected.Constraint)
		return
	}
	r.fault(at, "%v, which is the baseline: every knob at its default must be allowed", err)
}

// checkBaseline looks at what the server would do with the baseline's command.
func (r *resolver) checkBaseline(campaign *Campaign) {
	if len(r.faults) > 0 || campaign.Space == nil {
		return
	}
	campaign.facts = r.facts
	for what, values := range map[string]search.Values{"baseline": campaign.Baseline, "current": campaign.Current} {
		if values == nil {
			continue
		}
		job, err := campaign.Job(values, r.facts)
		if err != nil {
			r.fault(r.file.Server.At["command"], "%s: %v", what, err)
			continue
		}
		kind, err := servers.Get(campaign.Kind)
		if err != nil {
			continue // a command: no rules
		}
		for _, finding := range kind.Check(job.Args, job.Env) {
			if finding.Severity == servers.Refuse {
				r.fault(r.file.Server.At["command"], "%s: %s", what, finding.Message)
			} else {
				r.warn(r.file.Server.At["command"], "%s", finding.Message)
			}
		}
	}
}

func (r *resolver) sampler() string {
	name := r.file.Search.Sampler
	if name == "" {
		return "auto"
	}
	if _, err := search.New(name); err != nil {
		r.fault(r.file.Search.At["sampler"], "search.sampler: %q is not known: %s", name, suggestion(name, search.Names()))
	}
	return name
}

func (r *resolver) expect() Expect {
	if r.file.Expect == nil {
		return Expect{}
	}
	return Expect{Metric: r.file.Expect.Metric, Value: r.file.Expect.Value, OnShortfall: r.file.Expect.OnShortfall}
}

// readFile reads a file that the campaign names.
func readFile(path string) ([]byte, error) { return os.ReadFile(path) }
