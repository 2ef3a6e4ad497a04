package servers_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nocturne/runners/servers"
)

// page reads a page of a kind from a file that stands for the body.
func page(t testing.TB, kind *servers.Kind, index int, file ...string) servers.Page {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(file...))
	if err != nil {
		t.Fatal(err)
	}
	read, err := kind.Info[index].Read(body)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func at(t testing.TB, name, version string) *servers.Kind {
	t.Helper()
	kind, err := servers.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, ok := servers.ParseVersion(version)
	if !ok && version != "" {
		t.Fatalf("%q is no version", version)
	}
	kind, _ = kind.At(parsed)
	return kind
}

// compared is what differs, in words.
func compared(kind *servers.Kind, args string, facts map[string]string) []string {
	var words []string
	for _, c := range kind.Compare(servers.Command{Args: strings.Fields(args)}, facts) {
		if c.Match == servers.Differs {
			words = append(words, fmt.Sprintf("%s: %s; %s", c.Argument.Name(), *c.Effective, c.Rewrite))
		}
	}
	return words
}

// What was asked is compared with what is in force, not with what the server
// repeats of its command line.
func TestArgumentsAreComparedWithWhatIsInForce(t *testing.T) {
	const eagle = "x --speculative-algorithm=EAGLE3 --speculative-draft-model-path=/models/head/ --speculative-num-steps 3 --speculative-eagle-topk 1 "
	sglang := page(t, at(t, "sglang", "0.5.18"), 0, "testdata/pages/sglang-0.5.18-server_info.json")
	old := page(t, at(t, "sglang", "0.5.4.post3"), 0, "testdata/pages/sglang-0.5.4-get_server_info.json")
	vllm := page(t, at(t, "vllm", ""), 1, "testdata/pages/vllm-0.25.1-server_info.json")
	off := page(t, at(t, "vllm", ""), 1, "testdata/pages/vllm-0.25.1-server_info-off.json")
	tests := []struct {
		name, kind, version, args string
		facts                     map[string]string
		want                      []string
	}{
		{"as asked", "sglang", "0.5.18", eagle + "--speculative-num-draft-tokens=4 --max-running-requests=48 --mem-fraction-static 0.8350", sglang.Effective, nil},
		{"draft tokens rewritten", "sglang", "0.5.18", eagle + "--speculative-num-draft-tokens 8", sglang.Effective,
			[]string{"--speculative-num-draft-tokens: 4; with topk 1 draft tokens become steps + 1 (R3 of SGLang)"}},
		{"mixed chunk switched off", "sglang", "0.5.18", eagle + "--enable-mixed-chunk", sglang.Effective,
			[]string{"--enable-mixed-chunk: false; mixed chunks are switched off under speculation (R8 of SGLang)"}},
		{"chunk size divided among ranks", "sglang", "0.5.18", eagle + "--chunked-prefill-size=8192", sglang.Effective,
			[]string{"--chunked-prefill-size: 4096; "}},
		{"speculation that nobody asked for", "sglang", "0.5.18", "x", sglang.Effective, []string{"--speculative-algorithm: EAGLE3; "}},
		{"an alias", "sglang", "0.5.18", "x --speculative-algorithm NEXTN", map[string]string{"speculative_algorithm": "EAGLE"}, nil},
		{"a tier of its own", "sglang", "0.5.18", "x --speculative-algorithm=EAGLE3 --speculative-adaptive --speculative-num-steps=3", map[string]string{"speculative_algorithm": "EAGLE3", "speculative_num_steps": "1"}, nil},
		{"left to the server", "sglang", "0.5.18", eagle + "--kv-cache-dtype auto", sglang.Effective, nil},
		{"off and off", "sglang", "0.5.4.post3", "x --cuda-graph-max-bs 160", old.Effective, nil},
		{"the fact of an old name", "sglang", "0.5.4.post3", "x --cuda-graph-max-bs 320", old.Effective, []string{"--cuda-graph-max-bs-decode: 160; "}},
		{"JSON as asked", "vllm", "0.25.1", `x --speculative-config {"method":"ngram","num_speculative_tokens":4} --max-num-seqs=256 -tp 2`, vllm.Effective, nil},
		{"JSON otherwise", "vllm", "0.25.1", `x -sc {"method":"ngram","num_speculative_tokens":3} -tp 2`, vllm.Effective, []string{"--speculative-config num_speculative_tokens: 4; "}},
		{"shortcuts", "vllm", "0.25.1", `x --spec-method ngram --spec-tokens 4 -tp 2`, vllm.Effective, nil},
		{"the method switches a scheduler off", "vllm", "0.25.1", `x --spec-method ngram --spec-tokens 4 -tp 2 --async-scheduling`, vllm.Effective,
			[]string{"--async-scheduling: false; ngram, suffix, medusa and mlp_speculator switch asynchronous scheduling off (V-ASYNC of vLLM)"}},
		{"the last switch counts", "vllm", "0.25.1", `x --spec-method ngram --spec-tokens 4 -tp 2 --async-scheduling --no-async-scheduling`, vllm.Effective, nil},
		{"off", "vllm", "0.25.1", "x", off.Effective, nil},
		{"asked for and off", "vllm", "0.25.1", `x -sc {"method":"mtp","num_speculative_tokens":3}`, off.Effective,
			[]string{"--speculative-config num_speculative_tokens: null; ", "--speculative-config method: null; names of methods for one model become mtp (V-OLDNAME of vLLM)"}},
		{"--set", "trtllm", "1.4.0", "x --set speculative_config.max_draft_len=3 --max_batch_size 256", map[string]string{"max_draft_len": "3", "max_batch_size": "64"},
			[]string{"--max_batch_size: 64; "}},
		{"slots speculate", "llamacpp", "b10434", "x --spec-type draft-simple", map[string]string{"speculative": "true"}, nil},
		{"a draft left out", "llamacpp", "b10434", "x --spec-type draft-simple", map[string]string{"speculative": "false"},
			[]string{"--spec-type: false; a draft that cannot be used is left out with a line in the log (L-SPECINIT of llama.cpp)"}},
		{"--spec-type none", "llamacpp", "b10434", "x --spec-type none -np -1", map[string]string{"speculative": "false", "total_slots": "4"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := compared(at(t, test.kind, test.version), test.args, test.facts); !slices.Equal(got, test.want) {
				t.Errorf("%s\ndiffers: %q\nexpected %q", test.args, got, test.want)
			}
		})
	}
}

// What no page tells is unknown, not as asked.
func TestUnreadableArguments(t *testing.T) {
	text := page(t, at(t, "vllm", "0.10.0"), 1, "testdata/pages/vllm-0.10.0-server_info.json")
	for _, c := range at(t, "vllm", "0.10.0").Compare(servers.Command{Args: []string{"x", "--max-num-seqs=64"}}, text.Effective) {
		if c.Match != servers.Unreadable || c.Effective != nil {
			t.Errorf("%s: %+v", c.Argument.Name(), c)
		}
	}
}

func TestPages(t *testing.T) {
	tests := []struct {
		kind  string
		index int
		file  string
		want  map[string]string // version under ""
	}{
		{"sglang", 0, "testdata/pages/sglang-0.5.18-server_info.json", map[string]string{
			"": "0.5.18", "speculative_num_draft_tokens": "4", "token_capacity": "1960896 1960000", "avg_spec_accept_length": "2.91 2.87",
			"effective_max_running_requests_per_dp": "24"}},
		{"sglang", 0, "testdata/pages/sglang-0.5.4-get_server_info.json", map[string]string{"": "0.5.4.post3", "speculative_num_steps": servers.Null}},
		{"vllm", 0, "testdata/pages/vllm-0.25.1-version.json", map[string]string{"": "0.25.1"}},
		{"vllm", 1, "testdata/pages/vllm-0.25.1-server_info-off.json", map[string]string{"": "", "speculative_method": servers.Null, "max_num_seqs": "1024"}},
		{"llamacpp", 0, "../testdata/llamacpp/props.json", map[string]string{"": "b1-7e4c0a9", "total_slots": "4", "model_path": "/models/target.gguf", "context_length": "4096"}},
		{"llamacpp", 1, "../testdata/llamacpp/slots.json", map[string]string{"": "", "speculative": "true"}},
	}
	for _, test := range tests {
		read := page(t, at(t, test.kind, ""), test.index, test.file)
		got := maps.Clone(read.Effective)
		got[""] = read.Version
		for name, want := range test.want {
			if got[name] != want {
				t.Errorf("%s: %q is %q, expected %q", test.file, name, got[name], want)
			}
		}
	}
	if _, err := at(t, "vllm", "").Info[0].Read([]byte("<html>")); err == nil || !strings.Contains(err.Error(), "/version") {
		t.Errorf("a page that is no JSON: %v", err)
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		kind, args  string
		concurrency int
		want        string
	}{
		{"sglang", "x", 8, "--max-running-requests 48"},
		{"sglang", "x", 128, "--max-running-requests 128"},
		{"sglang", "x --max-running-requests=16", 128, ""},
		{"vllm", "x", 8, ""}, // speculation moves no limit of vLLM's
	}
	for _, test := range tests {
		kind := at(t, test.kind, "")
		if got := strings.Join(kind.ForceLimits(strings.Fields(test.args), test.concurrency), " "); got != test.want {
			t.Errorf("%s %s at %d: forces %q, expected %q", test.kind, test.args, test.concurrency, got, test.want)
		}
	}
	sglang := at(t, "sglang", "")
	apart := sglang.LimitsApart(map[string]string{"effective_max_running_requests_per_dp": "48", "mem_fraction_static": "0.85"},
		map[string]string{"effective_max_running_requests_per_dp": "2049", "mem_fraction_static": "0.850"})
	if len(apart) != 1 || !strings.Contains(apart[0], "--max-running-requests is 48 in one and 2049 in the other") {
		t.Errorf("limits apart: %q", apart)
	}
	for _, name := range servers.Names() {
		for _, limit := range at(t, name, "").Limits {
			if limit.Fact == "" || limit.Moves == "" || len(limit.Flags) == 0 {
				t.Errorf("%s: %+v does not say where it is read and what moves it", name, limit)
			}
		}
	}
}

// Every argument must be told by something: a page or a line of the log.
func TestEveryFactIsTold(t *testing.T) {
	for _, name := range servers.Names() {
		kind := at(t, name, "")
		told := map[string]bool{}
		for _, info := range kind.Info {
			for fact := range info.Effective {
				told[fact] = true
			}
		}
		for _, progress := range kind.Progress {
			for _, group := range progress.Groups() {
				told[group] = true
			}
		}
		for _, argument := range kind.Arguments {
			if !told[argument.Fact] {
				t.Errorf("%s: nothing tells %s, the fact of %s", name, argument.Fact, argument.Name())
			}
		}
		for _, limit := range kind.Limits {
			if !told[limit.Fact] {
				t.Errorf("%s: nothing tells %s, the fact of %s", name, limit.Fact, limit.Flags[0])
			}
		}
		for _, rewrite := range kind.Rewrites {
			if !slices.ContainsFunc(kind.Arguments, func(a servers.Argument) bool { return a.Fact == rewrite.Fact }) {
				t.Errorf("%s: rewrite %s is of no argument", name, rewrite.ID)
			}
		}
	}
}

func TestSpeculates(t *testing.T) {
	for args, want := range map[string]bool{
		"sglang x --speculative-algorithm EAGLE3":                        true,
		"sglang x --speculative-algorithm=none --max-running-requests=4": false,
		`vllm x -sc {"num_speculative_tokens":3}`:                        true,
		"vllm x --spec-tokens 2":                                         true,
		"vllm x -tp 2":                                                   false,
		"trtllm x --set speculative_config.max_draft_len=0":              false,
		"trtllm x --set=speculative_config.max_draft_len=3":              true,
		"llamacpp x --spec-type none":                                    false,
		"llamacpp x --spec-type draft-simple":                            true,
		"custom x --speculative":                                         false,
	} {
		name, rest, _ := strings.Cut(args, " ")
		if got := at(t, name, "").Speculates(servers.Command{Args: strings.Fields(rest)}); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestWorkers(t *testing.T) {
	schedulers := []string{"python3 -m sglang.launch_server", "sglang::scheduler_TP0", "sglang::scheduler_TP1", "sglang::detokenizer"}
	tests := []struct {
		kind, args     string
		lines          []string
		seen, expected int
	}{
		{"sglang", "x --tp 2", schedulers, 2, 2},
		{"sglang", "x --tp=4", schedulers, 2, 4},
		{"sglang", "x --tp=2 --dp-size=2", schedulers, 2, 4},
		{"sglang", "x --tp=2 --dp-size=2 --enable-dp-attention", schedulers, 2, 2},
		{"sglang", "x --tp=8 --nnodes 2", schedulers, 2, 0},
		{"sglang", "x --tp=8", []string{"python3 -m sglang.launch_server"}, 0, 0}, // no titles
		{"vllm", "x -tp 2", []string{"VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"}, 2, 2},
		{"vllm", "x", []string{"VLLM::EngineCore"}, 0, 0},
		{"vllm", "x -tp 2 -dp 2", []string{"VLLM::Worker_DP0_TP0", "VLLM::Worker_DP0_TP1", "VLLM::Worker_DP1_TP0"}, 3, 4},
		{"llamacpp", "x", []string{"llama-server"}, 0, 0},
	}
	for _, test := range tests {
		var processes [][]string
		for _, line := range test.lines {
			processes = append(processes, strings.Fields(line))
		}
		seen, expected := at(t, test.kind, "").MissingWorkers(servers.Command{Args: strings.Fields(test.args)}, processes)
		if seen != test.seen || expected != test.expected {
			t.Errorf("%s %s: %d of %d workers, expected %d of %d", test.kind, test.args, seen, expected, test.seen, test.expected)
		}
	}
}

func TestHelpersProveNothing(t *testing.T) {
	tests := []struct {
		args   []string
		helper bool
	}{
		{[]string{"/venv/bin/python3", "-s", "-c", "from multiprocessing.resource_tracker import main;main(33)"}, true},
		{[]string{"/usr/local/cuda/bin/ptxas", "-v", "--gpu-name", "sm_90a", "x.ptx"}, true},
		{[]string{"/venv/bin/python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--multiprocessing-fork"}, false},
		{[]string{"python3", "-m", "sglang.launch_server", "--model-path=/models/ninja", "--log=/var/ptxas"}, false},
		{[]string{"sglang::scheduler_TP0"}, false},
		{nil, false},
	}
	for _, test := range tests {
		if got := at(t, "sglang", "").IsHelper(test.args); got != test.helper {
			t.Errorf("IsHelper(%q) = %v", test.args, got)
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, file := range []string{"testdata/pages/sglang-0.5.18-server_info.json", "testdata/pages/vllm-0.25.1-server_info.json", "../testdata/llamacpp/slots.json"} {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body))
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, name := range servers.Names() {
			kind, _ := servers.Get(name)
			for i := range kind.Info {
				if read, err := kind.Info[i].Read([]byte(body)); err == nil {
					kind.Compare(servers.Command{Args: []string{"x", "--speculative-config", body}}, read.Effective)
				}
			}
		}
	})
}
