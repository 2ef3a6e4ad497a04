package servers_test

import (
	"slices"
	"strings"
	"testing"

	"nocturne/runners/servers"
)

func TestVersionsAreOrdered(t *testing.T) {
	for _, line := range []string{
		"0.4.9 0.4.10 0.4.10.post1 0.4.10.post2 0.5.0rc1 0.5.0 0.5.18",
		"0.9.0 0.9.0.1 0.9.1 0.10.1.dev2081+gc44ef9fc0.d20250930 0.10.1 0.10.2rc1 0.24.0 v0.25.1",
		"1.1.0rc5 1.1.0 1.2.0rc6.post1 1.2.0 1.2.1 1.3.0rc24 1.4.0",
		"b8966 b8967-7e4c0a9 b10434",
	} {
		var last servers.Version
		for i, text := range strings.Fields(line) {
			version, ok := servers.ParseVersion(text)
			if !ok || version.String() != text {
				t.Fatalf("ParseVersion(%q) = %v, %v", text, version, ok)
			}
			if i > 0 && (!last.Before(version) || version.Before(last)) {
				t.Errorf("%s should come before %s", last, version)
			}
			if version.Before(version) {
				t.Errorf("%s comes before itself", version)
			}
			last = version
		}
	}
	for _, text := range []string{"", "main", "b1-7e4c0a9", "dev", "7e4c0a9", "1234567 requests"} {
		if version, ok := servers.ParseVersion(text); ok || version.Known() {
			t.Errorf("ParseVersion(%q) = %v: it orders nothing", text, version)
		}
	}
}

// The differences that hold, by the version that was detected.
func TestDifferences(t *testing.T) {
	tests := []struct{ kind, version, want string }{
		{"sglang", "", ""},
		{"sglang", "0.5.18", ""},
		{"sglang", "0.5.13", "S-GRAPHFLAGS"},
		{"sglang", "0.5.10.post2", "S-SPECV1 S-GRAPHFLAGS"},
		{"sglang", "0.5.5", "S-NOUSAGE S-SPECV1 S-GRAPHFLAGS"},
		{"sglang", "0.5.4.post3", "S-NCCLWRITTEN S-NOUSAGE S-SPECV1 S-GRAPHFLAGS"},
		{"sglang", "0.4.10", "S-HEALTHCONST S-NCCLWRITTEN S-NOUSAGE S-SPECV1 S-GRAPHFLAGS"},
		{"sglang", "0.4.10.post2", "S-NCCLWRITTEN S-NOUSAGE S-SPECV1 S-GRAPHFLAGS"},
		{"vllm", "0.9.0.1", "V-CUMEMFORCED V-NOTITLES V-TEXTINFO"},
		{"vllm", "0.10.1", "V-CUMEM V-TEXTINFO"},
		{"vllm", "0.24.0", ""},
		{"trtllm", "1.3.0rc24", "T-FILEWINS T-HEALTH"},
		{"trtllm", "1.4.0", ""},
		{"llamacpp", "b10434-7e4c0a9", ""},
		{"llamacpp", "b10000", "L-NOCOUNTERS"},
		{"llamacpp", "b8000", "L-OLDFLAGS L-DRAFT16 L-PERREQUEST L-NOCOUNTERS"},
	}
	for _, test := range tests {
		kind, _ := servers.Get(test.kind)
		version, _ := servers.ParseVersion(test.version)
		_, differences := kind.At(version)
		var ids []string
		for _, difference := range differences {
			ids = append(ids, difference.ID)
			if difference.Summary == "" {
				t.Errorf("%s says nothing", difference.ID)
			}
		}
		if got := strings.Join(ids, " "); got != test.want {
			t.Errorf("%s %s: %q, expected %q", test.kind, test.version, got, test.want)
		}
	}
}

// A kind at an old version must leave the kind itself as it is.
func TestDifferencesChangeACopy(t *testing.T) {
	for _, name := range servers.Names() {
		kind, _ := servers.Get(name)
		written, arguments, rules := slices.Clone(kind.Written), len(kind.Arguments), len(kind.Rules)
		var graph string
		if len(kind.Info) > 0 {
			graph = kind.Info[0].Effective["cuda_graph_max_bs"]
		}
		for _, difference := range kind.Differences {
			version, _ := servers.ParseVersion(difference.Since)
			if difference.Since == "" {
				version, _ = servers.ParseVersion(map[string]string{"llamacpp": "b200"}[name])
				if !version.Known() {
					version, _ = servers.ParseVersion("0.1.0")
				}
			}
			if at, holding := kind.At(version); at == kind || len(holding) == 0 {
				t.Errorf("%s: %s does not hold at %s", name, difference.ID, version)
			}
		}
		same := slices.EqualFunc(written, kind.Written, func(a, b servers.WrittenVariable) bool {
			return a.Name == b.Name && a.Value == b.Value && a.Always == b.Always
		})
		if !same || len(kind.Arguments) != arguments || len(kind.Rules) != rules || len(kind.Info) > 0 && kind.Info[0].Effective["cuda_graph_max_bs"] != graph {
			t.Errorf("%s was changed by its own differences", name)
		}
	}
}

func TestRenderAtOldVersions(t *testing.T) {
	ask := servers.Speculation{Method: "draft", DraftModel: "d.gguf", Steps: 4}
	old := at(t, "llamacpp", "b8000")
	if args, err := old.Render(ask); err != nil || strings.Join(args, " ") != "--model-draft d.gguf --draft-max 4" {
		t.Errorf("b8000: %q, %v", args, err)
	}
	for _, finding := range old.Check([]string{"x", "--fit", "off", "--model-draft", "d.gguf", "--draft-max", "4"}, nil) {
		t.Errorf("b8000 knows these flags: %+v", finding)
	}
	if _, err := at(t, "trtllm", "1.2.0").Render(servers.Speculation{Method: "eagle3", DraftModel: "/d", Steps: 3}); err == nil {
		t.Error("TensorRT-LLM 1.2 takes speculation from its file only")
	}
}

func TestVersionIsAskedOfTheProgramThatRuns(t *testing.T) {
	interpreter := func(program string) string {
		return map[string]string{"/venv/bin/vllm": "/venv/bin/python3", "vllm": "/usr/bin/python3"}[program]
	}
	tests := []struct{ kind, args, want string }{
		{"sglang", "/venv/bin/python3 -m sglang.launch_server", "/venv/bin/python3 -c import importlib.metadata as m; print(m.version('sglang'))"},
		{"vllm", "/venv/bin/vllm serve m", "/venv/bin/python3 -c import importlib.metadata as m; print(m.version('vllm'))"},
		{"vllm", "/opt/wrapper.sh", ""},
		{"llamacpp", "/opt/llama-server -m x", "/opt/llama-server --version"},
		{"custom", "/opt/server", ""},
		{"sglang", "", ""},
	}
	for _, test := range tests {
		if got := strings.Join(at(t, test.kind, "").VersionCommand(strings.Fields(test.args), interpreter), " "); got != test.want {
			t.Errorf("%s: %q, expected %q", test.args, got, test.want)
		}
	}
	for head, want := range map[string]string{
		"#!/venv/bin/python3\nimport sys":  "/venv/bin/python3",
		"#!/usr/bin/env python3\n":         "python3",
		"#!/bin/bash\nexec python3":        "",
		"\x7fELF":                          "",
		"#!\n":                             "",
		"#! /venv/bin/python3.12 -s\nfrom": "/venv/bin/python3.12",
	} {
		if got := servers.Interpreter(head); got != want {
			t.Errorf("Interpreter(%q) = %q, expected %q", head, got, want)
		}
	}
	for output, want := range map[string]string{
		"0.24.0\n": "0.24.0",
		"version: 10434 (7e4c0a9)\nbuilt with GNU 13.3.0\n":  "version: 10434 (7e4c0a9)",
		"version: 0.1.0-dev (build 10573, commit 7e4c0a9)\n": "version: 0.1.0-dev (build 10573, commit 7e4c0a9)",
		"version: 0.1.0-dev (build 1, commit 7e4c0a9)\n":     "",
		"warning: slow\n0.5.18\n":                            "0.5.18",
		"Traceback\n":                                        "",
	} {
		if version, _ := servers.InstalledVersion(output); version.String() != want {
			t.Errorf("InstalledVersion(%q) = %q, expected %q", output, version, want)
		}
	}
}
