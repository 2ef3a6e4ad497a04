package sim

import (
	"math"
	"strings"
	"testing"
)

// FuzzEnvironment: whatever stands in NCCL's variables, a launch has an outcome
// and finite figures.
func FuzzEnvironment(f *testing.F) {
	f.Add("LL", "Ring", "SYS", "16", "16777216", "512", "8 8 64 64 8 64")
	f.Add("^LL128", "ring,tree;allreduce:tree", "3", "0x10", "16M", "100", "")
	f.Add("bogus", ";;::^,", "-1", "-2147483649", "9223372036854775807", "-32", "9223372036854775807")
	f.Fuzz(func(t *testing.T, proto, algo, level, channels, buffer, threads, thresholds string) {
		env := map[string]string{
			"NCCL_PROTO": proto, "NCCL_ALGO": algo, "NCCL_P2P_LEVEL": level, "NCCL_MAX_NCHANNELS": channels,
			"NCCL_MIN_CTAS": channels, "NCCL_BUFFSIZE": buffer, "NCCL_LL_BUFFSIZE": buffer, "NCCL_NTHREADS": threads,
			"NCCL_LL128_NTHREADS": threads, "NCCL_THREAD_THRESHOLDS": thresholds,
		}
		for _, version := range []string{"2.18.5", "2.21.5", "2.23.4", "2.28.9", "2.31.2"} {
			p, err := Predict(eagle(2, "--sim-nccl="+version), env)
			if err != nil {
				t.Fatal(err)
			}
			rate := p.OutputThroughput
			if math.IsNaN(rate) || math.IsInf(rate, 0) || rate < 0 || (p.Outcome == Healthy) != (p.Reason == "") {
				t.Errorf("%s: %s (%s) at %v tok/s", version, p.Outcome, p.Reason, rate)
			}
		}
	})
}

// FuzzArguments: a command line is taken or refused, never more.
func FuzzArguments(f *testing.F) {
	f.Add("--tp 8 --mem-fraction-static=0.9 --sim-faults=http-500=0.4,escape")
	f.Add("--speculative-algorithm=EAGLE3 --speculative-num-steps=-3 --speculative-eagle-topk=9")
	f.Add("--sim-nccl=2.-1.99 --chunked-prefill-size=-5 --cuda-graph-max-bs=-1")
	f.Fuzz(func(t *testing.T, line string) {
		p, err := Predict(append([]string{"--model-path=m"}, strings.Fields(line)...), nil)
		if err == nil && (math.IsNaN(p.OutputThroughput) || math.IsInf(p.OutputThroughput, 0)) {
			t.Errorf("%q: %v tok/s", line, p.OutputThroughput)
		}
	})
}
