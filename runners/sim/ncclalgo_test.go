package sim

import "testing"

// F10: forms of NCCL_ALGO and NCCL_PROTO that some release refuses, or that leave
// a collective without a pair.
func TestF10_AlgorithmsByRelease(t *testing.T) {
	const refusal = "no algorithm/protocol available for function"
	for _, c := range []struct {
		version, algo, proto string
		outcome              Outcome
		reason               string
	}{
		{"2.28.9", "Tree", "", Crash, "Error : " + refusal + " Broadcast with datatype ncclInt8. NCCL_ALGO was set to Tree."},
		{"2.24.3", "Tree", "", Crash, "Error : " + refusal + " Broadcast with datatype ncclInt8. NCCL_ALGO was set to Tree."},
		{"2.23.4", "Tree", "", Healthy, ""},
		{"2.21.5", "Tree", "", Wrong, ""}, // falls back to Ring with every protocol, LL128 included
		{"2.18.5", "Tree", "", Healthy, ""},
		{"2.28.9", "allreduce:tree", "", Healthy, ""},
		{"2.28.9", "ring,tree;allreduce:tree", "LL", Healthy, ""},
		{"2.31.2", "ring,tree;allreduce:tree", "LL", Healthy, ""},
		{"2.31.2", "allreduce:tree", "", Healthy, ""},
		{"2.31.2", "allreduce:tree", "Simple", Crash, "Error : " + refusal + " Broadcast with datatype ncclInt8. NCCL_PROTO was set to Simple. NCCL_ALGO was set to allreduce:tree."},
		{"2.31.2", "allreduce:tree", "allreduce:Simple", Healthy, ""},
		{"2.28.9", "allreduce:tree", "Simple", Healthy, ""},
		{"2.28.9", "NVLS", "", Crash, "Error : " + refusal + " Broadcast with datatype ncclInt8. NCCL_ALGO was set to NVLS."},
		{"2.28.9", "bogus", "", Crash, `Unrecognized element token "bogus" when parsing "bogus"`},
		{"2.28.9", "bogus:ring", "", Crash, `Unrecognized prefix token "bogus" when parsing "bogus:ring"`},
		{"2.28.9", "ring;tree", "", Crash, `All entries except the first must have a prefix: "ring;tree"`},
		{"2.23.4", "bogus", "", Healthy, ""},
		{"2.23.4", "", "bogus", Crash, "Error : " + refusal + " Broadcast with datatype ncclInt8. NCCL_PROTO was set to bogus."},
		{"2.28.9", "", "LL128", Wrong, ""},
		{"2.28.9", "", "LL,LL128,Simple", Wrong, ""},
		{"2.28.9", "", "^LL", Wrong, ""},
		{"2.28.9", "", "^LL128", Healthy, ""},
		{"2.28.9", "", "LL,Simple", Healthy, ""},
		{"2.28.9", "^Tree", "", Healthy, ""},
		{"2.28.9", "^Ring", "", Crash, "Error : " + refusal + " Broadcast with datatype ncclInt8. NCCL_ALGO was set to ^Ring."},
	} {
		args := with(story, "--sim-nccl="+c.version)
		p := predict(t, args, map[string]string{"NCCL_ALGO": c.algo, "NCCL_PROTO": c.proto})
		if p.Outcome != c.outcome || c.reason != "" && p.Reason != c.reason {
			t.Errorf("NCCL %s, NCCL_ALGO=%q NCCL_PROTO=%q: %s (%s), want %s (%s)",
				c.version, c.algo, c.proto, p.Outcome, p.Reason, c.outcome, c.reason)
		}
	}
}

// LL128 is safe where NCCL enables it by itself.
func TestLL128OnNVLink(t *testing.T) {
	args := with(story, "--sim-gpu=h200", "--disable-custom-all-reduce")
	if p := predict(t, args, map[string]string{"NCCL_PROTO": "LL128"}); p.Outcome != Healthy {
		t.Errorf("LL128 on NVLink: %s (%s), want healthy", p.Outcome, p.Reason)
	}
}

// LL128 by force is the fastest protocol of the machine, and wrong.
func TestF09_FastAndWrong(t *testing.T) {
	right := predict(t, eagle(2), sixSettings)
	wrong := predict(t, eagle(2), edited(sixSettings, "NCCL_PROTO", "LL128"))
	if wrong.Outcome != Wrong || wrong.OutputThroughput <= right.OutputThroughput {
		t.Errorf("LL128: %s at %.1f tok/s, want wrong and faster than %.1f", wrong.Outcome, wrong.OutputThroughput, right.OutputThroughput)
	}
}
