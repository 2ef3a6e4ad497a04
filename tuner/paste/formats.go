package paste

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"nocturne/nccl"
)

// envFile writes NAME=value, all behind the equals sign being the value, as
// `docker run --env-file` reads it.
func envFile(s settings) (string, error) {
	var b strings.Builder
	b.WriteString(s.lacksArguments() + s.lacksRemoval() + s.filled())
	var lines strings.Builder
	plain := true
	for _, name := range s.names {
		value := s.env[name]
		if strings.ContainsAny(value, "\n\r") {
			return "", fmt.Errorf("the value of %s holds a line end, which this format cannot carry; use --format shell", name)
		}
		plain = plain && shellescape.Quote(value) == value
		fmt.Fprintf(&lines, "%s=%s\n", name, value)
	}
	if !plain {
		b.WriteString(comment("values are literal, for readers that take no quotes (docker run --env-file); for a shell use --format shell, for systemd --format systemd"))
	}
	return b.String() + lines.String(), nil
}

// shell writes a script for any POSIX shell, to be read by `.` or eval.
func shell(s settings) (string, error) {
	var b strings.Builder
	b.WriteString(s.filled())
	if len(s.unset) > 0 {
		fmt.Fprintf(&b, "unset %s\n", strings.Join(s.unset, " "))
	}
	for _, name := range s.names {
		fmt.Fprintf(&b, "export %s=%s\n", name, shellescape.Quote(s.env[name]))
	}
	if len(s.args) == 0 {
		return b.String(), nil
	}
	quoted := shellescape.QuoteCommand(s.args)
	use := "then start: COMMAND $NOCTURNE_ARGS"
	if quoted != strings.Join(s.args, " ") {
		use = `then start: eval "exec COMMAND $NOCTURNE_ARGS"`
	}
	b.WriteString(comment("%s", use))
	fmt.Fprintf(&b, "NOCTURNE_ARGS=%s\n", shellescape.Quote(quoted))
	return b.String(), nil
}

// arguments writes the arguments in one line, to be put behind the server's
// command.
func arguments(s settings) (string, error) {
	var b strings.Builder
	if len(s.names)+len(s.unset) > 0 {
		b.WriteString(comment("variables are not carried by this format; see --format env"))
	}
	b.WriteString(s.filled())
	if len(s.args) > 0 {
		b.WriteString(shellescape.QuoteCommand(s.args) + "\n")
	}
	return b.String(), nil
}

// systemd writes a drop-in. In unit files % introduces a specifier, and quotes,
// backslashes and control characters are escaped as in C; $ means nothing in
// Environment= (systemd.syntax, systemd.exec).
func systemd(s settings) (string, error) {
	var b strings.Builder
	b.WriteString(comment("save as /etc/systemd/system/UNIT.service.d/nocturne.conf, then: systemctl daemon-reload && systemctl restart UNIT"))
	b.WriteString(s.lacksArguments() + s.filled() + "[Service]\n")
	for _, name := range s.names {
		fmt.Fprintf(&b, "Environment=\"%s=%s\"\n", name, unitText(s.env[name]))
	}
	if len(s.unset) > 0 {
		fmt.Fprintf(&b, "UnsetEnvironment=%s\n", strings.Join(s.unset, " "))
	}
	return b.String(), nil
}

// unitText is a text within double quotes of a unit file.
func unitText(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\\' || c == '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '%':
			b.WriteString("%%")
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// docker writes a whole command. What an image sets itself cannot be removed by
// an option, so that is left to env.
func docker(s settings) (string, error) {
	var b strings.Builder
	b.WriteString(s.filled())
	b.WriteString(comment("put your options, image and command in place of OPTIONS, IMAGE and COMMAND"))
	b.WriteString("docker run OPTIONS \\\n")
	for _, name := range s.names {
		fmt.Fprintf(&b, "  -e %s \\\n", shellescape.Quote(name+"="+s.env[name]))
	}
	b.WriteString("  IMAGE")
	if len(s.unset) > 0 {
		b.WriteString(" env -u " + strings.Join(s.unset, " -u "))
	}
	b.WriteString(" COMMAND")
	if len(s.args) > 0 {
		b.WriteString(" \\\n  " + shellescape.QuoteCommand(s.args))
	}
	return b.String() + "\n", nil
}

// kubernetes writes a part of a container.
func kubernetes(s settings) (string, error) {
	var b strings.Builder
	b.WriteString(s.lacksRemoval() + s.filled())
	b.WriteString(comment("in the container of the pod template; add the args to those of the server"))
	if len(s.names) > 0 {
		b.WriteString("env:\n")
	}
	for _, name := range s.names {
		fmt.Fprintf(&b, "  - name: %s\n    value: %s\n", name, podText(s.env[name]))
	}
	if len(s.args) > 0 {
		b.WriteString("args:\n")
	}
	for _, argument := range s.args {
		fmt.Fprintf(&b, "  - %s\n", podText(argument))
	}
	return b.String(), nil
}

// podText is a text of a container. Kubernetes replaces $(NAME) in values and in
// arguments, and $$ by one $.
func podText(text string) string {
	if strings.Contains(text, "$(") || strings.Contains(text, "$$") {
		text = strings.ReplaceAll(text, "$", "$$")
	}
	return strconv.Quote(text)
}

// ncclConf writes NCCL's own file: NAME=VALUE, no blanks, comments from column
// one. It holds NCCL's variables only, and any variable of the environment
// wins over it.
func ncclConf(s settings) (string, error) {
	read := map[string]string{}
	var others []string
	for _, name := range s.names {
		if strings.HasPrefix(name, "NCCL_") {
			read[name] = s.env[name]
		} else {
			others = append(others, name+"="+s.env[name])
		}
	}
	var b strings.Builder
	b.WriteString(comment("for /etc/nccl.conf; a variable in the environment of the server wins over this file"))
	b.WriteString(s.lacksArguments() + s.lacksRemoval() + s.filled())
	if len(others) > 0 {
		slices.Sort(others)
		b.WriteString(comment("not read by NCCL, set in the environment: %s", shellescape.QuoteCommand(others)))
	}
	if err := nccl.WriteConf(&b, nil, read); err != nil {
		return "", err
	}
	return b.String(), nil
}
