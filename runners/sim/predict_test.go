package sim

import (
	"strings"
	"testing"
)

// F13: a corner of the space that always dies, and memory that settings share.
func TestF13_MemoryCorner(t *testing.T) {
	for _, c := range []struct {
		args    string
		env     map[string]string
		outcome Outcome
		reason  string
	}{
		{"", nil, Healthy, ""},
		{"--mem-fraction-static=0.93", nil, Healthy, ""},
		{"--mem-fraction-static=0.94", nil, Crash, "CUDA out of memory."},
		{"--mem-fraction-static=0.96", nil, Crash, "Capture cuda graph failed: CUDA out of memory."},
		{"--mem-fraction-static=0.7", nil, Crash, "Not enough memory. Please try to increase --mem-fraction-static."},
		{"--mem-fraction-static=0.92", map[string]string{"NCCL_BUFFSIZE": "16777216"}, Healthy, ""},
		{"--mem-fraction-static=0.92", map[string]string{"NCCL_BUFFSIZE": "67108864"}, Crash, "Capture cuda graph failed: CUDA out of memory."},
		{"--mem-fraction-static=0.92", map[string]string{"NCCL_BUFFSIZE": "67108864", "NCCL_MAX_NCHANNELS": "4"}, Healthy, ""},
		{"--mem-fraction-static=0.93 --cuda-graph-max-bs=512", nil, Crash, "CUDA out of memory."},
	} {
		p := predict(t, with(story, strings.Fields(c.args)...), c.env)
		if p.Outcome != c.outcome || p.Reason != c.reason {
			t.Errorf("%s %v: %s (%s) with %.2f GiB free, want %s (%s)", c.args, c.env, p.Outcome, p.Reason, p.Memory.Free, c.outcome, c.reason)
		}
	}
	spare := predict(t, eagle(2, "--mem-fraction-static=0.93"), nil)
	if spare.Outcome != Crash {
		t.Errorf("the draft model leaves no room at 0.93, got %s with %.2f GiB free", spare.Outcome, spare.Memory.Free)
	}
}

// F19: a machine on which peer-to-peer traffic across sockets never arrives.
func TestF19_HangByTransport(t *testing.T) {
	l40s := with(story, "--sim-gpu=l40s")
	for level, want := range map[string]Outcome{"": Healthy, "PHB": Healthy, "SYS": Hang, "4": Hang, "sys": Healthy} {
		if p := predict(t, l40s, map[string]string{"NCCL_P2P_LEVEL": level}); p.Outcome != want {
			t.Errorf("NCCL_P2P_LEVEL=%q: %s (%s), want %s", level, p.Outcome, p.Reason, want)
		}
	}
	if p := predict(t, l40s, map[string]string{"NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_DISABLE": "1"}); p.Outcome != Healthy {
		t.Errorf("NCCL_P2P_DISABLE=1: %s, want healthy", p.Outcome)
	}
}

// A driver that forbids peer-to-peer makes the level inert.
func TestForbiddenPeerToPeer(t *testing.T) {
	args := with(story, "--sim-gpu=rtx-5090")
	if a, b := predict(t, args, nil), predict(t, args, map[string]string{"NCCL_P2P_LEVEL": "SYS"}); a.OutputThroughput != b.OutputThroughput {
		t.Errorf("%.2f tok/s untuned, %.2f with NCCL_P2P_LEVEL=SYS", a.OutputThroughput, b.OutputThroughput)
	}
}

// Every machine serves out of the box.
func TestEveryMachineIsHealthyUntuned(t *testing.T) {
	for name := range machines {
		if p := predict(t, with(story, "--sim-gpu="+name), nil); p.Outcome != Healthy || p.OutputThroughput < 20 {
			t.Errorf("%s: %s (%s) at %.1f tok/s", name, p.Outcome, p.Reason, p.OutputThroughput)
		}
	}
}

// Above the published line lies an optimum that a search can find.
func TestOptimumAboveThePublishedLine(t *testing.T) {
	richer := edited(sixSettings, "NCCL_NTHREADS", "256", "NCCL_BUFFSIZE", "")
	p := predict(t, eagle(2, "--attention-backend=flashinfer", "--num-continuous-decode-steps=2"), richer)
	if p.OutputThroughput < 96 || p.OutputThroughput > 100 {
		t.Errorf("%.2f tok/s, want 96 to 100", p.OutputThroughput)
	}
	if plain := predict(t, story, richer).OutputThroughput; plain > predict(t, story, sixSettings).OutputThroughput*1.001 {
		t.Errorf("256 threads must help only where a message gets two channels, got %.2f tok/s without speculation", plain)
	}
}

// Speculation wins alone and loses in a crowd.
func TestSpeculationByConcurrency(t *testing.T) {
	with, without := predict(t, eagle(2), sixSettings), predict(t, story, sixSettings)
	if with.Throughput(1) <= without.Throughput(1) || with.Throughput(8) >= without.Throughput(8) {
		t.Errorf("at 1: %.1f against %.1f, at 8: %.1f against %.1f",
			with.Throughput(1), without.Throughput(1), with.Throughput(8), without.Throughput(8))
	}
	previous := 0.0
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		rate := without.Throughput(n)
		if rate <= previous || rate > float64(n)*without.Throughput(1) {
			t.Errorf("concurrency %d gives %.1f tok/s after %.1f", n, rate, previous)
		}
		previous = rate
	}
}

// A launch that serves nothing has no rate.
func TestNoRateWithoutService(t *testing.T) {
	crashed := predict(t, story, map[string]string{"NCCL_ALGO": "Tree"})
	if crashed.Throughput(1) != 0 || crashed.OutputThroughput != 0 {
		t.Errorf("a crashed launch serves %.1f tok/s", crashed.OutputThroughput)
	}
	tight := predict(t, with(story, "--mem-fraction-static=0.93"), nil)
	if tight.Throughput(1) == 0 || tight.Throughput(128) != 0 {
		t.Errorf("with %.2f GiB free: %.1f tok/s at 1, %.1f at 128", tight.Memory.Free, tight.Throughput(1), tight.Throughput(128))
	}
}
