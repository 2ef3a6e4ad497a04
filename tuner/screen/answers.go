package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/output"
)

// clock writes an instant in local time, to the minute.
func clock(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

// Campaigns lists campaigns.
func (p *Page) Campaigns(answer output.Campaigns) {
	if len(answer.Campaigns) == 0 {
		p.lines("no campaigns yet; `nocturne demo` runs one on a simulated server, `nocturne init` writes a campaign file")
		return
	}
	var rows [][]string
	for _, c := range answer.Campaigns {
		claim, gain := "-", "-"
		if c.Claim != nil {
			claim = *c.Claim
		}
		if c.Speedup != nil {
			gain = Ratio(*c.Speedup)
		}
		rows = append(rows, []string{c.Campaign, fmt.Sprint(c.Run), string(c.State), claim, gain, clock(c.Created), c.Model, c.Hardware})
	}
	p.table([]column{{head: "campaign"}, {head: "run", right: true}, {head: "state"}, {head: "claim"}, {head: "gain", right: true},
		{head: "begun"}, {head: "model"}, {head: "hardware"}}, rows)
	p.lines("", "more: nocturne show CAMPAIGN (a name means its latest run; NAME@RUN an earlier one)")
}

// Best lists best-known configurations.
func (p *Page) Best(answer output.Best) {
	for i, known := range answer.Best {
		if i > 0 {
			p.lines("")
		}
		p.best(known)
	}
	if len(answer.Best) > 0 {
		first := answer.Best[0]
		p.lines("", pasteLine(fmt.Sprintf("%s@%d", first.Campaign, first.Run), first.Confirmed))
	}
}

// pasteLine is the command that prints a campaign's best configuration ready to
// paste.
func pasteLine(campaign string, confirmed bool) string {
	flag := ""
	if !confirmed {
		flag = " --unconfirmed"
	}
	return fmt.Sprintf("paste it: nocturne best --campaign %s%s --format shell   (or env, args, systemd, docker, k8s, nccl.conf)", campaign, flag)
}

func (p *Page) best(known output.BestKnown) {
	head := Measure(known.Value, known.Objective.Metric)
	if known.Interval != nil {
		head += fmt.Sprintf(" [%s, %s]", Number(known.Interval[0]), Number(known.Interval[1]))
	}
	head += "  " + objectiveText(known.Objective)
	proof := "NOT confirmed by fresh launches"
	if known.Confirmed {
		proof = fmt.Sprintf("confirmed by %s", count(known.Launches, "fresh launch", "fresh launches"))
	}
	if known.Speedup != nil {
		head += ", gain " + Ratio(*known.Speedup)
	}
	p.lines(head+", "+proof, "  hardware  "+known.Hardware.Name)
	for _, field := range [][2]string{{"model", known.Model}, {"workload", known.Workload.Name}, {"stack", stackText(known.Stack)}} {
		if field[1] != "" {
			p.lines(fmt.Sprintf("  %-9s %s", field[0], field[1]))
		}
	}
	p.lines(fmt.Sprintf("  campaign  %s run %d, %s", known.Campaign, known.Run, clock(known.Time)))
	for i, line := range ConfigurationLines("", known.Configuration) {
		name := ""
		if i == 0 {
			name = "settings"
		}
		p.lines(fmt.Sprintf("  %-9s %s", name, line))
	}
}

// objectiveText names a metric with the load point at which it counts.
func objectiveText(objective output.Objective) string {
	text := objective.Metric
	if objective.At != nil {
		text += fmt.Sprintf(" at concurrency %d", *objective.At)
	}
	if objective.Aggregate != nil {
		text += " (" + *objective.Aggregate + " over the load points)"
	}
	return text
}

// stackText lists what is known of a stack.
func stackText(stack runners.Stack) string {
	var parts []string
	for _, field := range [][2]string{{"driver", stack.Driver}, {"CUDA", stack.CUDA}, {"NCCL", stack.NCCL},
		{"server", strings.TrimSpace(stack.Server + " " + stack.ServerVersion)}, {"kernel", stack.Kernel}} {
		if field[1] != "" {
			parts = append(parts, field[0]+" "+field[1])
		}
	}
	return strings.Join(parts, ", ")
}

// Compare shows a comparison.
func (p *Page) Compare(answer output.Compare) {
	for _, side := range []struct {
		name string
		side output.Side
	}{{"A", answer.A}, {"B", answer.B}} {
		p.lines(fmt.Sprintf("%s  %s run %d  %s", side.name, side.side.Campaign, side.side.Run, stackText(side.side.Stack)))
	}
	p.lines("")
	if len(answer.Differences) > 0 {
		var rows [][]string
		for _, difference := range answer.Differences {
			rows = append(rows, []string{difference.Field, orDash(difference.A), orDash(difference.B)})
		}
		p.table([]column{{head: "differs"}, {head: "A"}, {head: "B"}}, rows)
		p.lines("")
	}
	for _, reason := range answer.Reasons {
		p.lines(reason)
	}
	p.lines("attribution: "+answer.Attribution, "")
	p.pairs(answer)
}

func (p *Page) pairs(answer output.Compare) {
	if len(answer.Pairs) == 0 {
		p.lines("no configuration was measured on both sides: there is nothing to compare value by value")
		return
	}
	var rows [][]string
	for _, pair := range answer.Pairs {
		interval := "-"
		if pair.Interval != nil {
			interval = Ratio(pair.Interval[0]) + " to " + Ratio(pair.Interval[1])
		}
		metric := answer.A.Objective.Metric
		rows = append(rows, []string{measureOrDash(pair.A.Value, metric), measureOrDash(pair.B.Value, metric), Ratio(pair.Ratio), interval,
			pair.Verdict, strings.Join(ConfigurationLines("", pair.Configuration), " ")})
	}
	p.table([]column{{head: "A", right: true}, {head: "B", right: true}, {head: "B over A", right: true}, {head: "95 % interval"},
		{head: "verdict"}, {head: "settings"}}, rows)
	p.lines("", "B over A is a gain above 0 %, also where smaller values are better")
}

// Validate shows what a campaign file means and what fits into its time.
func (p *Page) Validate(answer output.Validate) {
	about := ""
	if !answer.Exact {
		about = "about "
	}
	p.lines(fmt.Sprintf("campaign %s: %s %s", answer.Campaign, answer.Objective.Direction, objectiveText(answer.Objective)), "")
	var rows [][]string
	for _, knob := range answer.Knobs {
		levels := make([]string, len(knob.Values))
		for i, value := range knob.Values {
			levels[i] = value.String()
		}
		rows = append(rows, []string{knob.Knob, string(knob.Kind), knob.Default.String(), knob.When, strings.Join(levels, " ")})
	}
	p.table([]column{{head: "knob"}, {head: "kind"}, {head: "baseline"}, {head: "matters when"}, {head: "values"}}, rows)
	p.lines("", fmt.Sprintf("%s%s distinct configurations, sampler %s", about, thousands(answer.Configurations), answer.Sampler),
		"baseline "+answer.Baseline.Hash)
	p.lines(ConfigurationLines("  ", answer.Baseline)...)
	var limits []string
	for _, name := range slices.Sorted(maps.Keys(answer.TimeoutsS)) {
		limits = append(limits, name+" "+Seconds(answer.TimeoutsS[name]))
	}
	p.lines("timeouts "+strings.Join(limits, ", "), "")
	p.lines(PlanLines(answer.Plan)...)
	for _, start := range answer.Starts {
		p.lines("early    "+start.Reason, "         "+start.Values.String())
	}
}

// Render shows the exact launch of a configuration. What is no argument and no
// variable is a comment.
func (p *Page) Render(answer output.Render) {
	p.lines("# configuration " + answer.Configuration.Hash)
	if answer.Configuration.EquivalentTo != nil {
		p.lines("# NCCL makes it the same as " + *answer.Configuration.EquivalentTo)
	}
	p.lines("# arguments, one a line; ${...} is filled in at launch")
	for _, argument := range answer.Args {
		p.printf("%s\n", argument) // as it is: blanks at its end belong to it
	}
	p.lines("# environment, beside a short allowlist of inherited variables")
	for _, name := range slices.Sorted(maps.Keys(answer.Env)) {
		p.printf("%s=%s\n", name, answer.Env[name])
	}
	for _, name := range answer.Secrets {
		p.lines(name + "=(secret, read at launch)")
	}
	if len(answer.Removed) > 0 {
		p.lines("# removed, whatever the environment says")
		p.lines(answer.Removed...)
	}
}

// Fingerprint shows a machine.
func (p *Page) Fingerprint(found output.Fingerprint) {
	hardware := found.Hardware
	p.lines(hardware.Name, "  key       "+hardware.Key, "  instance  "+hardware.Instance,
		fmt.Sprintf("  CPU       %s, %s, %s", hardware.CPU, count(hardware.Sockets, "socket", "sockets"), count(hardware.NUMANodes, "NUMA node", "NUMA nodes")),
		fmt.Sprintf("  memory    %.0f GiB", float64(hardware.MemoryMiB)/1024))
	for _, gpu := range hardware.GPUs {
		p.lines(fmt.Sprintf("  GPU %-5d %s, %.0f GiB, %s", gpu.Index, gpu.Name, float64(gpu.MemoryMiB)/1024, gpu.UUID))
	}
	p.lines("  stack     " + stackText(found.Stack))
	for _, name := range slices.Sorted(maps.Keys(found.Settings)) {
		if value := found.Settings[name]; value != "" {
			p.lines(fmt.Sprintf("  %-28s %s", name, value))
		}
	}
	for _, what := range found.Unreadable {
		p.lines("  not readable: " + what)
	}
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Status shows a store.
func (p *Page) Status(status store.Status) {
	p.lines(fmt.Sprintf("%s at %s", status.Engine, status.Location))
	switch {
	case status.Version == status.Known:
		p.lines(fmt.Sprintf("schema version %d, up to date", status.Version))
	case status.Version < status.Known:
		p.lines(fmt.Sprintf("schema version %d, this program needs %d: run `nocturne db migrate`", status.Version, status.Known))
	default:
		p.lines(fmt.Sprintf("schema version %d, this program knows %d: use a newer nocturne", status.Version, status.Known))
	}
	for _, warning := range status.Warnings {
		p.lines("warning: " + warning)
	}
}

// Moved says what was added to a store.
func (p *Page) Moved(moved output.Moved) {
	p.lines(fmt.Sprintf("%s added, %d were there already", count(moved.Added, "campaign", "campaigns"), moved.Known))
}
