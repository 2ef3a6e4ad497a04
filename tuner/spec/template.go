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

// expand fills the placeholders of vars in one argument and leaves those of the
// runner, and escapes, as they are. Faults stand at the placeholder.
func (r *resolver) expand(scalar Scalar) string {
	var out strings.Builder
	rest, offset := scalar.Text, 0
	for {
		begin := strings.Index(rest, "${")
		if begin < 0 {
			out.WriteString(rest)
			return out.String()
		}
		if begin > 0 && rest[begin-1] == '$' {
			out.WriteString(rest[:begin+2])
			rest, offset = rest[begin+2:], offset+begin+2
			continue
		}
		at := Position{scalar.Line, scalar.Column + offset + begin}
		if scalar.Quoted {
			at.Column++
		}
		length := strings.IndexByte(rest[begin:], '}')
		if length < 0 {
			r.fault(at, "%q: \"${\" has no closing brace; write ${name}, or $${ for a literal \"${\"", scalar.Text)
			return scalar.Text
		}
		name := rest[begin+2 : begin+length]
		out.WriteString(rest[:begin])
		out.WriteString(r.placeholder(name, at))
		rest, offset = rest[begin+length+1:], offset+begin+length+1
	}
}

func (r *resolver) placeholder(name string, at Position) string {
	if value, ok := r.vars[name]; ok {
		return value
	}
	if slices.Contains(RunnerNames, name) {
		return "${" + name + "}"
	}
	known := slices.Concat(RunnerNames, r.varNames)
	if placeholderName.MatchString(name) {
		r.fault(at, "${%s} is not known: %s", name, suggestion(name, known))
	} else {
		r.fault(at, "${%s}: a placeholder is a name of letters, digits and underscores; write $${ for a literal \"${\"", name)
	}
	return ""
}
