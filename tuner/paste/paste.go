// Package paste writes a best-known configuration in a form that can be pasted
// where servers are started, so that a winner survives the night and the next
// reboot.
//
// Every format is one complete answer: a comment says where it comes from, and
// what the format cannot carry is said in a comment of it. What a store says may
// come from another machine, so nothing of it leaves its comment or its quotes.
package paste

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"nocturne/tuner/output"
)

// writers make the text of each format below the header. json is written by
// the caller, as a document.
var writers = map[string]func(settings) (string, error){
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
	s, err := settingsOf(known)
	if err != nil {
		return "", err
	}
	text, err := write(s)
	if err != nil {
		return "", fmt.Errorf("format %s: %w", format, err)
	}
	return header(known) + text, nil
}

func header(known output.BestKnown) string {
	claim := "not confirmed by fresh launches"
	if known.Confirmed {
		claim = fmt.Sprintf("confirmed by %d fresh launches", known.Launches)
	}
	return comment("nocturne: campaign %s run %d (%s), %s", known.Campaign, known.Run, known.CampaignID, known.Time.UTC().Format(time.DateOnly)) +
		comment("%s %.4g, %s", known.Objective.Metric, known.Value, claim) +
		comment("hardware %s (%s)", known.Hardware.Name, known.Hardware.Key) +
		comment("driver %s, NCCL %s, server %s, model %s", word(known.Stack.Driver), word(known.Stack.NCCL),
			word(strings.TrimSpace(known.Stack.Server+" "+known.Stack.ServerVersion)), word(known.Model))
}

func word(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// comment is one line of a comment; line ends and other control characters of
// the text would leave it.
func comment(format string, args ...any) string {
	return "# " + strings.Map(printable, fmt.Sprintf(format, args...)) + "\n"
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
		return ' '
	}
	return r
}

// settings are what a configuration sets, in a fixed order.
type settings struct {
	names []string
	env   map[string]string
	unset []string
	args  []string
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// settingsOf checks that the names of variables are names, so that they need no
// quotes anywhere.
func settingsOf(known output.BestKnown) (settings, error) {
	c := known.Configuration
	s := settings{names: slices.Sorted(maps.Keys(c.Env)), env: c.Env, unset: slices.Sorted(slices.Values(c.Unset)), args: c.Args}
	for _, name := range slices.Concat(s.names, s.unset) {
		if !variableName.MatchString(name) {
			return settings{}, fmt.Errorf("campaign %s: %q is not a variable's name and is not written", known.Campaign, name)
		}
	}
	for name, value := range s.env {
		if strings.ContainsRune(value, 0) {
			return settings{}, fmt.Errorf("campaign %s: the value of %s holds a NUL, which no environment takes", known.Campaign, name)
		}
	}
	return s, nil
}

// lacksArguments says in a comment what a format of variables cannot carry.
func (s settings) lacksArguments() string {
	if len(s.args) == 0 {
		return ""
	}
	return comment("not carried by this format, add to the server's command: %s", shellescape.QuoteCommand(s.args))
}

// lacksRemoval names the variables that must not be set.
func (s settings) lacksRemoval() string {
	if len(s.unset) == 0 {
		return ""
	}
	return comment("must not be set: %s", strings.Join(s.unset, " "))
}

// filled warns of texts that Nocturne fills at launch.
func (s settings) filled() string {
	for _, text := range slices.Concat(s.args, slices.Collect(maps.Values(s.env))) {
		for _, name := range []string{"port", "host", "trial_dir", "nocturne"} {
			if strings.Contains(text, "${"+name+"}") {
				return comment("${port}, ${host}, ${trial_dir} and ${nocturne} were filled at each launch; put your own there")
			}
		}
	}
	return ""
}
