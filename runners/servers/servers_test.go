package servers_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/runners/servers"
)

// samples reads rows of a test data file: the given number of words, then the
// rest of the line. Lines that start with # are remarks.
func samples(t testing.TB, path string, words int) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rows [][]string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		rest := scanner.Text()
		if strings.HasPrefix(rest, "#") {
			continue
		}
		row := make([]string, 0, words+1)
		for range words {
			word, tail, found := strings.Cut(rest, " ")
			if !found {
				t.Fatalf("%s: short row %q", path, scanner.Text())
			}
			row, rest = append(row, word), strings.TrimLeft(tail, " ")
		}
		rows = append(rows, append(row, rest))
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// kindOf returns the kind that a signature belongs to; common ones are read as
// any server would.
func kindOf(t testing.TB, id string) *servers.Kind {
	t.Helper()
	name := map[byte]string{'S': "sglang", 'V': "vllm", 'T': "trtllm", 'L': "llamacpp", 'C': "sglang", 'N': "sglang"}[strings.TrimPrefix(id, "PFX-")[0]]
	kind, err := servers.Get(name)
	if err != nil {
		t.Fatalf("signature %s: %v", id, err)
	}
	return kind
}

func TestGet(t *testing.T) {
	for _, name := range servers.Names() {
		kind, err := servers.Get(name)
		if err != nil || kind.Name != name {
			t.Errorf("Get(%q) = %v, %v", name, kind, err)
		}
	}
	if _, err := servers.Get("ollama"); err == nil || !strings.Contains(err.Error(), "llamacpp") {
		t.Errorf("Get of an unknown kind: %v, expected the names that exist", err)
	}
}

// Every kind must say enough to be run, and its tables must hold together.
func TestKindsAreComplete(t *testing.T) {
	for _, name := range servers.Names() {
		kind, err := servers.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(kind.Ready.Paths) == 0 || kind.Ready.Status == 0 || kind.Ready.Timeout == 0 || kind.Models == "" {
			t.Errorf("%s: no readiness: %+v", name, kind.Ready)
		}
		if len(kind.Failures) == 0 {
			t.Errorf("%s: no failure signatures", name)
		}
		ids := map[string]bool{}
		for _, signature := range kind.Failures {
			if ids[signature.ID] {
				t.Errorf("%s: signature %s twice", name, signature.ID)
			}
			ids[signature.ID] = true
			if signature.Start == servers.CauseNote || signature.Load == servers.CauseNote {
				continue
			}
			if _, known := servers.LookUpReason(signature.Reason); !known {
				t.Errorf("%s: signature %s has reason %q, which is not in the list", name, signature.ID, signature.Reason)
			}
		}
	}
}

func TestPrefixesAreStripped(t *testing.T) {
	want := map[string]string{
		"[2026-08-20 01:02:03 DP0 TP3 EP3] Load weight begin. avail mem=138.10 GB":                             "Load weight begin. avail mem=138.10 GB",
		"(Worker_TP3 pid=4242) INFO 08-20 01:02:03 [default_loader.py:431] Loading weights took 26.93 seconds": "Loading weights took 26.93 seconds",
		"(APIServer pid=4100) INFO:     Application startup complete.":                                         "INFO:     Application startup complete.",
		"(VllmWorker rank=2 pid=4100) ERROR 06-05 02:08:42 [multiproc_executor.py:522] KeyError: 'x'":          "KeyError: 'x'",
		"[08/20/2026-01:02:03] [TRT-LLM] [RANK 0] [I] Creating CUDA graph instances for 34 batch sizes.":       "Creating CUDA graph instances for 34 batch sizes.",
		"[TRT-LLM] [E] [_torch][RANK 7] Executor loop crashed":                                                 "Executor loop crashed",
		"srv    load_model: loading model 'x.gguf'":                                                            "loading model 'x.gguf'",
		"[TensorRT-LLM][INFO] [MemUsageChange] Allocated 2.25 GiB for max tokens in paged KV cache (262112).":  "Allocated 2.25 GiB for max tokens in paged KV cache (262112).",
		"(EngineCore_DP0 pid=4200) INFO 08-20 01:02:03 [core.py:355] text":                                     "text",
		"INFO 04-08 03:58:25 [loggers.py:87] text":                                                             "text",
		"[2026-08-20 01:02:03] server_args=ServerArgs(...)":                                                    "server_args=ServerArgs(...)",
		"[2026-03-21 03:31:56] INFO engine.py:177: server_args=ServerArgs(...)":                                "server_args=ServerArgs(...)",
	}
	rows := samples(t, "testdata/prefixes.txt", 1)
	for _, row := range rows {
		if got := kindOf(t, row[0]).Strip(row[1]); got != want[row[1]] {
			t.Errorf("%s: Strip(%q) = %q, expected %q", row[0], row[1], got, want[row[1]])
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d samples, %d expectations", len(rows), len(want))
	}
}

func TestWrittenVariables(t *testing.T) {
	tests := []struct {
		kind, version, args, variable string
		value                         string // "": not written
		always                        bool
	}{
		{"sglang", "", "x", "NCCL_CUMEM_ENABLE", "0", false},
		{"sglang", "0.5.18", "x --enable-symm-mem", "NCCL_CUMEM_ENABLE", "1", true},
		{"sglang", "0.5.18", "x --enable-nccl-nvls", "NCCL_NVLS_ENABLE", "1", true},
		{"sglang", "0.5.4.post3", "x", "NCCL_CUMEM_ENABLE", "0", true},
		{"sglang", "0.5.5", "x", "NCCL_CUMEM_ENABLE", "0", false},
		{"sglang", "", "x", "CUDA_DEVICE_MAX_CONNECTIONS", "8", true},
		{"sglang", "", "x", "NCCL_PROTO", "", false},
		{"vllm", "0.24.0", "x", "NCCL_CUMEM_ENABLE", "", false},
		{"vllm", "0.10.1", "x", "NCCL_CUMEM_ENABLE", "0", false},
		{"vllm", "0.9.0.1", "x", "NCCL_CUMEM_ENABLE", "0", true},
		{"llamacpp", "", "x", "NCCL_CUMEM_ENABLE", "", false},
	}
	for _, test := range tests {
		version, _ := servers.ParseVersion(test.version)
		kind, _ := servers.Get(test.kind)
		kind, _ = kind.At(version)
		written, is := kind.WrittenUnder(servers.Command{Args: strings.Fields(test.args)}, test.variable)
		if is != (test.value != "") || written.Always != test.always || is && !written.Writes(test.value) {
			t.Errorf("%s %s %q: %s is %+v, %v; expected %q, always %v", test.kind, test.version, test.args, test.variable, written, is, test.value, test.always)
		}
	}
}

// An expression is compiled at its first use; this is where a bad one shows.
func TestAllPatternsCompile(t *testing.T) {
	for _, name := range servers.Names() {
		kind, err := servers.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, progress := range kind.Progress {
			progress.Pattern.MatchString("")
		}
		for _, failure := range kind.Failures {
			failure.Pattern.MatchString("")
		}
	}
}

// What the load generator or the cooling does to the numbers is never taught as the
// configuration's fault, however often it happens.
func TestF13_DisturbedMeasurementsAreNobodysFault(t *testing.T) {
	for _, name := range []string{servers.ReasonClientLimited, servers.ReasonGPUSlowdown} {
		reason, known := servers.LookUpReason(name)
		policy := reason.Cause.Policy()
		if !known || policy.Class != runners.ClassTransient || policy.Then != runners.ClassTransient || policy.Retries < 1 || !policy.Invalid {
			t.Errorf("%s: %+v with the policy %+v", name, reason, policy)
		}
	}
}
