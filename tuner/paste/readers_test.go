package paste_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	yaml "github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"nocturne/nccl"
	"nocturne/store"
	"nocturne/tuner/paste"
)

func drawConfiguration(r *rapid.T, lineEnds bool) store.Configuration {
	text := rapid.StringOf(rapid.RuneFrom([]rune("aZ09 ,;:^=%$'\"\\`(){}[]<>|&*?!#~/-_.é✓\t")))
	if lineEnds {
		text = rapid.StringOf(rapid.RuneFrom([]rune("aZ09 ,;:^=%$'\"\\`(){}[]<>|&*?!#~/-_.é✓\t\n")))
	}
	c := store.Configuration{Env: map[string]string{}}
	for _, name := range []string{"NCCL_ALGO", "A", "B_2"} {
		if rapid.Bool().Draw(r, name) {
			c.Env[name] = text.Draw(r, name+" value")
		}
	}
	if rapid.Bool().Draw(r, "unset") {
		c.Unset = []string{"GONE", "GONE_TOO"}
	}
	c.Args = rapid.SliceOfN(text, 0, 4).Draw(r, "args")
	return c
}

// A real shell that reads the script has the variables, lacks the removed ones
// and gets the arguments one by one.
func TestShellsReadTheScript(t *testing.T) {
	for _, name := range []string{"sh", "bash"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("%v: the test needs %s", err, name)
		}
		for _, configuration := range configurations {
			checkShell(t, path, configuration)
		}
		rapid.Check(t, func(r *rapid.T) { checkShell(r, path, drawConfiguration(r, true)) })
	}
}

// fataler is what a test and a property share.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// probe prints what the script left, NUL between the parts.
const probe = `
. "$1"
for name in GONE GONE_TOO NCCL_NTHREADS; do eval "test -z \"\${$name+x}\"" || printf 'set:%s\0' "$name"; done
eval "set -- $NOCTURNE_ARGS"
printf 'arg:%s\0' "$@"
env -0
`

func checkShell(t fataler, shell string, c store.Configuration) {
	text, err := paste.Write(known(c), "shell")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp("", "paste-*.sh")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(shell, "-c", probe, "probe", file.Name())
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "GONE=1", "GONE_TOO=1", "NCCL_NTHREADS=1"}
	got, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, text)
	}
	var args []string
	env := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimSuffix(string(got), "\x00"), "\x00") {
		if arg, ok := strings.CutPrefix(part, "arg:"); ok {
			args = append(args, arg)
		} else if name, value, ok := strings.Cut(part, "="); ok {
			env[name] = value
		}
	}
	want := c.Args
	if len(want) == 0 {
		want = []string{""} // printf without arguments
	}
	if !slices.Equal(args, want) {
		t.Fatalf("%s: arguments %q, want %q\n%s", shell, args, want, text)
	}
	for name, value := range c.Env {
		if env[name] != value {
			t.Fatalf("%s: %s is %q, want %q\n%s", shell, name, env[name], value, text)
		}
	}
	for _, name := range c.Unset {
		if _, set := env[name]; set {
			t.Fatalf("%s: %s is still set\n%s", shell, name, text)
		}
	}
}

// The docker command is what a shell makes of it: docker itself is a function
// that shows its arguments.
func TestDockerCommand(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawConfiguration(r, true)
		text, err := paste.Write(known(c), "docker")
		if err != nil {
			r.Fatal(err)
		}
		got, err := exec.Command("sh", "-c", "docker() { printf '%s\\0' \"$@\"; }\n"+text).Output()
		if err != nil {
			r.Fatalf("%v\n%s", err, text)
		}
		want := []string{"run", "OPTIONS"}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			want = append(want, "-e", name+"="+c.Env[name])
		}
		want = append(want, "IMAGE")
		if len(c.Unset) > 0 {
			want = append(want, "env", "-u", "GONE", "-u", "GONE_TOO")
		}
		want = append(append(want, "COMMAND"), c.Args...)
		if found := strings.Split(strings.TrimSuffix(string(got), "\x00"), "\x00"); !slices.Equal(found, want) {
			r.Fatalf("got %q, want %q", found, want)
		}
	})
}

// The arguments are one line that a shell splits into what was measured.
func TestArguments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawConfiguration(r, false)
		text, err := paste.Write(known(c), "args")
		if err != nil {
			r.Fatal(err)
		}
		var line string
		for candidate := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if !strings.HasPrefix(candidate, "# ") {
				line = candidate
			}
		}
		got, err := exec.Command("sh", "-c", "printf 'arg:%s\\0' "+line).Output()
		if err != nil {
			r.Fatalf("%v\n%s", err, text)
		}
		var args []string
		for part := range strings.SplitSeq(strings.TrimSuffix(string(got), "\x00"), "\x00") {
			args = append(args, strings.TrimPrefix(part, "arg:"))
		}
		if len(c.Args) > 0 && !slices.Equal(args, c.Args) {
			r.Fatalf("got %q, want %q", args, c.Args)
		}
	})
}

// A pod reads the values and arguments as they were measured, once YAML and the
// references of Kubernetes have been resolved.
func TestKubernetes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawConfiguration(r, true)
		text, err := paste.Write(known(c), "k8s")
		if err != nil {
			r.Fatal(err)
		}
		var container struct {
			Env []struct {
				Name, Value string
			}
			Args []string
		}
		if err := yaml.UnmarshalWithOptions([]byte(text), &container, yaml.DisallowUnknownField()); err != nil {
			r.Fatalf("%v\n%s", err, text)
		}
		env := map[string]string{}
		for _, variable := range container.Env {
			env[variable.Name] = expandReferences(variable.Value)
		}
		for i := range container.Args {
			container.Args[i] = expandReferences(container.Args[i])
		}
		if !maps.Equal(env, c.Env) || !slices.Equal(container.Args, c.Args) {
			r.Fatalf("got %q %q, want %q %q", env, container.Args, c.Env, c.Args)
		}
	})
}

// expandReferences is what Kubernetes does with $(NAME) of unknown names (they
// stay) and $$ (one $), in third_party/forked/golang/expansion.
func expandReferences(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '$' && i+1 < len(text) && text[i+1] == '$' {
			out.WriteByte('$')
			i++
			continue
		}
		if text[i] == '$' && i+1 < len(text) && text[i+1] == '(' && strings.Contains(text[i:], ")") {
			out.WriteString("EXPANDED")
			i += strings.IndexByte(text[i:], ')')
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// A unit has the variables as they were measured.
func TestSystemd(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawConfiguration(r, true)
		text, err := paste.Write(known(c), "systemd")
		if err != nil {
			r.Fatal(err)
		}
		env, unset := map[string]string{}, []string(nil)
		for line := range strings.SplitSeq(text, "\n") {
			switch key, value, _ := strings.Cut(line, "="); key {
			case "Environment":
				name, value, ok := strings.Cut(unitWord(r, value), "=")
				if !ok {
					r.Fatalf("no assignment: %s", line)
				}
				env[name] = value
			case "UnsetEnvironment":
				unset = strings.Fields(value)
			}
		}
		if !maps.Equal(env, c.Env) || !slices.Equal(unset, c.Unset) {
			r.Fatalf("got %q %q, want %q %q\n%s", env, unset, c.Env, c.Unset, text)
		}
	})
}

// unitWord reads one quoted word as systemd.syntax says: C escapes, and then
// %% for a percent sign.
func unitWord(r *rapid.T, quoted string) string {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		r.Fatalf("not quoted: %s", quoted)
	}
	inner := quoted[1 : len(quoted)-1]
	var out strings.Builder
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '"':
			r.Fatalf("a quote ends the word early: %s", quoted)
		case inner[i] != '\\':
			out.WriteByte(inner[i])
		case inner[i+1] == 'x':
			code, err := strconv.ParseUint(inner[i+2:i+4], 16, 8)
			if err != nil {
				r.Fatal(err)
			}
			out.WriteByte(byte(code))
			i += 3
		default:
			i++
			out.WriteByte(inner[i])
		}
	}
	text := out.String()
	if strings.Contains(strings.ReplaceAll(text, "%%", ""), "%") {
		r.Fatalf("a specifier is left: %s", quoted)
	}
	return strings.ReplaceAll(text, "%%", "%")
}

// NCCL reads its variables from the file as they were measured, or the file is
// refused.
func TestNCCLConf(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawConfiguration(r, false)
		text, err := paste.Write(known(c), "nccl.conf")
		if err != nil {
			return // what the format cannot hold is told by package nccl
		}
		read, err := nccl.ParseConf(bytes.NewReader([]byte(text)))
		if err != nil {
			r.Fatal(err)
		}
		found := map[string]string{}
		for _, setting := range read {
			found[setting.Name] = setting.Value
			if len(setting.Faults) > 0 || setting.Shadowed {
				r.Fatalf("%+v", setting)
			}
		}
		want := maps.Clone(c.Env)
		maps.DeleteFunc(want, func(name, _ string) bool { return !strings.HasPrefix(name, "NCCL_") })
		if !maps.Equal(found, want) {
			r.Fatalf("got %q, want %q", found, want)
		}
	})
}

// Docker reads the file literally: from the first equals sign to the line end.
func TestEnvFile(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawConfiguration(r, false)
		text, err := paste.Write(known(c), "env")
		if err != nil {
			r.Fatal(err)
		}
		found := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
				found[name] = value
			}
		}
		if !maps.Equal(found, c.Env) {
			r.Fatalf("got %q, want %q", found, c.Env)
		}
	})
}
