package spec

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"nocturne/runners"
	"nocturne/runners/servers"
)

//go:embed example.yaml.tmpl
var exampleText string

// exampleCommands are how each kind is usually started.
var exampleCommands = map[string][]string{
	"sglang":    {"python3", "-m", "sglang.launch_server", "--model-path=/models/MODEL", "--tp=${tp}", "--host=${host}", "--port=${port}", "--max-running-requests=48", "--enable-metrics"},
	"vllm":      {"vllm", "serve", "/models/MODEL", "--tensor-parallel-size=${tp}", "--host=${host}", "--port=${port}"},
	"trtllm":    {"trtllm-serve", "/models/MODEL", "--tp_size=${tp}", "--host=${host}", "--port=${port}"},
	"llamacpp":  {"llama-server", "-m", "/models/model.gguf", "--host", "${host}", "--port", "${port}", "--metrics", "--fit", "off"},
	"custom":    {"/opt/server/bin/serve", "--port=${port}"},
	KindCommand: {"all_reduce_perf", "-b", "16K", "-e", "1M", "-f", "2", "-g", "${tp}"},
}

// exampleFlags are what to try where NCCL has nothing to do: flags of that
// server and of no other, by the names that its own documentation gives them
// (SGLang server arguments; vLLM engine arguments, 0.12; trtllm-serve; the
// README of llama-server).
var exampleFlags = map[string][]string{
	"sglang": {
		"--chunked-prefill-size: {choices: [unset, 2048, 4096, 8192]}",
		"--num-continuous-decode-steps: {int: [1, 4], default: 1}",
	},
	"vllm": {
		"--max-num-batched-tokens: {choices: [unset, 2048, 4096, 8192, 16384]}",
		"--attention-backend: {choices: [unset, FLASH_ATTN, FLASHINFER]}",
	},
	"trtllm": {
		"--max_num_tokens: {choices: [unset, 2048, 4096, 8192, 16384]}",
		"--enable_chunked_prefill: {switch: true}",
	},
	"llamacpp": {
		"--threads: {choices: [unset, 2, 4, 8]}",
		"--ubatch-size: {choices: [unset, 128, 256, 1024]}",
		`--flash-attn: {choices: [unset, "on", "off"]}`,
	},
	"custom": {
		"--workers: {int: [1, 16], default: 1}   # a flag of your server",
	},
}

// exampleTrials is the budget of a file that tunes NCCL, fewExampleTrials that
// of one whose space is small.
const exampleTrials, fewExampleTrials = 30, 8

// Example writes a short campaign file for a server kind and what a machine
// has, for `nocturne init`.
func Example(kind string, hardware runners.Hardware) ([]byte, error) {
	if kinds := append(servers.Names(), KindCommand); !slices.Contains(kinds, kind) {
		return nil, fmt.Errorf("--kind %q is not known: %s", kind, suggestion(kind, kinds))
	}
	preset, trials := "", exampleTrials
	switch {
	case len(hardware.GPUs) < 2, kind == "llamacpp":
		// llama.cpp splits a model by layers, which needs no collective.
		trials = fewExampleTrials
	case len(hardware.Links) > 1 && len(hardware.Links[0]) > 1 && len(hardware.Links[0][1]) > 1 && hardware.Links[0][1][:2] == "NV":
		preset = "nccl-nvswitch@1"
	default:
		preset = "nccl-pcie@1"
	}
	parsed, err := template.New("example").Parse(exampleText)
	if err != nil {
		return nil, fmt.Errorf("template of the example: %w", err)
	}
	var b bytes.Buffer
	err = parsed.Execute(&b, map[string]any{
		"Kind": kind, "Command": exampleCommands[kind], "GPUs": max(len(hardware.GPUs), 1), "Hardware": strings.Join(strings.Fields(hardware.Name), " "),
		"Preset": preset, "IsCommand": kind == KindCommand, "Flags": exampleFlags[kind],
		"OneGPU": len(hardware.GPUs) < 2, "Trials": trials,
	})
	if err != nil {
		return nil, fmt.Errorf("example for %s: %w", kind, err)
	}
	return b.Bytes(), nil
}
