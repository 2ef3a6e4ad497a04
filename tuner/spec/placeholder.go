package spec

import (
	"regexp"
	"slices"
	"strings"
)

// RunnerNames are the placeholders that the host fills at launch; ${name} of
// `vars` is filled when the file is read. $${ stands for a literal ${.
var RunnerNames = []string{"port", "host", "trial_dir", "nocturne"}

var placeholderName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readVars reads the names that people define. A value may use the names above
// it and what the host fills.
func (r *resolver) readVars() {
	for _, entry := range present(&r.collector, r.file.Vars) {
		switch {
		case !placeholderName.MatchString(entry.Key) || slices.Contains(RunnerNames, entry.Key):
			r.fault(entry.At, "vars: %q: want a name of letters, digits and underscores other than %s", entry.Key, strings.Join(RunnerNames, ", "))
		case secretName(entry.Key):
			r.fault(entry.At, "vars: %s is a secret by its name, and the file is stored; give it by server.env as {from_env: NAME} or {from_file: PATH}", entry.Key)
		case !entry.Value.ambiguous(&r.collector):
			r.vars[entry.Key] = r.launchText(entry.Value)
			r.varNames = append(r.varNames, entry.Key)
		}
	}
}

// launchText fills the placeholders of vars in a text that is part of a launch,
// and leaves those that the host fills, and escapes, as they are. Faults stand
// at the placeholder.
func (r *resolver) launchText(value scalar) string {
	return r.fill(value, func(name string, at Position) string {
		if filled, ok := r.vars[name]; ok {
			return filled
		}
		if slices.Contains(RunnerNames, name) {
			return "${" + name + "}"
		}
		r.unknownPlaceholder(name, at)
		return ""
	})
}

// plainText fills the placeholders of vars in a text that is no part of a
// launch, where the host has nothing to fill.
func (r *resolver) plainText(value scalar) string {
	filled := r.fill(value, func(name string, at Position) string {
		text, ok := r.vars[name]
		switch {
		case ok && strings.Contains(strings.ReplaceAll(text, "$${", ""), "${"):
			r.fault(at, "${%s} holds %s, which is filled at launch only; it cannot stand here", name, text)
		case !ok && slices.Contains(RunnerNames, name):
			r.fault(at, "${%s} is filled at launch only; it cannot stand here", name)
		case !ok:
			r.unknownPlaceholder(name, at)
		}
		return text
	})
	return unescape(filled)
}

// unescape turns $${ into ${.
func unescape(text string) string { return strings.ReplaceAll(text, "$${", "${") }

// escapedName is a literal ${name}.
var escapedName = regexp.MustCompile(`\$\$\{([A-Za-z0-9_]*)`)

// forHost is a text as the host takes it: it replaces its own names and nothing
// else, so that only those need their escape.
func forHost(text string) string {
	return escapedName.ReplaceAllStringFunc(text, func(escaped string) string {
		if slices.Contains(RunnerNames, escaped[len("$${"):]) {
			return escaped
		}
		return escaped[1:]
	})
}

func (r *resolver) unknownPlaceholder(name string, at Position) {
	if placeholderName.MatchString(name) {
		r.fault(at, "${%s} is not known: %s; or write $${%s} for a literal \"${%s}\"", name, suggestion(name, slices.Concat(RunnerNames, r.varNames)), name, name)
		return
	}
	r.fault(at, "\"${%s}\": a placeholder is a name of letters, digits and underscores; write $${ for a literal \"${\"", name)
}

// fill replaces each placeholder in a value by what with returns.
func (r *resolver) fill(value scalar, with func(name string, at Position) string) string {
	var out strings.Builder
	for offset := 0; ; {
		rest := value.Text[offset:]
		begin := strings.Index(rest, "${")
		if begin < 0 || r.full() {
			out.WriteString(rest)
			return out.String()
		}
		if begin > 0 && rest[begin-1] == '$' {
			out.WriteString(rest[:begin+2])
			offset += begin + 2
			continue
		}
		at := r.source.inside(value, offset+begin)
		name, _, closed := strings.Cut(rest[begin+2:], "}")
		if !closed {
			r.fault(at, "%q has no closing brace; write ${name}, or $${ for a literal \"${\"", excerptText(rest[begin:]))
			return value.Text
		}
		out.WriteString(rest[:begin])
		out.WriteString(with(name, at))
		offset += begin + len("${") + len(name) + len("}")
	}
}

// excerptText is the beginning of a text for a message.
func excerptText(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "..."
	}
	return text
}
