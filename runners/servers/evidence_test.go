package servers_test

import (
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/runners/servers"
)

// Each sample line must be explained as its row says, when it is the only line
// of the log.
func TestFailureSamples(t *testing.T) {
	covered := map[string]bool{}
	for _, row := range samples(t, "testdata/failures.txt", 3) {
		id, line := row[0], row[3]
		covered[id] = true
		for stage, want := range map[runners.Stage]string{runners.Loading: row[1], runners.Measuring: row[2]} {
			evidence := servers.NewEvidence(kindOf(t, id))
			evidence.Add(line)
			got := "-"
			if explanation, ok := evidence.Explain(stage, nil); ok {
				got = string(explanation.Cause)
				if explanation.Line != line || strings.HasPrefix(id, "N-") && explanation.Signature != id {
					t.Errorf("%s: explained by %s, %q", id, explanation.Signature, explanation.Line)
				}
			}
			if got != want {
				t.Errorf("%s while %s: cause %s, expected %s, for %q", id, stage, got, want, line)
			}
		}
		if !strings.HasPrefix(id, "N-") && !matches(kindOf(t, id), id, line) {
			t.Errorf("%s does not match its own sample %q", id, line)
		}
	}
	for _, name := range servers.Names() {
		kind, _ := servers.Get(name)
		for _, signature := range kind.Failures {
			if !covered[signature.ID] {
				t.Errorf("%s: signature %s has no sample", name, signature.ID)
			}
		}
	}
}

// The 74 failures that were collected from the field, by the names they have
// there; NCCL's own are recognised by package nccl.
func TestEveryCollectedFailureHasASample(t *testing.T) {
	collected := strings.Fields(`
		C-OOM C-CUBLAS C-IMA C-ASSERTD C-LAUNCH C-ECC C-XID C-DRIVER N-unsupported_setting C-NCCLUSE C-NCCLSYS C-NCCLCUDA
		C-NCCLREM N-collective_timeout C-NCCLHB C-DIST C-PORT C-NOSPC C-FD C-BUS C-NOMODEL C-SHARD C-SHAPE C-KEY C-ARGS C-VALID
		C-VERSION C-LINK
		S-NOMEM S-CAPT S-UNBAL S-RANKDEAD S-INIT S-WARM S-EXC S-SIGQ S-SUBDEAD S-WD S-HEALTH S-RUNOOM S-LEAK S-NONE S-TOPK S-CAND
		S-STATIC
		V-FREE V-NOKV V-KVLEN V-ROOT V-WDEAD V-FATAL V-DEAD V-RPC N-worker_wait V-SLOW V-DIV V-NSPEC V-CGSZ V-SLOTS V-VOCAB
		T-WDEAD T-CRASH T-ASSERT T-SEGV T-MPI T-ABORT T-NOGRAPH
		L-REMOVED L-LOAD L-ALLOC L-DRAFT L-NOSPEC L-SPECB L-NCCL`)
	if len(collected) != 74 {
		t.Fatalf("%d names", len(collected))
	}
	sampled := map[string]bool{}
	for _, row := range samples(t, "testdata/failures.txt", 3) {
		sampled[row[0]] = true
	}
	for _, id := range collected {
		if !sampled[id] {
			t.Errorf("%s has no sample line", id)
		}
	}
}

// vLLM's line about a worker that does not answer is a remark while kernels are
// compiled; the third under load is a hang, and waiting ends.
func TestLineThatRepeatsIsAHang(t *testing.T) {
	const line = "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging"
	kind, _ := servers.Get("vllm")
	evidence := servers.NewEvidence(kind)
	for range 5 {
		if evidence.Add(line) {
			t.Error("fatal while loading")
		}
	}
	if explanation, ok := evidence.Explain(runners.Loading, nil); ok {
		t.Errorf("explains a failure to load: %+v", explanation)
	}
	evidence.Survived(nil)
	for i, fatal := range []bool{false, false, true} {
		if evidence.Add(line) != fatal {
			t.Errorf("line %d under load: fatal %v", i+1, !fatal)
		}
	}
	explanation, ok := evidence.Explain(runners.Measuring, nil)
	if !ok || explanation.Cause != servers.CauseHang || explanation.Reason != servers.ReasonWatchdog {
		t.Errorf("explained by %+v", explanation)
	}
}

// Whether the all-reduces of small batches go past NCCL matters to a trial that
// tunes NCCL.
func TestOwnAllReduceIsARemarkForThoseWhoTuneNCCL(t *testing.T) {
	kind, _ := servers.Get("vllm")
	evidence := servers.NewEvidence(kind)
	evidence.Add("Registering 5535 cuda graph addresses")
	if notes := evidence.Notes(runners.Measuring, nil); len(notes) != 1 {
		t.Errorf("notes %q", notes)
	}
	if notes := evidence.Notes(runners.Measuring, servers.Circumstances{servers.NCCLUntouched: true}); len(notes) != 0 {
		t.Errorf("notes %q where NCCL is not tuned", notes)
	}
}

func matches(kind *servers.Kind, id, line string) bool {
	for i := range kind.Failures {
		if kind.Failures[i].ID == id {
			return kind.Failures[i].Match(servers.NewLine(line))
		}
	}
	return false
}

// The class that a tuner acts on, by line and circumstances.
func TestExplainUnderCircumstances(t *testing.T) {
	const (
		noAlgorithm = "no algorithm/protocol available for function AllGather with datatype ncclInt8. NCCL_ALGO was set to Tree."
		outOfMemory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
		noDraft     = "OSError: draft/x is not a local folder and is not a valid model identifier listed on the hub"
		watchdog    = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1)"
	)
	tests := []struct {
		name   string
		lines  []string
		holds  servers.Circumstance
		reason string
		class  runners.Class
		retry  int
	}{
		{"an NCCL setting that the trial made", []string{noAlgorithm}, "", "unsupported_setting", runners.ClassInfeasible, 0},
		{"the same without a setting", []string{noAlgorithm}, servers.NCCLUntouched, "unsupported_setting", runners.ClassEnvironment, 0},
		{"memory", []string{outOfMemory}, "", "out_of_memory", runners.ClassInfeasible, 0},
		{"memory on a dirty host", []string{outOfMemory}, servers.StartedDirty, "out_of_memory", runners.ClassTransient, 2},
		{"a draft model", []string{noDraft}, servers.WithDraftModel, "model_not_found", runners.ClassInfeasible, 0},
		{"the main model", []string{noDraft}, "", "model_not_found", runners.ClassEnvironment, 0},
		{"a hang behind a transport knob", []string{watchdog}, servers.Sets("NCCL_P2P_LEVEL"), "collective_timeout", runners.ClassInfeasible, 0},
		{"a hang", []string{watchdog}, "", "collective_timeout", runners.ClassTransient, 1},
		{"the root stands before its consequences", []string{"Scheduler hit an exception: Traceback", outOfMemory, "Received sigquit from a child process."}, "", "out_of_memory", runners.ClassInfeasible, 0},
		{"the earliest root wins", []string{"an illegal memory access was encountered", outOfMemory}, "", "crashed", runners.ClassTransient, 1},
		{"only consequences are a crash", []string{"Rank 3 scheduler died during initialization (exit code: -9)."}, "", "crashed", runners.ClassTransient, 1},
		{"a remark explains nothing", []string{"Max running requests is reset to 48 for speculative decoding.", outOfMemory}, "", "out_of_memory", runners.ClassInfeasible, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kind, _ := servers.Get("sglang")
			evidence := servers.NewEvidence(kind)
			for _, line := range test.lines {
				evidence.Add(line)
			}
			explanation, ok := evidence.Explain(runners.Loading, servers.Circumstances{test.holds: true})
			policy := explanation.Cause.Policy()
			if !ok || explanation.Reason != test.reason || policy.Class != test.class || policy.Retries != test.retry {
				t.Errorf("got %+v (%+v), expected %s %s with %d retries", explanation, policy, test.class, test.reason, test.retry)
			}
		})
	}
}

func TestFatalLines(t *testing.T) {
	kind, _ := servers.Get("sglang")
	evidence := servers.NewEvidence(kind)
	if evidence.Add("torch.OutOfMemoryError: CUDA out of memory.") {
		t.Error("a caught out-of-memory must not end the wait: servers tune themselves that way")
	}
	if !evidence.Add("Received sigquit from a child process. It usually means the child failed.") {
		t.Error("SGLang ends after this line")
	}
}

func TestSurvivedForgetsWhatTheServerGotOver(t *testing.T) {
	kind, _ := servers.Get("sglang")
	evidence := servers.NewEvidence(kind)
	for _, line := range []string{
		"CUDA out of memory while trying tactic 3",
		"speculative_adaptive disabled: some reason. Falling back to static",
		"The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
		"Max running requests is reset to 48 for speculative decoding.",
	} {
		evidence.Add(line)
	}
	evidence.Survived(nil)
	evidence.Add("an illegal memory access was encountered")
	explanation, _ := evidence.Explain(runners.Measuring, nil)
	if explanation.Reason != "crashed" {
		t.Errorf("a crash under load is explained by %+v", explanation)
	}
	tagged, ok := evidence.Tagged(runners.Measuring, nil)
	if !ok || tagged.Signature != "S-STATIC" {
		t.Errorf("the switched-off speculation is forgotten: %+v", tagged)
	}
	if notes := evidence.Notes(runners.Measuring, nil); len(notes) != 1 || !strings.HasPrefix(notes[0], "Max running") {
		t.Errorf("notes: %q", notes)
	}
	evidence.Survived(nil)
	if evidence.Add("CUDA out of memory"); true {
		explanation, _ := evidence.Explain(runners.Measuring, nil)
		if explanation.Reason != "out_of_memory" {
			t.Errorf("a line seen before and forgotten does not count again: %+v", explanation)
		}
	}
}

// A filter must never hide a match.
func TestFilterAgreesWithThePattern(t *testing.T) {
	for _, row := range samples(t, "testdata/failures.txt", 3) {
		for _, name := range servers.Names() {
			kind, _ := servers.Get(name)
			line := servers.NewLine(row[3])
			for i := range kind.Failures {
				signature := &kind.Failures[i]
				if got, want := signature.Match(line), signature.Pattern.MatchString(row[3]); got != want {
					t.Errorf("%s on %q: Match %v, pattern %v", signature.ID, row[3], got, want)
				}
			}
		}
	}
}

func FuzzEvidence(f *testing.F) {
	for _, row := range samples(f, "testdata/failures.txt", 3) {
		f.Add(row[3])
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, name := range servers.Names() {
			kind, _ := servers.Get(name)
			evidence := servers.NewEvidence(kind)
			evidence.Add(kind.Strip(line))
			if explanation, ok := evidence.Explain(runners.Loading, nil); ok && explanation.Cause.Policy().Class == "" {
				t.Errorf("%q: explained by %+v, which has no class", line, explanation)
			}
			kind.Observe(kind.Strip(line))
		}
	})
}

// BenchmarkEvidence is the price of one log line.
func BenchmarkEvidence(b *testing.B) {
	kind, _ := servers.Get("sglang")
	evidence := servers.NewEvidence(kind)
	lines := []string{
		"gpu-1:4242:4300 [3] NCCL INFO Channel 00/08 :    0   1   2   3   4   5   6   7",
		"[2026-08-20 01:02:03 TP3] Load weight begin. avail mem=138.10 GB",
		"Loading safetensors checkpoint shards:  42% Completed | 69/163 [05:11<07:02,  4.50s/it]",
		"INFO:     127.0.0.1:41234 - \"POST /v1/completions HTTP/1.1\" 200 OK",
	}
	for i := 0; b.Loop(); i++ {
		line := kind.Strip(lines[i%len(lines)])
		evidence.Add(line)
		kind.Observe(line)
	}
}
