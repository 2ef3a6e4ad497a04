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

func textArg(standard string, names ...string) flag { return flag{names, textFlag, standard, nil} }
func intArg(standard string, names ...string) flag {
	return flag{names, intFlag, standard, nil}
}
func floatArg(standard string, names ...string) flag { return flag{names, floatFlag, standard, nil} }
func switchArg(names ...string) flag                 { return flag{names, switchFlag, "false", nil} }
func (f flag) among(choices ...string) flag {
	f.choices = choices
	return f
}

var attentionBackends = []string{"triton", "torch_native", "flashinfer", "fa3", "trtllm_mla", "trtllm_mha"}

// serverFlags are those of SGLang 0.5.18 (python/sglang/srt/server_args.py) that
// people set when they tune, with their older spellings.
var serverFlags = []flag{
	textArg("", "--model-path", "--model"),
	textArg("", "--tokenizer-path"),
	textArg("", "--served-model-name"),
	textArg("auto", "--load-format"),
	textArg("auto", "--dtype"),
	textArg("", "--quantization"),
	textArg("auto", "--kv-cache-dtype"),
	intArg("", "--context-length"),
	switchArg("--trust-remote-code"),
	textArg("127.0.0.1", "--host"),
	intArg("30000", "--port"),
	intArg("", "--nccl-port"),
	textArg("", "--dist-init-addr"),
	intArg("1", "--nnodes"),
	intArg("0", "--node-rank"),
	intArg("1", "--tp-size", "--tensor-parallel-size", "--tp"),
	intArg("1", "--dp-size", "--data-parallel-size", "--dp"),
	intArg("1", "--pp-size", "--pipeline-parallel-size", "--pp"),
	intArg("1", "--ep-size", "--expert-parallel-size", "--ep"),
	floatArg("", "--mem-fraction-static"),
	intArg("", "--max-running-requests"),
	intArg("", "--max-queued-requests"),
	intArg("", "--max-total-tokens"),
	intArg("8192", "--chunked-prefill-size"),
	intArg("16384", "--max-prefill-tokens"),
	intArg("1", "--page-size"),
	floatArg("1.0", "--schedule-conservativeness"),
	textArg("fcfs", "--schedule-policy").among("lpm", "random", "fcfs", "dfs-weight", "lof", "priority", "routing-key"),
	intArg("1", "--num-continuous-decode-steps"),
	intArg("1", "--stream-interval"),
	intArg("40", "--decode-log-interval"),
	intArg("42", "--random-seed"),
	floatArg("300", "--watchdog-timeout"),
	textArg("info", "--log-level"),
	switchArg("--enable-metrics"),
	switchArg("--enable-cache-report"),
	switchArg("--incremental-streaming-output", "--stream-output"),
	switchArg("--skip-server-warmup"),
	switchArg("--disable-radix-cache"),
	switchArg("--disable-overlap-schedule"),
	switchArg("--enable-mixed-chunk"),
	intArg("", "--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"),
	switchArg("--disable-cuda-graph"),
	switchArg("--disable-cuda-graph-padding"),
	textArg("", "--attention-backend").among(attentionBackends...),
	textArg("", "--decode-attention-backend").among(attentionBackends...),
	textArg("", "--prefill-attention-backend").among(attentionBackends...),
	textArg("", "--sampling-backend").among("flashinfer", "pytorch"),
	textArg("auto", "--moe-runner-backend"),
	switchArg("--disable-custom-all-reduce"),
	switchArg("--enable-nccl-nvls"),
	switchArg("--enable-symm-mem"),
	switchArg("--enable-p2p-check"),
	textArg("", "--speculative-algorithm").among("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"),
	textArg("", "--speculative-draft-model-path", "--speculative-draft-model"),
	intArg("", "--speculative-num-steps"),
	intArg("", "--speculative-eagle-topk"),
	intArg("", "--speculative-num-draft-tokens"),
	textArg("prefill", "--speculative-attention-mode").among("prefill", "decode"),
	textArg("", "--reasoning-parser"),
	textArg("", "--tool-call-parser"),
	textArg("", "--chat-template"),
	textArg("", "--api-key"),
}

// simulationFlags describe the simulation and the machine that it plays.
var simulationFlags = []flag{
	intArg("1", "--sim-seed"),
	textArg("15m", "--sim-load-time"),
	floatArg("1", "--sim-load-scale"),
	floatArg("1", "--sim-serving-scale"),
	floatArg("0.015", "--sim-launch-noise"),
	floatArg("0.005", "--sim-round-noise"),
	floatArg("0", "--sim-drift"),
	textArg("", "--sim-state"),
	textArg("", "--sim-faults"),
	textArg(defaultMachine, "--sim-gpu"),
	textArg("580.95.05", "--sim-driver"),
	textArg("13.0", "--sim-cuda"),
	textArg("2.28.9", "--sim-nccl"),
	switchArg("--sim-bypass-nccl"),
	intArg("-1", "--sim-workers"),
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
