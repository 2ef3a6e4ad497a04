package sim

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// Wrong command lines end as argparse ends them.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--spec-steps 3", "unrecognized arguments: --spec-steps 3"},
		{"--bogus=1 --other", "unrecognized arguments: --bogus=1 --other"},
		{"--tp x", "argument --tp-size/--tensor-parallel-size/--tp: invalid int value: 'x'"},
		{"--mem-fraction-static=much", "argument --mem-fraction-static: invalid float value: 'much'"},
		{"--attention-backend fa9", "argument --attention-backend: invalid choice: 'fa9' (choose from 'triton', 'torch_native', 'flashinfer', 'fa3', 'trtllm_mla', 'trtllm_mha')"},
		{"--tp", "argument --tp-size/--tensor-parallel-size/--tp: expected one argument"},
		{"--tp --enable-metrics", "argument --tp-size/--tensor-parallel-size/--tp: expected one argument"},
		{"--enable-metrics=1", "argument --enable-metrics: ignored explicit argument '1'"},
		{"--disable-cuda", "ambiguous option: --disable-cuda could match --disable-cuda-graph, --disable-cuda-graph-padding"},
		{"--tp 0", "tp_size must be at least 1, got 0"},
		{"--sim-faults=bogus", `--sim-faults: "bogus" is not a fault`},
		{"--sim-faults=http-500=2", `--sim-faults: http-500: "2" is not a share`},
		{"--sim-faults=hang-at-init=3", `--sim-faults: hang-at-init: takes no argument, got "3"`},
		{"--sim-faults=steady=5", `--sim-faults: steady: "5" is not of the form 50ms/8ms/4`},
		{"--sim-gpu=tpu", `--sim-gpu "tpu" is not a simulated machine: expected one of h200, l40s, rtx-5090, rtx-pro-6000`},
		{"--sim-nccl=3", `--sim-nccl "3" is not a version of NCCL`},
		{"--sim-load-time=15", `--sim-load-time "15" is not a duration such as 15m`},
		{"--sim-serving-scale=0", "--sim-load-scale and --sim-serving-scale must be above 0"},
	} {
		var stderr bytes.Buffer
		args := append([]string{"--model-path=m"}, strings.Fields(c.args)...)
		if status := Main(context.Background(), args, nil, &stderr, &stderr); status != exitUsage {
			t.Errorf("%s: exit status %d, want 2", c.args, status)
		}
		if got := stderr.String(); !strings.HasPrefix(got, "usage: ") || !strings.Contains(got, "launch_server.py: error: "+c.want) {
			t.Errorf("%s prints %q, want %q", c.args, got, c.want)
		}
		var usage *UsageError
		if _, err := Predict(args, nil); !errors.As(err, &usage) {
			t.Errorf("Predict(%s) gives %v, want a usage error", c.args, err)
		}
	}
	if _, err := Predict(nil, nil); err == nil || !strings.Contains(err.Error(), "required: --model-path") {
		t.Errorf("without a model: %v", err)
	}
}

// Both spellings, aliases and unique prefixes mean the same.
func TestSpellings(t *testing.T) {
	want := predict(t, eagle(2, "--mem-fraction-static", "0.85", "--cuda-graph-max-bs-decode", "32"), sixSettings)
	for _, more := range [][]string{
		{"--mem-fraction-static=0.85", "--cuda-graph-max-bs=32"},
		{"--mem=0.85", "--cuda-graph-max-bs", "32"},
	} {
		if got := predict(t, eagle(2, more...), sixSettings); got.OutputThroughput != want.OutputThroughput || got.Memory != want.Memory {
			t.Errorf("%q: %+v, want %+v", more, got.Memory, want.Memory)
		}
	}
	last := predict(t, with(story, "--tp=8", "--tp-size", "8", "--tensor-parallel-size=8"), nil)
	if last.OutputThroughput != predict(t, story, nil).OutputThroughput {
		t.Error("repeated flags")
	}
}

func TestHelp(t *testing.T) {
	var stdout bytes.Buffer
	if status := Main(context.Background(), []string{"--help"}, nil, &stdout, &stdout); status != exitOK {
		t.Fatalf("status %d", status)
	}
	for _, f := range faultTable {
		if !strings.Contains(stdout.String(), f.name) {
			t.Errorf("help does not name the fault %s", f.name)
		}
	}
}

// Rules of speculation that kill a launch, in the words of the log.
func TestSpeculativeArguments(t *testing.T) {
	draft := "--speculative-draft-model-path=/d"
	for _, c := range []struct{ args, reason string }{
		{"--speculative-algorithm=EAGLE3 " + draft + " --speculative-eagle-topk=1", "AssertionError"},
		{"--speculative-algorithm=EAGLE3 " + draft + " --speculative-num-steps=2", "TypeError: '>' not supported between instances of 'NoneType' and 'int'"},
		{"--speculative-algorithm=EAGLE3 --speculative-num-steps=2 --speculative-eagle-topk=1", "KeyError: 'model.fc.weight'"},
		{"--speculative-algorithm=EAGLE3 " + draft + " --speculative-num-steps=2 --speculative-eagle-topk=4 --speculative-num-draft-tokens=6 --attention-backend=trtllm_mha", "ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding."},
		{"--speculative-algorithm=EAGLE3 " + draft + " --speculative-num-steps=1 --speculative-eagle-topk=4 --speculative-num-draft-tokens=6", "RuntimeError: selected index k out of range"},
	} {
		p := predict(t, with(story, strings.Fields(c.args)...), nil)
		if p.Outcome != Crash || p.Reason != c.reason {
			t.Errorf("%s: %s (%s), want a crash (%s)", c.args, p.Outcome, p.Reason, c.reason)
		}
		r := launchMain(t, nil, strings.Fields(c.args)...)
		if status := r.exit(t); status != exitFailed || !r.log.has(c.reason) {
			t.Errorf("%s: exit status %d\n%s", c.args, status, r.log)
		}
	}
	for args, tokens := range map[string]int{
		"--speculative-algorithm=EAGLE3 " + draft: 4,
		"--speculative-algorithm=EAGLE3 " + draft + " --speculative-num-steps=3 --speculative-eagle-topk=1 --speculative-num-draft-tokens=9": 4,
		"--speculative-algorithm=NGRAM": 12,
	} {
		o, err := parseOptions(with(story, strings.Fields(args)...))
		if err != nil || o.speculation.draftTokens != tokens || o.refusal != "" {
			t.Errorf("%s: %+v %s %v, want %d draft tokens", args, o.speculation, o.refusal, err, tokens)
		}
	}
}
