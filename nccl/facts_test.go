package nccl_test

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/nccl"
)

// lines returns the lines of a file in testdata.
func lines(t testing.TB, name string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		all = append(all, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func factsOf(all []string) *nccl.Facts {
	facts := &nccl.Facts{}
	for _, line := range all {
		facts.Add(line)
	}
	return facts
}

// runs cuts the log of one GPU into the runs that it holds.
func runs(t *testing.T) map[string]*nccl.Facts {
	t.Helper()
	found := map[string]*nccl.Facts{}
	var current *nccl.Facts
	for _, line := range lines(t, "nccl-2.28.9-one-gpu.log") {
		if title, ok := strings.CutPrefix(line, "##### "); ok {
			current = &nccl.Facts{}
			found[title] = current
		} else if current != nil {
			current.Add(line)
		}
	}
	if len(found) != 7 {
		t.Fatalf("the log holds %d runs, want 7", len(found))
	}
	return found
}

func TestFactsOfARealLog(t *testing.T) {
	all := runs(t)
	for title, facts := range all {
		if facts.Version() != version(t, "2.28.9") || facts.CUDABuild != "13.0" || facts.DriverCUDA != "13.0" {
			t.Errorf("%s: NCCL %v, build %s, driver %s", title, facts.Version(), facts.CUDABuild, facts.DriverCUDA)
		}
		if facts.Complete() {
			t.Errorf("%s: the log is cut before init completes", title)
		}
	}

	six := all["NCCL_PROTO=LL NCCL_ALGO=Ring NCCL_P2P_LEVEL=SYS NCCL_MAX_NCHANNELS=16 NCCL_BUFFSIZE=16777216 NCCL_NTHREADS=512 python3 ar.py 1"]
	if six == nil {
		t.Fatal("the run with six settings is not in the log")
	}
	if _, failed := six.Failure(); failed || len(six.Warnings) > 0 {
		t.Errorf("a good run has failures: %v %v", six.Failures, six.Warnings)
	}
	want := []nccl.Search{
		{Pattern: 4, Channels: 32, BandwidthInside: 60, BandwidthNode: 60, Inside: "LOC", Outside: "PIX"},
		{Pattern: 3, Channels: 32, BandwidthInside: 60, BandwidthNode: 60, Inside: "LOC", Outside: "PIX"},
	}
	if diff := cmp.Diff(want, six.Searches); diff != "" {
		t.Errorf("searches:\n%s", diff)
	}
	wantRank := []*nccl.Communicator{{Host: "node-a", PID: 536, Pointer: "0x23dc5680", ID: "0x1000000000000000", Rank: 0, Ranks: 1, BusID: "60", Nodes: 1, LocalRanks: 1}}
	if diff := cmp.Diff(wantRank, six.Communicators); diff != "" {
		t.Errorf("communicators:\n%s", diff)
	}
	// One rank needs no algorithm: of the six only the level was ever read.
	statuses := map[string]nccl.ProofStatus{}
	for _, proof := range six.Confirm(settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS", "NCCL_DEBUG": "INFO"}) {
		statuses[proof.Name] = proof.Status
	}
	wantStatuses := map[string]nccl.ProofStatus{"NCCL_PROTO": nccl.Missing, "NCCL_ALGO": nccl.Missing, "NCCL_P2P_LEVEL": nccl.Confirmed, "NCCL_DEBUG": nccl.Unlogged}
	if diff := cmp.Diff(wantStatuses, statuses); diff != "" {
		t.Errorf("proofs:\n%s", diff)
	}

	shared := all["PORT=29515 python3 ar.py 2"]
	failure, ok := shared.Failure()
	if !ok || failure.Reason != "duplicate_gpu" || failure.Class != nccl.ClassEnvironment {
		t.Errorf("two ranks on one GPU: %+v", failure)
	}
	if failure.Message != "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60" || failure.Count != 3 {
		t.Errorf("message %q, count %d", failure.Message, failure.Count)
	}
	if len(shared.Failures) != 2 || shared.Failures[1].Reason != "invalid_usage" || len(shared.Warnings) != 2 || len(shared.Communicators) != 2 {
		t.Errorf("failures %+v, warnings %q, %d communicators", shared.Failures, shared.Warnings, len(shared.Communicators))
	}
}

func TestFactsOfFourGPUs(t *testing.T) {
	facts := factsOf(lines(t, "nccl-2.28.9-four-gpus.log"))
	if !facts.Complete() || len(facts.Communicators) != 4 || len(facts.Failures) > 0 || len(facts.Warnings) > 0 {
		t.Errorf("complete %v, %d communicators, failures %v, warnings %v", facts.Complete(), len(facts.Communicators), facts.Failures, facts.Warnings)
	}
	first := &nccl.Communicator{Host: "node-a", PID: 501, Pointer: "0x7f100", ID: "0x9ab", Rank: 0, Ranks: 4, Device: 0, BusID: "1000", Nodes: 1, LocalRanks: 4,
		Complete: true, InitSeconds: 1.02, Channels: 4, SendChannels: 4, SendChannelsPerPeer: 2, Rings: 4, Thresholds: []int64{8, 8, 64, 32, 8, 64}}
	if diff := cmp.Diff(first, facts.Communicators[0]); diff != "" {
		t.Errorf("rank 0:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"P2P/CUMEM": 8}, facts.Transports); diff != "" {
		t.Errorf("transports:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"rings": true, "trees": true}, facts.Connected); diff != "" {
		t.Errorf("connected:\n%s", diff)
	}
	if facts.Multicast != nccl.No || facts.AllDirect != nccl.Yes || facts.SymmetricMemory != nccl.No || facts.SendChunk != 131072 {
		t.Errorf("multicast %v, direct %v, symmetric %v, chunk %d", facts.Multicast, facts.AllDirect, facts.SymmetricMemory, facts.SendChunk)
	}
	if got := facts.Enabled("AllReduce"); !slices.Equal(got, []string{"LL", "Simple", "Tree"}) {
		t.Errorf("the all-reduce may use %v", got)
	}
	if got := facts.Enabled("Broadcast"); !slices.Equal(got, []string{"LL", "Ring", "Simple", "Tree"}) {
		t.Errorf("broadcast may use %v", got)
	}
	if cost, ok := facts.Cost("AllReduce", "Tree", "LL"); !ok || cost != (nccl.Cost{Microseconds: 12.3, Bandwidth: 4.5}) {
		t.Errorf("cost of the all-reduce by tree: %v, %v", cost, ok)
	}
	if cost, ok := facts.Cost("AllReduce", "Ring", "LL"); !ok || cost.Bandwidth != 0 {
		t.Errorf("the all-reduce by ring is off: %v, %v", cost, ok)
	}
	if threads, ok := facts.MaxThreads("Ring", "Simple"); !ok || threads != 256 {
		t.Errorf("threads of Ring with Simple: %d, %v", threads, ok)
	}
	if threads, ok := facts.MaxThreads("NVLS", "Simple"); !ok || threads != 640 {
		t.Errorf("threads of NVLS: %d, %v", threads, ok)
	}
	want := []nccl.Operation{
		{Function: "AllGather", Bytes: 8388608, Algorithm: "Ring", Protocol: "Simple", Channels: 4, Count: 1},
		{Function: "AllReduce", Bytes: 16384, Algorithm: "Tree", Protocol: "LL", Channels: 4, Count: 2},
		{Function: "AllReduce", Kind: "Symmetric", Bytes: 16384, Kernel: "AllReduce_AGxLL_R", Channels: 4, Threads: 512, Count: 1},
		{Function: "AllReduce", Bytes: 65536, Algorithm: "Tree", Protocol: "LL", Channels: 4, Count: 1},
	}
	if diff := cmp.Diff(want, facts.Operations()); diff != "" {
		t.Errorf("operations:\n%s", diff)
	}
	refined := facts.Refine(nccl.Context{NVLink: nccl.No, Ranks: 4})
	if diff := cmp.Diff(nccl.Context{Version: version(t, "2.28.9"), NVLink: nccl.No, Ranks: 4, Nodes: 1, Channels: 4, RingSimpleThreads: 256}, refined); diff != "" {
		t.Errorf("refined context:\n%s", diff)
	}
}

func TestFactsOfAnOldLog(t *testing.T) {
	facts := factsOf(lines(t, "nccl-2.12.12-two-gpus.log"))
	if facts.Version() != version(t, "2.12.12") || !facts.Complete() || len(facts.Communicators) != 2 {
		t.Errorf("NCCL %v, complete %v, %d communicators", facts.Version(), facts.Complete(), len(facts.Communicators))
	}
	want := &nccl.Communicator{Host: "node-a", PID: 77, Pointer: "0x7fe90", Rank: 0, Ranks: 2, BusID: "1000", Complete: true, Channels: 2, SendChannels: 2,
		SendChannelsPerPeer: 2, Rings: 2, Thresholds: []int64{8, 8, 64, 16, 8, 64}}
	if diff := cmp.Diff(want, facts.Communicators[0]); diff != "" {
		t.Errorf("rank 0:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"SHM/direct/direct": 2}, facts.Transports); diff != "" {
		t.Errorf("transports:\n%s", diff)
	}
	if len(facts.Adjusted) != 1 || len(facts.Warnings) != 1 {
		t.Errorf("adjusted %q, warnings %q", facts.Adjusted, facts.Warnings)
	}
	if cost, ok := facts.Cost("AllReduce", "Ring", "Simple"); !ok || cost != (nccl.Cost{Microseconds: 19.8, Bandwidth: 6.7}) {
		t.Errorf("cost: %v, %v", cost, ok)
	}
	if threads, ok := facts.MaxThreads("Ring", "Simple"); !ok || threads != 256 {
		t.Errorf("threads: %d, %v", threads, ok)
	}
}

func TestFactsOfANewLog(t *testing.T) {
	facts := factsOf(lines(t, "nccl-2.31.2-two-gpus.log"))
	if facts.Version() != version(t, "2.31.2") || facts.CUDABuild != "13.1" || !facts.Complete() {
		t.Errorf("NCCL %v, build %s, complete %v", facts.Version(), facts.CUDABuild, facts.Complete())
	}
	if diff := cmp.Diff(map[string]int{"P2P/IPC/read": 2}, facts.Transports); diff != "" {
		t.Errorf("transports:\n%s", diff)
	}
	want := []nccl.Operation{
		{Function: "AllGather", Kind: "Copy Engine", Bytes: 16777216, Count: 1},
		{Function: "AllReduce", Bytes: 16384, Algorithm: "Ring", Protocol: "LL", Channels: 1, Threads: 512, Microseconds: 21.3, Count: 1},
		{Function: "ReduceScatter", Kind: "Hierarchical CE", Bytes: 33554432, Count: 1},
	}
	if diff := cmp.Diff(want, facts.Operations()); diff != "" {
		t.Errorf("operations:\n%s", diff)
	}
}

func TestOperationLinesByVersion(t *testing.T) {
	for text, want := range map[string]nccl.Operation{
		"16384 Bytes -> Algo 1 proto 0 time 21.300000":                                      {Bytes: 16384, Algorithm: "Ring", Protocol: "LL", Microseconds: 21.3, Count: 1},
		"AllReduce: 16384 Bytes -> Algo 0 proto 2 time 21.300000":                           {Function: "AllReduce", Bytes: 16384, Algorithm: "Tree", Protocol: "Simple", Microseconds: 21.3, Count: 1},
		"AllReduce: 16384 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={2..5} more": {Function: "AllReduce", Bytes: 16384, Algorithm: "NVLSTree", Protocol: "Simple", Channels: 4, Count: 1},
		"AllGatherV: 1 Bytes -> Algo NEW proto LL":                                          {Function: "AllGatherV", Bytes: 1, Algorithm: "NEW", Protocol: "LL", Count: 1},
	} {
		facts := factsOf([]string{"h:1:2 [0] NCCL INFO " + text})
		if diff := cmp.Diff([]nccl.Operation{want}, facts.Operations()); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

func TestFactsOfOddLines(t *testing.T) {
	facts := factsOf([]string{
		"h:1:2 [0] NCCL INFO NCCL_PSK set by environment to topsecret",
		"h:1:2 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0.",
		"h:1:2 [0] NCCL INFO User asked for a minimum of 99 channels, limiting to 64",
		"h:1:2 [0] NCCL INFO NCCL_MIN_CTAS 0 is too low, leaving it set at 1",
		"h:1:2 [0] NCCL INFO minCTAs 8 is larger than maxCTAs 4, set both to 4",
		"h:1:2 [0] NCCL INFO Invalid value 99999999999999999999 for NCCL_BUFFSIZE, using default -2.",
		"h:1:2 [0] NCCL INFO Successfully loaded external tuner plugin libnccl-tuner.so",
		"h:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
		"h:1:2 [0] NCCL INFO Connected NVLS tree",
		"h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA",
		"h:1:2 [0] NCCL INFO Channel 00 : 0[1000] -> 1[2000] via P2P/direct pointer comm 0x1 nRanks 02",
		"h:1:2 [0] NCCL INFO cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation",
		"h:1:2 [0] NCCL INFO AllReduce: 99999999999999999999 Bytes -> Algo RING proto LL",
		"NCCL version 2.28.9+cuda13.0", "(EngineCore pid=7) NCCL version 2.27.3+cuda12.8",
		"", "\x00\xff", " | ", "AllReduce | 1 2 3",
	})
	if got := facts.Values("NCCL_PSK"); len(got) != 1 || strings.Contains(got[0], "topsecret") {
		t.Errorf("the secret shows: %q", got)
	}
	if got := facts.Values("NCCL_IB_HCA"); !slices.Equal(got, []string{"mlx5_0."}) {
		t.Errorf("a string keeps its full stop: %q", got)
	}
	if len(facts.Adjusted) != 4 {
		t.Errorf("adjusted: %q", facts.Adjusted)
	}
	if facts.TunerPlugin != "libnccl-tuner.so" || facts.Multicast != nccl.Yes || !facts.Connected["NVLS tree"] {
		t.Errorf("tuner %q, multicast %v, connected %v", facts.TunerPlugin, facts.Multicast, facts.Connected)
	}
	if diff := cmp.Diff(map[string]int{"NET/IB/0/GDRDMA": 1, "P2P/direct pointer": 1}, facts.Transports); diff != "" {
		t.Errorf("transports:\n%s", diff)
	}
	if len(facts.Notices) != 1 || facts.Notices[0].Reason != "cumem_host_fallback" || len(facts.Failures) != 0 {
		t.Errorf("notices %v, failures %v", facts.Notices, facts.Failures)
	}
	if len(facts.Versions) != 2 || facts.Version().Known() {
		t.Errorf("two libraries are two versions: %v", facts.Versions)
	}
	if len(facts.Operations()) != 0 {
		t.Errorf("a number too large is no operation: %v", facts.Operations())
	}
}

func TestConfirm(t *testing.T) {
	facts := factsOf([]string{
		"h:1:1 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 16.",
		"h:1:1 [0] NCCL INFO NCCL_MAX_CTAS set by environment to 8.",
		"h:1:1 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to SYS",
		"h:1:1 [0] NCCL INFO NCCL_PROTO set by environment to LL",
		"h:2:2 [1] NCCL INFO NCCL_PROTO set by environment to Simple",
		"h:1:1 [0] NCCL INFO NCCL_CUMEM_ENABLE set by environment to 0.",
		"h:1:1 [0] NCCL INFO NCCL_PSK set by environment to topsecret",
	})
	got := facts.Confirm(settings{"NCCL_BUFFSIZE": "16M", "NCCL_MAX_CTAS": "0x8", "NCCL_P2P_LEVEL": "4", "NCCL_PROTO": "LL", "NCCL_ALGO": "Ring",
		"NCCL_DEBUG": "INFO", "NCCL_PSK": "topsecret", "PATH": "/bin"})
	want := []nccl.Proof{
		{Name: "NCCL_ALGO", Requested: "Ring", Status: nccl.Missing},
		{Name: "NCCL_BUFFSIZE", Requested: "16M", Observed: "16", Status: nccl.Different},
		{Name: "NCCL_CUMEM_ENABLE", Observed: "0", Status: nccl.Extra},
		{Name: "NCCL_DEBUG", Requested: "INFO", Status: nccl.Unlogged},
		{Name: "NCCL_MAX_CTAS", Requested: "0x8", Observed: "8", Status: nccl.Confirmed},
		{Name: "NCCL_P2P_LEVEL", Requested: "4", Observed: "SYS", Status: nccl.Confirmed},
		{Name: "NCCL_PROTO", Requested: "LL", Observed: "LL Simple", Status: nccl.Different},
		{Name: "NCCL_PSK", Requested: "(secret)", Observed: "(secret)", Status: nccl.Confirmed},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proofs:\n%s", diff)
	}
}
