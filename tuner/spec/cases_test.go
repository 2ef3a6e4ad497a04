package spec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nocturne/nccl"
	"nocturne/search"
	"nocturne/tuner/spec"
)

// file is a whole campaign file around some of its keys. What is not given has
// a usual value.
type file struct {
	kind, env, command, timeouts, current, space, try, rest string
}

func (f file) String() string {
	or := func(given, usual string) string {
		if given == "" {
			return usual
		}
		return given
	}
	lines := []string{
		"campaign: night",
		"server:",
		"  kind: " + or(f.kind, "sglang"),
		"  command: " + or(f.command, `[serve, "--port=${port}"]`),
		"  env: " + or(f.env, "{}"),
		"timeouts: " + or(f.timeouts, "{}"),
		"workload: {}",
		"objective: {maximize: output_throughput}",
		"space: " + or(f.space, "{env: {MODE: {choices: [a, b]}}}"),
		"budget: {trials: 4}",
		"seed: 1",
	}
	if f.current != "" {
		lines = append(lines, "current: "+f.current)
	}
	if f.try != "" {
		lines = append(lines, "try: "+f.try)
	}
	return strings.Join(append(lines, f.rest), "\n") + "\n"
}

func parse(t testing.TB, text string) *spec.Campaign {
	t.Helper()
	campaign, _, err := spec.Parse("night.yaml", []byte(text), spec.Options{})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return campaign
}

// faultsOf are the faults of a file that must be refused.
func faultsOf(t testing.TB, text string) spec.Faults {
	t.Helper()
	_, _, err := spec.Parse("night.yaml", []byte(text), spec.Options{})
	var faults spec.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got %v, want faults\nin\n%s", err, text)
	}
	return faults
}

// wantFault checks that one of the faults stands at a text of the file and says
// all of the words.
func wantFault(t *testing.T, text string, faults spec.Faults, at string, words ...string) {
	t.Helper()
	line, column := placeOf(t, text, at)
	for _, fault := range faults {
		said := !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(fault.Message, word) })
		if fault.Line == line && fault.Column == column && said {
			return
		}
	}
	t.Errorf("no fault at %d:%d (%s) says %q; there are\n%v", line, column, at, words, faults)
}

func placeOf(t *testing.T, text, at string) (line, column int) {
	t.Helper()
	before, _, found := strings.Cut(text, at)
	if !found {
		t.Fatalf("%q does not stand in the file", at)
	}
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
}

func levels(t *testing.T, campaign *spec.Campaign, id string) []string {
	t.Helper()
	knob, known := campaign.Space.Knob(id)
	if !known {
		t.Fatalf("there is no knob %s", id)
	}
	var texts []string
	for _, level := range knob.Levels {
		texts = append(texts, level.String())
	}
	return texts
}

func set(t *testing.T, campaign *spec.Campaign, pairs ...string) search.Values {
	t.Helper()
	values, err := campaign.ParseSettings(pairs)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// F01: every spelling of a byte count is one integer, which reaches the server
// in decimal digits; what could mean two numbers is refused.
func TestF01_ByteSizes(t *testing.T) {
	for _, spelling := range []string{"16777216", "16M", `"16MiB"`, "16 MiB", "0x1000000", "1.6777216e+07", `"16_777_216"`, "16384K", "0o100000000"} {
		campaign := parse(t, file{space: fmt.Sprintf("{env: {NCCL_BUFFSIZE: {choices: [unset, %s]}}}", spelling)}.String())
		if got := levels(t, campaign, "NCCL_BUFFSIZE"); !slices.Equal(got, []string{"unset", "16777216"}) {
			t.Errorf("%s: levels %v, want unset and 16777216", spelling, got)
		}
		launch := launchOf(t, campaign, set(t, campaign, "NCCL_BUFFSIZE=16777216"), nccl.Context{})
		if got := launch.Job.Env["NCCL_BUFFSIZE"]; got != "16777216" {
			t.Errorf("%s reaches the server as %q", spelling, got)
		}
		if value := launch.Configuration.Values["NCCL_BUFFSIZE"]; value != search.Int(16777216) {
			t.Errorf("%s is kept as %#v, want an integer", spelling, value)
		}
		text, err := json.Marshal(launch.Configuration.Values)
		if err != nil || string(text) != `{"NCCL_BUFFSIZE":16777216}` {
			t.Errorf("%s is stored as %s, %v", spelling, text, err)
		}
	}
	text := file{space: "{env: {NCCL_BUFFSIZE: {choices: [16777216, 16M, 0x1000000, 010, 16MB, off, \"\"]}}}"}.String()
	faults := faultsOf(t, text)
	wantFault(t, text, faults, "16M,", "16M is the same value as 16777216 at 9:41")
	wantFault(t, text, faults, "0x1000000", "the same value as 16777216")
	wantFault(t, text, faults, "010", "8", "10")
	wantFault(t, text, faults, "16MB", "16MiB")
	wantFault(t, text, faults, "off", "number")
	wantFault(t, text, faults, `""`, "empty")
}

// F03: off, on, no and yes are text where text is meant and quoted, and refused
// with their place where they are not.
func TestF03_TruthWords(t *testing.T) {
	text := file{space: "\n  env:\n    NCCL_NVLS_ENABLE: {choices: [no, yes]}\n    COUNTRY: {choices: [NO, SE]}\n  flags:\n    --spec-mode: {choices: [off, eagle, ngram]}"}.String()
	faults := faultsOf(t, text)
	wantFault(t, text, faults, "no,", "allowed: 0, 1 or 2", "write 0")
	wantFault(t, text, faults, "yes", "write 1")
	wantFault(t, text, faults, "NO,", `write "NO"`)
	wantFault(t, text, faults, "off", `write "off"`)
	if len(faults) != 4 {
		t.Errorf("%d faults, want 4:\n%v", len(faults), faults)
	}

	campaign := parse(t, file{space: `{env: {NCCL_NVLS_ENABLE: {choices: [0, 1]}, COUNTRY: {choices: ["NO", SE]}}, flags: {--spec-mode: {choices: ["off", eagle]}}}`}.String())
	values := set(t, campaign, "NCCL_NVLS_ENABLE=0", "COUNTRY=NO", "--spec-mode=off")
	job := launchOf(t, campaign, values, nccl.Context{}).Job
	if job.Env["NCCL_NVLS_ENABLE"] != "0" || job.Env["COUNTRY"] != "NO" || !slices.Contains(job.Args, "off") {
		t.Errorf("reached the server as %v %v", job.Env, job.Args)
	}
	text = file{space: "{flags: {--a: {choices: [1, two, 3]}}}"}.String()
	wantFault(t, text, faultsOf(t, text), "two", "mix texts (two) and numbers (1)")
}

// F04: a duration without a unit is refused with what to write; days are taken;
// negative ones and slips of a unit are refused.
func TestF04_Durations(t *testing.T) {
	for text, want := range map[string]time.Duration{"1d": 24 * time.Hour, "1.5d": 36 * time.Hour, "1h30m": 90 * time.Minute, "1200s": 20 * time.Minute, "1500ms": 1500 * time.Millisecond} {
		campaign := parse(t, file{timeouts: "{loading: " + text + "}"}.String())
		if campaign.Timeouts.Loading != want {
			t.Errorf("%s is %s, want %s", text, campaign.Timeouts.Loading, want)
		}
	}
	for text, words := range map[string][]string{
		"1200":   {"no unit", "write 1200s or 20m"},
		"90":     {"no unit", "write 90s"},
		`"45"`:   {"no unit"},
		"-5s":    {"negative"},
		"-5":     {"negative"},
		"500us":  {"d, h, m, s or ms"},
		"1w":     {"d, h, m, s or ms"},
		"10ms":   {"less than 1s", "is the unit right?"},
		"999ms":  {"less than 1s"},
		"20000d": {"longer than"},
	} {
		whole := file{timeouts: "{loading: " + text + "}"}.String()
		wantFault(t, whole, faultsOf(t, whole), text, words...)
	}
}

// F05: JSON in an argument stays one argument and is encoded once; a bare brace
// is no placeholder; there is no shell.
func TestF05_JSONArguments(t *testing.T) {
	campaign := parse(t, file{
		kind:    "vllm",
		command: `[vllm, serve, model-a, --hf-overrides, '{"a":{"b":[1,2]},"n":${n}}', "--raw={\"x\":\"it's $${y}\"}", "--port=${port}"]`,
		space:   `{speculative: {method: mtp, steps: {choices: [0, 3]}}}`,
		rest:    "vars: {n: 7}",
	}.String())
	args := launchOf(t, campaign, set(t, campaign, "speculative.steps=3"), nccl.Context{}).Job.Args
	want := []string{"vllm", "serve", "model-a", "--hf-overrides", `{"a":{"b":[1,2]},"n":7}`, `--raw={"x":"it's ${y}"}`, "--port=${port}",
		"--speculative-config", `{"method":"mtp","num_speculative_tokens":3}`}
	if !slices.Equal(args, want) {
		t.Errorf("arguments %q\nwant      %q", args, want)
	}
	for _, arg := range []string{args[4], args[8]} {
		if !json.Valid([]byte(arg)) {
			t.Errorf("%s is no JSON any more", arg)
		}
	}
	line := file{command: `'serve model-a --speculative-config {"method":"mtp","n":${steps}} --port ${port}'`}.String()
	wantFault(t, line, faultsOf(t, line), "'serve", "a list of arguments", "no shell")
}

// F06: one wrong letter in the name or the value of one of NCCL's variables is
// refused, in env: too, with what was probably meant; SYS and 1 are right, and
// with P2P off the level plays no part.
func TestF06_WrongLetters(t *testing.T) {
	text := file{env: `{CCL_NET_GDR_LEVEL: PHB, NCCL_ALGOS: Ring, NCCL_P2P_LEVEL: sys, NCCL_P2P_DISABLE: "true"}`}.String()
	faults := faultsOf(t, text)
	wantFault(t, text, faults, "CCL_NET", "NCCL_NET_GDR_LEVEL?")
	wantFault(t, text, faults, "NCCL_ALGOS", "NCCL_ALGO?")
	wantFault(t, text, faults, "sys", "write SYS")
	wantFault(t, text, faults, `"true"`, "write 1")

	_, warnings, err := spec.Parse("night.yaml", []byte(file{env: "{NCCL_OF_TOMORROW: 1}"}.String()), spec.Options{})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "NCCL_OF_TOMORROW is not a variable that Nocturne knows") {
		t.Errorf("an unknown name gave %v and %v, want one warning", warnings, err)
	}

	campaign := parse(t, file{space: "{env: {NCCL_P2P_DISABLE: {choices: [1]}, NCCL_P2P_LEVEL: {choices: [SYS, PHB]}}}"}.String())
	off, same := set(t, campaign, "NCCL_P2P_DISABLE=1"), set(t, campaign, "NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL=SYS")
	if campaign.Space.Key(off) != campaign.Space.Key(same) {
		t.Error("with P2P off the level made another configuration")
	}
	if campaign.Space.Key(set(t, campaign, "NCCL_P2P_LEVEL=SYS")) == campaign.Space.Key(set(t, campaign, "NCCL_P2P_LEVEL=PHB")) {
		t.Error("with P2P on the level made no difference")
	}
	if env := launchOf(t, campaign, same, nccl.Context{}).Job.Env; env["NCCL_P2P_LEVEL"] != "" || env["NCCL_P2P_DISABLE"] != "1" {
		t.Errorf("launched with %v, want the level left out", env)
	}
}

// F08: thread counts and buffer sizes that gave wrong sums need unsafe: true,
// and those that NCCL replaces are one configuration with what it takes.
func TestF08_UnsafeValues(t *testing.T) {
	text := file{space: "\n  env:\n    NCCL_NTHREADS: {int: [64, 640], step: 32}\n    NCCL_BUFFSIZE: {int: [1000000, 1000001]}\n    NCCL_LL_BUFFSIZE: {choices: [1MiB, 100000]}"}.String()
	faults := faultsOf(t, text)
	wantFault(t, text, faults, "[64, 640]", `"96" is not known to be safe`, "allowed: 64, 128, 256 or 512", "unsafe: true")
	wantFault(t, text, faults, "[1000000,", "powers of two", "unsafe: true")
	wantFault(t, text, faults, "100000]", "powers of two", "unsafe: true")

	campaign := parse(t, file{space: "{env: {NCCL_NTHREADS: {choices: [96, 100, 512], unsafe: true}}}"}.String())
	key := func(threads string) string { return campaign.Space.Key(set(t, campaign, "NCCL_NTHREADS="+threads)) }
	if key("100") != key("512") || key("96") == key("512") {
		t.Error("100 threads are replaced by 512 and must be the same configuration; 96 are not")
	}
}

// F10: an algorithm that a collective lacks is written so that the others stay
// as they are, and what leaves a collective nothing is refused where the version
// is known.
func TestF10_AlgorithmsPerCollective(t *testing.T) {
	text := file{space: `{env: {NCCL_ALGO: {choices: [Ring, Tree, "ring;allreduce:tree"]}}}`}.String()
	campaign := parse(t, text)
	tree := set(t, campaign, "NCCL_ALGO=Tree")
	launch := launchOf(t, campaign, tree, pcie)
	if got := launch.Job.Env["NCCL_ALGO"]; got != "ring,tree;allreduce:tree" {
		t.Errorf("on 2.28 Tree is written %q", got)
	}
	if got := launch.Configuration.Values["NCCL_ALGO"]; got != search.Text("Tree") {
		t.Errorf("the values keep %v, want the intent Tree", got)
	}
	old := pcie
	old.Version = nccl.Version{Major: 2, Minor: 22, Patch: 3}
	if got := launchOf(t, campaign, tree, old).Job.Env["NCCL_ALGO"]; got != "Tree" {
		t.Errorf("on 2.22 Tree is written %q", got)
	}
	if a, b := launch.Configuration.Hash, launchOf(t, campaign, tree, old).Configuration.Hash; a != b {
		t.Errorf("the version changed the identity: %s and %s", a, b)
	}

	wrong := file{space: "{env: {NCCL_ALGO: {choices: [Ring, Treee]}}}"}.String()
	wantFault(t, wrong, faultsOf(t, wrong), "Treee", "unknown name", "allowed: Tree, Ring")

	nvls := file{space: "{env: {NCCL_ALGO: {choices: [Ring, NVLS]}}}"}.String()
	_, warnings, err := spec.Parse("night.yaml", []byte(nvls), spec.Options{Facts: pcie})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "NCCL_ALGO=NVLS will fail here") {
		t.Errorf("NVLS on PCIe gave %v and %v, want a warning", warnings, err)
	}
}

// F38 (g): no secret enters what is stored, and no fault repeats one.
func TestF38_Secrets(t *testing.T) {
	bad := string(read(t, "testdata/bad/secrets.yaml"))
	if faults := faultsOf(t, bad); strings.Contains(faults.Error(), "AAAA") {
		t.Errorf("the faults repeat a secret:\n%v", faults)
	}
	campaign := parse(t, file{env: `{HF_TOKEN: {from_env: MY_TOKEN}, KEY: {from_file: key.txt}, TOKENIZERS_PARALLELISM: "false"}`, command: `[serve, --tokenizer, t, --max-num-batched-tokens=8, "--port=${port}"]`}.String())
	job, err := campaign.Job(campaign.Baseline, nccl.Context{})
	if err != nil {
		t.Fatal(err)
	}
	if len(job.Secrets) != 2 || job.Secrets[0].FromEnv != "MY_TOKEN" || !strings.HasSuffix(job.Secrets[1].FromFile, "/key.txt") || len(job.Env) != 1 {
		t.Errorf("secrets %+v, environment %v", job.Secrets, job.Env)
	}
	without := parse(t, file{env: `{TOKENIZERS_PARALLELISM: "false"}`, command: `[serve, --tokenizer, t, --max-num-batched-tokens=8, "--port=${port}"]`}.String())
	if hashOf(t, campaign, campaign.Baseline) == hashOf(t, without, without.Baseline) {
		t.Error("a launch with a secret has the identity of one without")
	}
}

func hashOf(t testing.TB, campaign *spec.Campaign, values search.Values) string {
	t.Helper()
	configuration, err := campaign.Configuration(values, nccl.Context{})
	if err != nil {
		t.Fatal(err)
	}
	return configuration.Hash
}

// $${ is a literal ${: the host fills its own names only, so their escape is
// left to it.
func TestLiteralPlaceholders(t *testing.T) {
	campaign := parse(t, file{command: `[serve, "--port=${port}", "--a=$${tp}", "--b=$${port}", "--c=$$${tp}"]`, env: `{A: "$${x}", B: "${tp}"}`, rest: "vars: {tp: 8}"}.String())
	launch := launchOf(t, campaign, campaign.Baseline, nccl.Context{})
	if want := []string{"serve", "--port=${port}", "--a=${tp}", "--b=$${port}", "--c=$${tp}", "--enable-metrics"}; !slices.Equal(launch.Job.Args, want) {
		t.Errorf("arguments %q, want %q", launch.Job.Args, want)
	}
	if env := launch.Job.Env; env["A"] != "${x}" || env["B"] != "8" {
		t.Errorf("environment %v", env)
	}
}

// Line ends of Windows and a byte order mark change nothing.
func TestOtherEditors(t *testing.T) {
	text := file{}.String()
	want := parse(t, text).Digest()
	for name, variant := range map[string]string{
		"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "a byte order mark": "\ufeff" + text, "no line end": strings.TrimSuffix(text, "\n"),
		"a document's marks": "%YAML 1.2\n---\n" + text + "...\n", "comments": "# one\n\n" + text + "# two\n",
	} {
		if got := parse(t, variant).Digest(); got != want {
			t.Errorf("%s made another campaign", name)
		}
	}
	broken := strings.ReplaceAll(file{timeouts: "{loading: 20}"}.String(), "\n", "\r\n")
	wantFault(t, broken, faultsOf(t, broken), "20}", "no unit")
}
