// Package paste writes a best-known configuration in a form that can be pasted
// where servers are started, so that a winner survives the night and the next
// reboot.
package paste

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"nocturne/tuner/output"
)

// writers make the text of each format below the header. json is written by
// the caller, as a document.
var writers = map[string]func(output.BestKnown) string{
	"env":       envFile,
	"shell":     shell,
	"json":      nil,
	"args":      arguments,
	"systemd":   systemd,
	"docker":    docker,
	"k8s":       kubernetes,
	"nccl.conf": ncclConf,
}

// Formats lists the words of --format.
func Formats() []string {
	return []string{"env", "shell", "json", "args", "systemd", "docker", "k8s", "nccl.conf"}
}

// Known reports whether a format exists.
func Known(format string) bool { _, known := writers[format]; return known }

// Write returns one complete answer: a comment that says where it comes from
// and what the format cannot carry, and the settings.
func Write(known output.BestKnown, format string) (string, error) {
	write := writers[format]
	if write == nil {
		return "", fmt.Errorf("format %q has no text form", format)
	}
	return header(known) + write(known), nil
}

func header(known output.BestKnown) string {
	claim := "not confirmed by fresh launches"
	if known.Confirmed {
		claim = fmt.Sprintf("confirmed by %d fresh launches", known.Launches)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# nocturne: campaign %s run %d (%s), %s\n", known.Campaign, known.Run, known.CampaignID, known.Time.UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "# %s %.4g, %s\n", known.Objective.Metric, known.Value, claim)
	fmt.Fprintf(&b, "# hardware %s (%s)\n", known.Hardware.Name, known.Hardware.Key)
	fmt.Fprintf(&b, "# driver %s, NCCL %s, server %s %s, model %s\n", word(known.Stack.Driver), word(known.Stack.NCCL), word(known.Stack.Server), known.Stack.ServerVersion, known.Model)
	return b.String()
}

func word(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func names(known output.BestKnown) []string {
	return slices.Sorted(maps.Keys(known.Configuration.Env))
}

// lacksArguments says in a comment what a format of variables cannot carry.
func lacksArguments(known output.BestKnown) string {
	if len(known.Configuration.Args) == 0 {
		return ""
	}
	return "# not carried by this format, add to the server's command: " + shellescape.QuoteCommand(known.Configuration.Args) + "\n"
}

// lacksRemoval names the variables that must not be set.
func lacksRemoval(known output.BestKnown) string {
	if len(known.Configuration.Unset) == 0 {
		return ""
	}
	return "# must not be set: " + strings.Join(known.Configuration.Unset, " ") + "\n"
}

func envFile(known output.BestKnown) string {
	var b strings.Builder
	b.WriteString(lacksArguments(known) + lacksRemoval(known))
	for _, name := range names(known) {
		fmt.Fprintf(&b, "%s=%s\n", name, known.Configuration.Env[name])
	}
	return b.String()
}

func shell(known output.BestKnown) string {
	var b strings.Builder
	if len(known.Configuration.Unset) > 0 {
		fmt.Fprintf(&b, "unset %s\n", strings.Join(known.Configuration.Unset, " "))
	}
	for _, name := range names(known) {
		fmt.Fprintf(&b, "export %s=%s\n", name, shellescape.Quote(known.Configuration.Env[name]))
	}
	if len(known.Configuration.Args) > 0 {
		fmt.Fprintf(&b, "# append to the server's command:\nNOCTURNE_ARGS=(%s)\n", shellescape.QuoteCommand(known.Configuration.Args))
	}
	return b.String()
}

func arguments(known output.BestKnown) string {
	var b strings.Builder
	if len(known.Configuration.Env) > 0 || len(known.Configuration.Unset) > 0 {
		b.WriteString("# variables are not carried by this format; see --format env\n")
	}
	for _, argument := range known.Configuration.Args {
		fmt.Fprintln(&b, shellescape.Quote(argument))
	}
	return b.String()
}

// systemd writes a drop-in. In unit files % introduces a specifier, and quotes
// and backslashes are escaped as in C (systemd.exec, Environment=).
func systemd(known output.BestKnown) string {
	var b strings.Builder
	b.WriteString("# save as /etc/systemd/system/UNIT.service.d/nocturne.conf, then: systemctl daemon-reload && systemctl restart UNIT\n")
	b.WriteString(lacksArguments(known) + "[Service]\n")
	for _, name := range names(known) {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(known.Configuration.Env[name])
		fmt.Fprintf(&b, "Environment=\"%s=%s\"\n", name, value)
	}
	if len(known.Configuration.Unset) > 0 {
		fmt.Fprintf(&b, "UnsetEnvironment=%s\n", strings.Join(known.Configuration.Unset, " "))
	}
	return b.String()
}

func docker(known output.BestKnown) string {
	var b strings.Builder
	b.WriteString(lacksRemoval(known) + "# options of `docker run`, before the image:\n")
	for _, name := range names(known) {
		fmt.Fprintf(&b, "  -e %s \\\n", shellescape.Quote(name+"="+known.Configuration.Env[name]))
	}
	if len(known.Configuration.Args) > 0 {
		fmt.Fprintf(&b, "# after the image, at the end of the server's command:\n  %s\n", shellescape.QuoteCommand(known.Configuration.Args))
	}
	return b.String()
}

func kubernetes(known output.BestKnown) string {
	var b strings.Builder
	b.WriteString(lacksRemoval(known) + "# in the container of the pod template:\nenv:\n")
	for _, name := range names(known) {
		fmt.Fprintf(&b, "  - name: %s\n    value: %q\n", name, known.Configuration.Env[name])
	}
	if len(known.Configuration.Args) > 0 {
		b.WriteString("args: # appended to those of the server\n")
		for _, argument := range known.Configuration.Args {
			fmt.Fprintf(&b, "  - %q\n", argument)
		}
	}
	return b.String()
}

// ncclConf writes NCCL's own file: NAME=VALUE, no blanks, comments from column
// one. It holds NCCL's variables only, and any variable of the environment
// wins over it.
func ncclConf(known output.BestKnown) string {
	var b strings.Builder
	b.WriteString("# for /etc/nccl.conf; a variable in the environment of the server wins over this file\n")
	b.WriteString(lacksArguments(known) + lacksRemoval(known))
	var others []string
	for _, name := range names(known) {
		if strings.HasPrefix(name, "NCCL_") {
			fmt.Fprintf(&b, "%s=%s\n", name, known.Configuration.Env[name])
		} else {
			others = append(others, name+"="+known.Configuration.Env[name])
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, "# not read by NCCL, set in the environment: %s\n", strings.Join(others, " "))
	}
	return b.String()
}
