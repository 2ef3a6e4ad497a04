package nccl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/nccl"
)

func TestParseLine(t *testing.T) {
	for text, want := range map[string]nccl.Line{
		"node-a:12:34 [0] NCCL INFO Connected all rings": {
			Host: "node-a", PID: 12, TID: 34, Severity: nccl.SeverityInfo, Message: "Connected all rings"},
		"(Worker_TP0 pid=78022) node-a:12:34 [3] NCCL INFO text": {
			Prefix: "(Worker_TP0 pid=78022) ", Host: "node-a", PID: 12, TID: 34, Device: 3, Severity: nccl.SeverityInfo, Message: "text"},
		"node-a:12:34 [0] init.cc:904 NCCL WARN Duplicate GPU\r\n": {
			Host: "node-a", PID: 12, TID: 34, Source: "init.cc:904", Severity: nccl.SeverityWarn, Message: "Duplicate GPU"},
		"[2026-01-31 02:03:04] node-a:12:34 [1] graph/tuning.cc:20 NCCL WARN text": {
			Time: "2026-01-31 02:03:04", Host: "node-a", PID: 12, TID: 34, Device: 1, Source: "graph/tuning.cc:20", Severity: nccl.SeverityWarn, Message: "text"},
		"[2026-01-31 02:03:04.123456] node-a:12:34 [1] init.cc:9 (commAlloc) NCCL WARN text": {
			Time: "2026-01-31 02:03:04.123456", Host: "node-a", PID: 12, TID: 34, Device: 1, Source: "init.cc:9", Function: "commAlloc", Severity: nccl.SeverityWarn, Message: "text"},
		"node-a:12:34 NCCL CALL ncclCommInitRank(0x1)": {
			Host: "node-a", PID: 12, TID: 34, Device: -1, Severity: nccl.SeverityCall, Message: "ncclCommInitRank(0x1)"},
		"node-a:12:34 [-1] NCCL INFO text": {
			Host: "node-a", PID: 12, TID: 34, Device: -1, Severity: nccl.SeverityInfo, Message: "text"},
		"node-a:12:34 [0] NCCL INFO init.cc:1582 -> 5": {
			Host: "node-a", PID: 12, TID: 34, Severity: nccl.SeverityInfo, Message: "init.cc:1582 -> 5"},
		"NCCL version 2.28.9+cuda13.0": {
			Device: -1, Severity: nccl.SeverityVersion, Message: "NCCL version 2.28.9+cuda13.0"},
		"(EngineCore pid=7) NCCL version 2.28.9+cuda13.0": {
			Prefix: "(EngineCore pid=7) ", Device: -1, Severity: nccl.SeverityVersion, Message: "NCCL version 2.28.9+cuda13.0"},
	} {
		got, ok := nccl.ParseLine(text)
		if !ok {
			t.Errorf("%q is not understood", text)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
	for _, text := range []string{
		"", "NCCL ", "NCCL INFO", "INFO Application startup complete.", "vLLM is using nccl==2.28.9",
		"torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, invalid usage, NCCL version 2.28.9",
		"node-a:x:34 [0] NCCL INFO text", "node-a:99999999999999999999:34 [0] NCCL INFO text",
	} {
		if got, ok := nccl.ParseLine(text); ok {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

// FuzzParseLine feeds anything to the readers of logs: nothing may crash, and
// what is kept must stay bounded.
func FuzzParseLine(f *testing.F) {
	for _, name := range []string{"nccl-2.28.9-one-gpu.log", "nccl-2.28.9-four-gpus.log", "nccl-2.12.12-two-gpus.log", "nccl-2.31.2-two-gpus.log"} {
		for i, line := range lines(f, name) {
			if i%7 == 0 || strings.Contains(line, "|") {
				f.Add(line)
			}
		}
	}
	f.Add("h:1:2 [0] NCCL INFO Input: { .nBytes = 1, .func = x }\nh:1:2 [0] NCCL INFO Best tuning { .nWarps = 9 }")
	f.Fuzz(func(t *testing.T, text string) {
		line, ok := nccl.ParseLine(text)
		if ok && line.Severity != nccl.SeverityVersion && (line.Host == "" || line.PID < 0 || line.Device < -1) {
			t.Errorf("%q gives %+v", text, line)
		}
		facts := &nccl.Facts{}
		for _, part := range strings.Split(text, "\n") {
			facts.Add(part)
			facts.Add(part)
		}
		facts.Complete()
		facts.Confirm(map[string]string{"NCCL_PROTO": text})
		for _, operation := range facts.Operations() {
			if operation.Count < 2 {
				t.Errorf("an operation fed twice counts %d", operation.Count)
			}
		}
		if failure, failed := facts.Failure(); failed && (failure.Reason == "" || len(failure.Message) > 600) {
			t.Errorf("failure %+v", failure)
		}
	})
}

// FuzzCanonicalize checks that no text crashes the values, and that what is
// taken is stable.
func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{"16M", "010", "^LL128", "ring,tree;allreduce:tree", "1e99", "8 8 64 64 8 64", "SYS", "off"} {
		f.Add("NCCL_BUFFSIZE", seed)
		f.Add("NCCL_ALGO", seed)
		f.Add("NCCL_THREAD_THRESHOLDS", seed)
	}
	f.Fuzz(func(t *testing.T, name, raw string) {
		once, err := nccl.Canonicalize(name, raw, nccl.Reading{Quoted: true, Unsafe: true})
		if err != nil {
			return
		}
		if twice, err := nccl.Canonicalize(name, once, nccl.Reading{Quoted: true, Unsafe: true}); err != nil || twice != once {
			t.Errorf("%s: %q, then %q, %v", name, once, twice, err)
		}
	})
}

// BenchmarkFacts measures what a line of a server's log costs.
func BenchmarkFacts(b *testing.B) {
	all := append(lines(b, "nccl-2.28.9-four-gpus.log"), lines(b, "nccl-2.28.9-one-gpu.log")...)
	size := 0
	for _, line := range all {
		size += len(line)
	}
	b.SetBytes(int64(size / len(all)))
	b.ReportAllocs()
	facts := &nccl.Facts{}
	for i := 0; b.Loop(); i++ {
		facts.Add(all[i%len(all)])
	}
}

// BenchmarkFactsOtherLines measures lines that are not NCCL's.
func BenchmarkFactsOtherLines(b *testing.B) {
	b.ReportAllocs()
	facts := &nccl.Facts{}
	for b.Loop() {
		facts.Add("INFO 12-01 22:10:00 [loggers.py:118] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 88.8 tokens/s")
	}
}
