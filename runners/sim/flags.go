package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// flagKind is what the value of a flag must be.
type flagKind int

const (
	textFlag flagKind = iota
	intFlag
	floatFlag
	switchFlag
)

// flag is one argument of the server. Its name in the parsed configuration is
// the first spelling without dashes, as argparse derives it.
type flag struct {
	names    []string
	kind     flagKind
	standard string
	choices  []string
}

func (f flag) destination() string {
	return strings.ReplaceAll(strings.TrimPrefix(f.names[0], "--"), "-", "_")
}

func text(standard string, names ...string) flag { return flag{names, textFlag, standard, nil} }
func integer(standard string, names ...string) flag {
	return flag{names, intFlag, standard, nil}
}
func float(standard string, names ...string) flag { return flag{names, floatFlag, standard, nil} }
func toggle(names ...string) flag                 { return flag{names, switchFlag, "false", nil} }
func (f flag) among(choices ...string) flag {
	f.choices = choices
	return f
}

var attentionBackends = []string{"triton", "torch_native", "flashinfer", "fa3", "trtllm_mla", "trtllm_mha"}

// serverFlags are those of SGLang 0.5.18 (python/sglang/srt/server_args.py) that
// people set when they tune, with their older spellings.
var serverFlags = []flag{
	text("", "--model-path", "--model"),
	text("", "--tokenizer-path"),
	text("", "--served-model-name"),
	text("auto", "--load-format"),
	text("auto", "--dtype"),
	text("", "--quantization"),
	text("auto", "--kv-cache-dtype"),
	integer("", "--context-length"),
	toggle("--trust-remote-code"),
	text("127.0.0.1", "--host"),
	integer("30000", "--port"),
	integer("", "--nccl-port"),
	text("", "--dist-init-addr"),
	integer("1", "--nnodes"),
	integer("0", "--node-rank"),
	integer("1", "--tp-size", "--tensor-parallel-size", "--tp"),
	integer("1", "--dp-size", "--data-parallel-size", "--dp"),
	integer("1", "--pp-size", "--pipeline-parallel-size", "--pp"),
	integer("1", "--ep-size", "--expert-parallel-size", "--ep"),
	float("", "--mem-fraction-static"),
	integer("", "--max-running-requests"),
	integer("", "--max-queued-requests"),
	integer("", "--max-total-tokens"),
	integer("8192", "--chunked-prefill-size"),
	integer("16384", "--max-prefill-tokens"),
	integer("1", "--page-size"),
	float("1.0", "--schedule-conservativeness"),
	text("fcfs", "--schedule-policy").among("lpm", "random", "fcfs", "dfs-weight", "lof", "priority", "routing-key"),
	integer("1", "--num-continuous-decode-steps"),
	integer("1", "--stream-interval"),
	integer("40", "--decode-log-interval"),
	integer("42", "--random-seed"),
	float("300", "--watchdog-timeout"),
	text("info", "--log-level"),
	toggle("--enable-metrics"),
	toggle("--enable-cache-report"),
	toggle("--incremental-streaming-output", "--stream-output"),
	toggle("--skip-server-warmup"),
	toggle("--disable-radix-cache"),
	toggle("--disable-overlap-schedule"),
	toggle("--enable-mixed-chunk"),
	integer("", "--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"),
	toggle("--disable-cuda-graph"),
	toggle("--disable-cuda-graph-padding"),
	text("", "--attention-backend").among(attentionBackends...),
	text("", "--decode-attention-backend").among(attentionBackends...),
	text("", "--prefill-attention-backend").among(attentionBackends...),
	text("", "--sampling-backend").among("flashinfer", "pytorch"),
	text("auto", "--moe-runner-backend"),
	toggle("--disable-custom-all-reduce"),
	toggle("--enable-nccl-nvls"),
	toggle("--enable-symm-mem"),
	toggle("--enable-p2p-check"),
	text("", "--speculative-algorithm").among("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"),
	text("", "--speculative-draft-model-path", "--speculative-draft-model"),
	integer("", "--speculative-num-steps"),
	integer("", "--speculative-eagle-topk"),
	integer("", "--speculative-num-draft-tokens"),
	text("prefill", "--speculative-attention-mode").among("prefill", "decode"),
	text("", "--reasoning-parser"),
	text("", "--tool-call-parser"),
	text("", "--chat-template"),
	text("", "--api-key"),
}

// simulationFlags describe the simulation and the machine that it plays.
var simulationFlags = []flag{
	integer("1", "--sim-seed"),
	text("15m", "--sim-load-time"),
	float("1", "--sim-load-scale"),
	float("1", "--sim-serving-scale"),
	float("0.015", "--sim-launch-noise"),
	float("0.005", "--sim-round-noise"),
	float("0", "--sim-drift"),
	text("", "--sim-state"),
	text("", "--sim-faults"),
	text(defaultMachine, "--sim-gpu"),
	text("580.95.05", "--sim-driver"),
	text("13.0", "--sim-cuda"),
	text("2.28.9", "--sim-nccl"),
	toggle("--sim-bypass-nccl"),
	integer("-1", "--sim-workers"),
}

// UsageError is a command line that the server refuses; its exit status is 2.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// values holds parsed flags by destination.
type values map[string]string

// parseFlags reads a command line as Python's argparse does: values as
// "--flag value" or "--flag=value", and unique prefixes of a flag.
func parseFlags(flags []flag, args []string) (values, error) {
	parsed := values{}
	for _, f := range flags {
		parsed[f.destination()] = f.standard
	}
	var unknown []string
	for len(args) > 0 {
		name, value, inline := strings.Cut(args[0], "=")
		args = args[1:]
		f, err := findFlag(flags, name)
		if err != nil {
			return nil, err
		}
		if f == nil {
			if inline {
				name += "=" + value
			}
			unknown = append(unknown, name)
			continue
		}
		if f.kind == switchFlag {
			if inline {
				return nil, usagef("argument %s: ignored explicit argument %s", strings.Join(f.names, "/"), quote(value))
			}
			parsed[f.destination()] = "true"
			continue
		}
		if !inline {
			if len(args) == 0 || strings.HasPrefix(args[0], "--") {
				return nil, usagef("argument %s: expected one argument", strings.Join(f.names, "/"))
			}
			value, args = args[0], args[1:]
		}
		if err := f.check(value); err != nil {
			return nil, err
		}
		parsed[f.destination()] = value
	}
	if len(unknown) > 0 {
		return nil, usagef("unrecognized arguments: %s", strings.Join(unknown, " "))
	}
	return parsed, nil
}

// findFlag returns the flag of that name, or the only one that begins with it.
func findFlag(flags []flag, name string) (*flag, error) {
	var candidates []string
	var found *flag
	for i := range flags {
		for _, spelling := range flags[i].names {
			if spelling == name {
				return &flags[i], nil
			}
			if len(name) > 2 && strings.HasPrefix(spelling, name) {
				candidates = append(candidates, spelling)
				found = &flags[i]
			}
		}
	}
	if len(candidates) > 1 {
		return nil, usagef("ambiguous option: %s could match %s", name, strings.Join(candidates, ", "))
	}
	return found, nil
}

func (f *flag) check(value string) error {
	name := strings.Join(f.names, "/")
	var err error
	switch f.kind {
	case intFlag:
		if _, err = strconv.Atoi(value); err != nil {
			return usagef("argument %s: invalid int value: %s", name, quote(value))
		}
	case floatFlag:
		if _, err = strconv.ParseFloat(value, 64); err != nil {
			return usagef("argument %s: invalid float value: %s", name, quote(value))
		}
	}
	if len(f.choices) > 0 && !slices.Contains(f.choices, value) {
		quoted := make([]string, len(f.choices))
		for i, choice := range f.choices {
			quoted[i] = quote(choice)
		}
		return usagef("argument %s: invalid choice: %s (choose from %s)", name, quote(value), strings.Join(quoted, ", "))
	}
	return nil
}

// quote writes a string as Python's repr does.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "\\'") + "'" }
