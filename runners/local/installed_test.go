package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/runners/local"
)

// program writes a script that counts how often it is run, and prints something.
func program(t *testing.T, directory, name, script string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho run >>\""+directory+"/runs\"\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// The version of a server is known before its first launch, and asked for once.
func TestServerVersion(t *testing.T) {
	for name, test := range map[string]struct {
		kind, name, script string
		args               []string
		want               string
		runs               int
	}{
		"llama.cpp, on stderr":    {"llamacpp", "llama-server", `[ "$1" = --version ] && echo "version: 9000 (7e4c0a9)" >&2`, nil, "version: 9000 (7e4c0a9)", 1},
		"a package of Python":     {"sglang", "python3", `[ "$1" = -c ] && echo 0.5.18`, []string{"-m", "sglang.launch_server"}, "0.5.18", 1},
		"not installed":           {"sglang", "python3", "exit 1", []string{"-m", "sglang.launch_server"}, "", 1},
		"nothing that orders":     {"llamacpp", "llama-server", "echo hello", nil, "", 1},
		"a program, not a script": {"vllm", "serve.sh", "echo 1.0", nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			host := newHost(t)
			job := runners.Job{Kind: test.kind, Args: append([]string{program(t, directory, test.name, test.script)}, test.args...), GPUs: runners.GPUSelection{All: true}}
			for range 2 {
				if got := host.ServerVersion(t.Context(), job); got != test.want {
					t.Errorf("version %q, want %q", got, test.want)
				}
			}
			runs, _ := os.ReadFile(filepath.Join(directory, "runs"))
			if n := strings.Count(string(runs), "run"); n != test.runs {
				t.Errorf("asked %d times, want %d", n, test.runs)
			}
		})
	}
}

// A script of Python is asked for by the Python that it names.
func TestServerVersionOfAScript(t *testing.T) {
	directory := t.TempDir()
	python := program(t, directory, "python3.12", `[ "$1" = -c ] && echo 0.11.2`)
	script := filepath.Join(directory, "vllm")
	if err := os.WriteFile(script, []byte("#!"+python+"\nimport vllm\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	host := newHost(t, func(o *local.Options) { o.Environ = []string{"PATH=" + os.Getenv("PATH")} })
	if got := host.ServerVersion(t.Context(), runners.Job{Kind: "vllm", Args: []string{script, "serve", "/m"}, GPUs: runners.GPUSelection{All: true}}); got != "0.11.2" {
		t.Errorf("version %q", got)
	}
}
