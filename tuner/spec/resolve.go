package spec

import (
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

// Options of Parse. The zero value assumes nothing about the machine.
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
	claims   claims

	knobs       []search.Knob
	bindings    map[string]binding
	conditions  []pendingCondition
	faulty      map[string]bool // knobs whose levels are not known, because of faults
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
	return ParseStored(path, directory, text, options)
}

// ParseStored reads the text of a campaign that was stored, whose relative
// paths start from directory. The name stands in faults.
func ParseStored(name, directory string, text []byte, options Options) (*Campaign, []Warning, error) {
	content := strings.TrimPrefix(string(text), "\ufeff")
	r := &resolver{
		collector: collector{name: name, source: newSource(content)}, directory: directory, facts: options.Facts,
		vars: map[string]string{}, claims: newClaims(), bindings: map[string]binding{}, faulty: map[string]bool{},
	}
	decoder := decoder{collector: &r.collector}
	decoder.decode(content, &r.file)
	var campaign *Campaign
	if r.file.Where.read() {
		campaign = r.resolve(options)
		campaign.File, campaign.Directory = string(text), directory
	}
	faults, warnings := r.result()
	if len(faults) > 0 {
		return nil, warnings, faults
	}
	return campaign, warnings, nil
}

var campaignName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (r *resolver) resolve(options Options) *Campaign {
	r.required()
	r.readVars()
	r.presets()
	campaign := &Campaign{Name: r.campaignName(), Host: r.host(options), GPUs: runners.GPUSelection{All: true}}
	if g := r.file.GPUs; g != nil {
		campaign.GPUs = runners.GPUSelection{All: g.All, Indices: g.Indices}
	}
	r.server()
	campaign.Kind = r.launch.kind
	campaign.Model = r.modelLabel()
	campaign.Expect = r.expect()
	campaign.ServingScale = r.servingScale()
	campaign.Timeouts = r.timeouts()
	campaign.Workload = r.workload()
	campaign.Command = r.commandOutput()
	campaign.Objective = r.objective(campaign.Workload, campaign.Command)
	r.buildSpace()
	r.search(campaign)
	campaign.Budget = r.budget(options)
	campaign.Confirm = r.confirm()
	campaign.MinimalEffect = r.fraction("minimal_effect", r.file.MinimalEffect, 0.01)
	campaign.Seed = r.seed()
	r.launch.bindings, r.launch.speculation, r.launch.knobs = r.bindings, r.speculation, r.knobs
	r.launch.limits = r.forcedLimits(campaign.Workload)
	campaign.launch, campaign.facts = r.launch, r.facts
	r.references(campaign)
	return campaign
}

// required reports keys that must be there.
func (r *resolver) required() {
	for _, key := range []string{"campaign", "server", "workload", "objective", "space", "budget"} {
		if !r.file.Where.has(key) {
			r.fault(r.file.Where.Begin, "the key %q is missing; required are campaign, server, workload, objective, space and budget", key)
		}
	}
}

func (r *resolver) campaignName() string {
	if r.file.Campaign == nil {
		return ""
	}
	name := r.plainText(r.file.Campaign.scalar)
	if !campaignName.MatchString(name) {
		r.fault(r.file.Campaign.Position, "campaign: %q: want up to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit", name)
	}
	return name
}

func (r *resolver) host(options Options) string {
	host := options.Host
	if host == "" {
		host = r.label(r.file.Host)
	}
	if host == "" {
		return "local"
	}
	if host != "local" {
		r.fault(r.file.Where.of("host"), "host: %q: this version runs trials on the local host only; write local", host)
	}
	return host
}

// label is the text of a key that is no part of a launch; empty without it.
func (r *resolver) label(value *text) string {
	if value == nil {
		return ""
	}
	return r.plainText(value.scalar)
}

// argument is the text of a key that reaches the launch; empty without it.
func (r *resolver) argument(value *text) string {
	if value == nil {
		return ""
	}
	return r.launchText(value.scalar)
}

// word is the text of a key that takes one of a few words.
func (r *resolver) word(key string, value *text, usual string, allowed []string) string {
	if value == nil {
		return usual
	}
	word := r.plainText(value.scalar)
	if !slices.Contains(allowed, word) {
		r.fault(value.Position, "%s: %q is not known: %s", key, word, suggestion(word, allowed))
		return usual
	}
	return word
}

// path is the text of a key that names a file, made absolute.
func (r *resolver) path(value *text) string {
	path := r.label(value)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.directory, path)
}

// search reads how configurations are proposed.
func (r *resolver) search(campaign *Campaign) {
	file := r.file.Search
	campaign.Sampler = r.word("search.sampler", file.Sampler, "auto", search.Names())
	campaign.StopSettled = r.word("search.stop", file.Stop, stopBudget, stops) == stopSettled
	campaign.History = file.History == nil || *file.History
	campaign.Recipes = file.Recipes == nil || *file.Recipes
}

// The words of search.stop.
const stopBudget, stopSettled = "budget", "settled"

var stops = []string{stopBudget, stopSettled}

// expect checks the metric of an expectation; its shape was read.
func (r *resolver) expect() Expect {
	file := r.file.Expect
	if file == nil || file.Metric == "" {
		return Expect{}
	}
	r.metric(file.Metric, file.At)
	return Expect{Metric: file.Metric, Value: file.Value, OnShortfall: file.OnShortfall}
}

// configuration reads a mapping of knobs to values, such as `current` or one
// of `try`, and fills in the defaults.
func (r *resolver) configuration(what string, file section[scalar]) search.Values {
	entries := present(&r.collector, file)
	if len(entries) == 0 || r.space == nil {
		return nil
	}
	partial, legal := search.Values{}, len(entries) == len(file.Entries)
	for _, entry := range entries {
		id, value, ok := r.setting(what, entry)
		if ok {
			_, twice := partial[id]
			if twice {
				r.fault(entry.At, "%s: %s is named here a second time, in another spelling", what, id)
			}
			ok = !twice
		}
		if !ok {
			legal = false
			continue
		}
		partial[id] = value
	}
	if !legal {
		return nil
	}
	return r.complete(what, entries, partial)
}

// setting reads one knob of a configuration with its value.
func (r *resolver) setting(what string, entry entry[scalar]) (id string, value search.Value, ok bool) {
	id = entry.Key
	if strings.HasPrefix(id, "-") {
		id = FlagID(id)
	}
	knob, known := r.space.Knob(id)
	if !known {
		r.fault(entry.At, "%s: %q is not a knob of this space: %s", what, entry.Key, suggestion(entry.Key, r.knobIDs()))
		return id, value, false
	}
	if r.faulty[id] {
		return id, value, false // its values are not known
	}
	value, ok = r.knobValue(what, "; add it to the space to have it measured", knob, entry.Value)
	return id, value, ok
}

// complete fills in the defaults and checks the whole.
func (r *resolver) complete(what string, entries []entry[scalar], partial search.Values) search.Values {
	whole, err := r.space.Complete(partial)
	if err == nil {
		err = r.space.Check(whole)
	}
	if err != nil {
		r.fault(r.blame(entries, err), "%s: %v", what, err)
		return nil
	}
	for _, entry := range entries {
		id := entry.Key
		if strings.HasPrefix(id, "-") {
			id = FlagID(id)
		}
		if _, active := whole[id]; !active {
			knob, _ := r.space.Knob(id)
			r.warn(entry.At, "%s: %s plays no part here: it matters only when %s", what, id, knob.When)
		}
	}
	return whole
}

// blame is the place of the first entry that a rejecting constraint speaks of.
func (r *resolver) blame(entries []entry[scalar], err error) Position {
	for _, rejected := range find[*search.RejectedError](err) {
		for _, entry := range entries {
			if _, mentioned := rejected.Values[entry.Key]; mentioned {
				return entry.At
			}
		}
	}
	return entries[0].At
}

func (r *resolver) knobIDs() []string {
	ids := make([]string, len(r.knobs))
	for i, knob := range r.knobs {
		ids[i] = knob.ID
	}
	return ids
}

// references reads what is measured before the search, and checks it.
func (r *resolver) references(campaign *Campaign) {
	if r.space == nil {
		return
	}
	campaign.Space, campaign.Baseline = r.space, r.space.Default()
	if current := r.file.Current; current.Begin.Line > 0 && len(current.Entries) == 0 {
		r.fault(current.Begin, "current names no knob; leave it out where production runs the baseline")
	}
	campaign.Current = r.configuration("current", r.file.Current)
	for i, file := range r.file.Try {
		what := "try[" + strconv.Itoa(i) + "]"
		if len(file.Entries) == 0 {
			r.fault(file.Begin, "%s is empty; the baseline is measured anyway", what)
		}
		if hint := r.configuration(what, file); hint != nil {
			campaign.Hints = append(campaign.Hints, hint)
		}
	}
	r.checkLaunches(campaign)
}

func (r *resolver) serverKind() *servers.Kind {
	kind, err := servers.Get(r.launch.kind)
	if err != nil {
		return nil // a command, or a kind whose fault has been told
	}
	return kind
}
