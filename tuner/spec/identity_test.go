package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/nccl"
)

// Where a server listens, what it logs and the runner's paths are no part of an
// identity; everything else is.
func TestWhatIdentityLeavesOut(t *testing.T) {
	base := `[python3, -m, sglang.launch_server, --model-path=/m, --mem-fraction-static, "0.9", "--port=${port}"]`
	of := func(command, env string) string {
		campaign := parse(t, file{command: command, env: env}.String())
		return hashOf(t, campaign, campaign.Baseline)
	}
	want := of(base, "{A: b}")
	for what, command := range map[string]string{
		"another port":         `[python3, -m, sglang.launch_server, --model-path=/m, --mem-fraction-static, "0.9", --port, "30000"]`,
		"an address":           `[python3, -m, sglang.launch_server, --host, 127.0.0.1, --model-path=/m, --mem-fraction-static, "0.9", "--port=${port}"]`,
		"another order":        `[python3, -m, sglang.launch_server, "--port=${port}", --mem-fraction-static=0.9, --model-path, /m]`,
		"a log level":          `[python3, -m, sglang.launch_server, --model-path=/m, --log-level=debug, --mem-fraction-static, "0.9", "--port=${port}"]`,
		"a path of the runner": `[python3, -m, sglang.launch_server, --model-path=/m, "--dump=${trial_dir}/x", --mem-fraction-static, "0.9", "--port=${port}"]`,
		"a zero at the end":    `[python3, -m, sglang.launch_server, --model-path=/m, --mem-fraction-static, "0.90", "--port=${port}"]`,
		"underscores":          `[python3, -m, sglang.launch_server, --model_path=/m, --mem_fraction_static, "0.9", "--port=${port}"]`,
	} {
		if got := of(command, "{A: b}"); got != want {
			t.Errorf("%s changed the identity", what)
		}
	}
	for what, env := range map[string]string{"a log variable": "{A: b, NCCL_DEBUG: INFO, VLLM_LOGGING_LEVEL: DEBUG}", "a path of the runner": `{A: b, DUMP: "${trial_dir}/x"}`} {
		if got := of(base, env); got != want {
			t.Errorf("%s in the environment changed the identity", what)
		}
	}
	different := map[string]string{
		"another model":      `[python3, -m, sglang.launch_server, --model-path=/n, --mem-fraction-static, "0.9", "--port=${port}"]`,
		"another value":      `[python3, -m, sglang.launch_server, --model-path=/m, --mem-fraction-static, "0.91", "--port=${port}"]`,
		"another module":     `[python3, -m, other, --model-path=/m, --mem-fraction-static, "0.9", "--port=${port}"]`,
		"one flag more":      `[python3, -m, sglang.launch_server, --model-path=/m, --x, --mem-fraction-static, "0.9", "--port=${port}"]`,
		"a word at the end":  `[python3, -m, sglang.launch_server, --model-path=/m, --mem-fraction-static, "0.9", --port, "${port}", word]`,
		"joined arguments":   `[python3, -m, sglang.launch_server, --model-path=/m, "--mem-fraction-static 0.9", "--port=${port}"]`,
		"a literal brace":    `[python3, -m, sglang.launch_server, --model-path=/m, "--x=$${port}", --mem-fraction-static, "0.9", "--port=${port}"]`,
		"a variable's value": base,
	}
	seen := map[string]string{want: "the base"}
	for what, command := range different {
		env := "{A: b}"
		if command == base {
			env = "{A: c}"
		}
		got := of(command, env)
		if other, same := seen[got]; same {
			t.Errorf("%s has the identity of %s", what, other)
		}
		seen[got] = what
	}
}

// Words behind a flag that is left out are kept: they may be the model.
func TestWordsBehindIgnoredFlags(t *testing.T) {
	of := func(command string) string {
		campaign := parse(t, file{kind: "vllm", command: command}.String())
		return hashOf(t, campaign, campaign.Baseline)
	}
	if of(`[vllm, serve, --verbose, model-a, "--port=${port}"]`) == of(`[vllm, serve, --verbose, model-b, "--port=${port}"]`) {
		t.Error("the model behind --verbose is not part of the identity")
	}
	if of(`[vllm, serve, "--listen=${host}:${port}", model-a]`) == of(`[vllm, serve, "--listen=${host}:${port}", model-b]`) {
		t.Error("the model behind the address is not part of the identity")
	}
}

// The arguments of a command stand in any order that their author chose.
func TestCommandsKeepTheirOrder(t *testing.T) {
	of := func(command string) string {
		text := strings.Replace(file{kind: "command", command: command}.String(), "maximize: output_throughput", "maximize: score", 1)
		campaign := parse(t, text)
		return hashOf(t, campaign, campaign.Baseline)
	}
	if of("[bench, -a, x, -b, y]") == of("[bench, -b, y, -a, x]") {
		t.Error("two orders of a command's arguments are one identity")
	}
}

func TestModelKey(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a/config.json", `{"layers": 1}`)
	write("b/config.json", `{"layers": 1}`)
	write("c/config.json", `{"layers": 2}`)
	write("d.gguf", "GGUF one")
	write("e.gguf", "GGUF two")
	key := func(kind, command, model string) (string, string) {
		campaign := parse(t, strings.ReplaceAll(file{kind: kind, command: command, rest: "model: " + model}.String(), "$DIR", folder))
		return campaign.ModelKey(), campaign.Model
	}
	a, _ := key("sglang", `[serve, --model-path=$DIR/a, "--port=${port}"]`, "m")
	for what, other := range map[string]struct {
		kind, command, model string
		same                 bool
	}{
		"the same files elsewhere":      {"sglang", `[serve, --model-path, $DIR/b, "--port=${port}"]`, "m", true},
		"the same by another server":    {"vllm", `[vllm, serve, $DIR/a, "--port=${port}"]`, "m", true},
		"other files, same label":       {"sglang", `[serve, --model-path=$DIR/c, "--port=${port}"]`, "m", false},
		"another label":                 {"sglang", `[serve, --model-path=$DIR/a, "--port=${port}"]`, "n", false},
		"a draft model":                 {"sglang", `[serve, --model-path=$DIR/a, --speculative-draft-model-path=$DIR/c, "--port=${port}"]`, "m", false},
		"no files":                      {"sglang", `[serve, --model-path=org/a, "--port=${port}"]`, "m", false},
		"one file":                      {"llamacpp", `[llama-server, -m, $DIR/d.gguf, --fit, "off", --port, "${port}"]`, "m", false},
		"the module of an interpreter":  {"sglang", `[python3, -m, a, --model-path=$DIR/b, "--port=${port}"]`, "m", true},
		"the model of a trtllm-serve":   {"trtllm", `[trtllm-serve, $DIR/a, "--port=${port}"]`, "m", true},
		"the quantized one (hf_quant)":  {"sglang", `[serve, --model-path=$DIR/q, "--port=${port}"]`, "m", false},
		"a folder without a config":     {"sglang", `[serve, --model-path=$DIR, "--port=${port}"]`, "m", false},
		"the label of one file by path": {"llamacpp", `[llama-server, -m, $DIR/e.gguf, --fit, "off", --port, "${port}"]`, "m", false},
	} {
		if got, _ := key(other.kind, other.command, other.model); (got == a) != other.same {
			t.Errorf("%s: the same key is %t, want %t", what, got == a, other.same)
		}
	}
	d, _ := key("llamacpp", `[llama-server, -m, $DIR/d.gguf, --fit, "off", --port, "${port}"]`, "m")
	if e, _ := key("llamacpp", `[llama-server, -m, $DIR/e.gguf, --fit, "off", --port, "${port}"]`, "m"); d == e {
		t.Error("two GGUF files have one key")
	}
	for command, label := range map[string]string{
		`[serve, --model-path=$DIR/a, "--port=${port}"]`:        "a",
		`[serve, --model-path=org/model, "--port=${port}"]`:     "org/model",
		`[vllm, serve, org/model, "--port=${port}"]`:            "org/model",
		`[python3, -m, sglang.launch_server, "--port=${port}"]`: "",
	} {
		if _, got := key("sglang", command, `""`); got != label {
			t.Errorf("%s: the label is %q, want %q", command, got, label)
		}
	}
}

// The key of a workload covers what changes the numbers, and nothing else.
func TestWorkloadKey(t *testing.T) {
	key := func(workload string) string {
		text := strings.Replace(file{}.String(), "workload: {}", "workload: {"+workload+"}", 1)
		return parse(t, strings.Replace(text, "{maximize: output_throughput}", "{maximize: output_throughput, at: 1}", 1)).WorkloadKey()
	}
	want := key("")
	for _, same := range []string{"name: chat", "rounds: 3", "dataset: random, input_tokens: 512", "concurrency: 1", "concurrency: [1]"} {
		if key(same) != want {
			t.Errorf("%s changed the key", same)
		}
	}
	for _, other := range []string{"input_tokens: 500", "output_tokens: 500", "concurrency: [1, 2], requests: 16, warmup: 2", "ignore_eos: false", "temperature: 0.5", "endpoint: chat", "warmup: 0", "requests: 5"} {
		if key(other) == want {
			t.Errorf("%s did not change the key", other)
		}
	}
	command := func(program string) string {
		text := strings.Replace(file{kind: "command", command: program}.String(), "maximize: output_throughput", "maximize: score", 1)
		return parse(t, text).WorkloadKey()
	}
	if command("[a, -b]") == command("[a, -c]") || command("[a]") == want {
		t.Error("two commands are one workload")
	}
}

// A campaign that learned its NCCL has the same identities and fewer distinct
// configurations.
func TestWithFacts(t *testing.T) {
	campaign := parse(t, file{space: "{env: {NCCL_PROTO: {choices: [LL, Simple]}, NCCL_BUFFSIZE: {choices: [1MiB, 16MiB]}, NCCL_IB_TIMEOUT: {choices: [20, 22]}}}"}.String())
	informed, err := campaign.WithFacts(pcie)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := campaign.Space.Count(t.Context())
	after, _ := informed.Space.Count(t.Context())
	if after >= before || informed.Facts() != pcie {
		t.Errorf("%g configurations, and %g with what the launch told", before, after)
	}
	values := set(t, campaign, "NCCL_PROTO=LL", "NCCL_BUFFSIZE=1048576", "NCCL_IB_TIMEOUT=22")
	plain, told := launchOf(t, campaign, values, nccl.Context{}), launchOf(t, informed, values, pcie)
	if plain.Configuration.Hash != told.Configuration.Hash {
		t.Error("what the launch told changed an identity")
	}
	if _, launched := told.Job.Env["NCCL_IB_TIMEOUT"]; launched || told.Configuration.EquivalentTo == nil {
		t.Errorf("on one node the network variable is launched: %v", told.Job.Env)
	}
}

func TestSettings(t *testing.T) {
	campaign := parse(t, file{space: `{env: {NCCL_PROTO: {choices: [LL, Simple]}, MODE: {choices: ["off", "on"]}}, flags: {--a-b: {int: [1, 4]}, --json: {choices: ['{"a":"b=c"}', x]}}, constraints: ["flag.a_b <= 2 || NCCL_PROTO == \"LL\""]}`}.String())
	values := set(t, campaign, "NCCL_PROTO=ll", "--a-b=0x2", `--json={"a":"b=c"}`, "MODE=off")
	if got := values.String(); got != `MODE="off" NCCL_PROTO="LL" flag.a_b=2 flag.json="{\"a\":\"b=c\"}"` {
		t.Errorf("read %s", got)
	}
	_, err := campaign.ParseSettings([]string{"NCCL_PROTO", "NCCL_PROTOS=LL", "NCCL_PROTO=LL128", "MODE=no", "flag.a_b=1", "--a-b=1"})
	if err == nil {
		t.Fatal("accepted")
	}
	for i, want := range []string{"want KNOB=VALUE", `did you mean "NCCL_PROTO"?`, "LL128 is none of the values of NCCL_PROTO (unset, LL, Simple)", "truth value", "given twice"} {
		if lines := strings.Split(err.Error(), "\n"); len(lines) != 5 || !strings.Contains(lines[i], want) || !strings.HasPrefix(lines[i], "--set ") {
			t.Errorf("line %d of\n%v\nwants %q", i+1, err, want)
		}
	}
	if _, err := campaign.ParseSettings([]string{"--a-b=3"}); err == nil || !strings.Contains(err.Error(), "rejects") {
		t.Errorf("a configuration that a constraint rejects gave %v", err)
	}
	if values, err := campaign.ParseSettings(nil); err != nil || values.String() != campaign.Baseline.String() {
		t.Errorf("no settings are %v, %v, want the baseline", values, err)
	}
}
