package sim

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// tuned draws an environment from the settings that people search.
func tuned(t *rapid.T) map[string]string {
	env := map[string]string{}
	for _, knob := range []struct {
		name   string
		levels []string
	}{
		{"NCCL_PROTO", []string{"", "LL", "Simple", "LL,Simple"}},
		{"NCCL_ALGO", []string{"", "Ring", "ring,tree;allreduce:tree"}},
		{"NCCL_P2P_LEVEL", []string{"", "LOC", "PIX", "PHB", "SYS"}},
		{"NCCL_MAX_NCHANNELS", []string{"", "1", "4", "8", "16", "32"}},
		{"NCCL_BUFFSIZE", []string{"", "1048576", "4194304", "16777216"}},
		{"NCCL_NTHREADS", []string{"", "64", "128", "256", "512"}},
	} {
		if value := rapid.SampledFrom(knob.levels).Draw(t, knob.name); value != "" {
			env[knob.name] = value
		}
	}
	return env
}

func args(t *rapid.T) []string {
	steps := rapid.IntRange(0, 10).Draw(t, "steps")
	if steps == 0 {
		return story
	}
	return eagle(steps)
}

// inertEdits change a configuration without changing what NCCL does. Each tells
// when it applies.
var inertEdits = []struct {
	name  string
	apply func(env map[string]string) bool
}{
	{"buffer size under LL", func(env map[string]string) bool {
		env["NCCL_BUFFSIZE"] = "8388608"
		return env["NCCL_PROTO"] == "LL"
	}},
	{"level under P2P_DISABLE=1", func(env map[string]string) bool {
		env["NCCL_P2P_LEVEL"] = "SYS"
		return env["NCCL_P2P_DISABLE"] == "1"
	}},
	{"levels below the host bridge", func(env map[string]string) bool {
		level := env["NCCL_P2P_LEVEL"]
		env["NCCL_P2P_LEVEL"] = "NVL"
		return level == "" || level == "LOC" || level == "PIX"
	}},
	{"level in lower case", func(env map[string]string) bool {
		unset := env["NCCL_P2P_LEVEL"] == ""
		env["NCCL_P2P_LEVEL"] = "sys"
		return unset
	}},
	{"channel maximum above the search's number", func(env map[string]string) bool {
		unset := env["NCCL_MAX_NCHANNELS"] == "" || env["NCCL_MAX_NCHANNELS"] == "16"
		env["NCCL_MAX_NCHANNELS"] = "32"
		return unset
	}},
	{"512 threads", func(env map[string]string) bool {
		unset := env["NCCL_NTHREADS"] == ""
		env["NCCL_NTHREADS"] = "512"
		return unset
	}},
	{"threads clamped to 512", func(env map[string]string) bool {
		most := env["NCCL_NTHREADS"] == "512"
		env["NCCL_NTHREADS"] = "100"
		return most
	}},
	{"LL and Simple are all there is", func(env map[string]string) bool {
		unset := env["NCCL_PROTO"] == ""
		env["NCCL_PROTO"] = "^LL128"
		return unset
	}},
	{"empty is unset", func(env map[string]string) bool {
		unset := env["NCCL_ALGO"] == ""
		env["NCCL_ALGO"] = ""
		return unset
	}},
	{"network of one node", func(env map[string]string) bool {
		env["NCCL_IB_QPS_PER_CONNECTION"], env["NCCL_NET_GDR_LEVEL"] = "4", "SYS"
		return true
	}},
	{"sizes that only send and receive use", func(env map[string]string) bool {
		env["NCCL_P2P_PCI_CHUNKSIZE"], env["NCCL_CHUNK_SIZE"] = "262144", "65536"
		return true
	}},
	{"LL128 settings without LL128", func(env map[string]string) bool {
		env["NCCL_LL128_NTHREADS"] = "320"
		return true
	}},
	{"NVLS without multicast", func(env map[string]string) bool {
		env["NCCL_NVLS_ENABLE"] = "1"
		return true
	}},
	{"hexadecimal", func(env map[string]string) bool {
		value, err := strconv.Atoi(env["NCCL_NTHREADS"])
		env["NCCL_NTHREADS"] = "0x" + strconv.FormatInt(int64(value), 16) + " threads"
		return err == nil
	}},
	{"case of algorithms", func(env map[string]string) bool {
		ring := env["NCCL_ALGO"] == "Ring"
		env["NCCL_ALGO"] = "RING"
		return ring
	}},
}

// The same canonical configuration has the same mean, whatever inert settings
// surround it.
func TestInertSettingsChangeNothing(t *testing.T) {
	applied := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		env := tuned(t)
		if rapid.Bool().Draw(t, "p2p disabled") {
			env["NCCL_P2P_DISABLE"] = "1"
		}
		command := args(t)
		edit := rapid.SampledFrom(inertEdits).Draw(t, "edit")
		changed := maps.Clone(env)
		if !edit.apply(changed) {
			return
		}
		applied[edit.name] = true
		before, err := Predict(command, env)
		if err != nil {
			t.Fatal(err)
		}
		after, err := Predict(command, changed)
		if err != nil {
			t.Fatal(err)
		}
		if before.OutputThroughput != after.OutputThroughput || before.Verify != after.Verify {
			t.Fatalf("%s: %v gives %v tok/s, %v gives %v", edit.name, env, before.OutputThroughput, changed, after.OutputThroughput)
		}
	})
	if len(applied) < 5 {
		t.Fatalf("only %v were tried", slices.Sorted(maps.Keys(applied)))
	}
}

// An inert buffer still takes memory from every GPU.
func TestInertBufferTakesMemory(t *testing.T) {
	before := predict(t, story, edited(sixSettings, "NCCL_BUFFSIZE", ""))
	after := predict(t, story, sixSettings)
	if taken := after.Memory.NCCLBuffers - before.Memory.NCCLBuffers; taken < 0.5 || taken > 1 {
		t.Errorf("12 MiB more on 16 channels take %.2f GiB, want half a GiB to a GiB", taken)
	}
	if after.Memory.Free >= before.Memory.Free {
		t.Error("the buffers do not come out of free memory")
	}
}

// Settings matter only where NCCL is on the path.
func TestBypassMakesEverySettingInert(t *testing.T) {
	for name, command := range map[string][]string{
		"flag":              with(story, "--sim-bypass-nccl"),
		"fault":             with(story, "--sim-faults=bypass-nccl"),
		"custom all-reduce": with(story, "--sim-gpu=h200"),
	} {
		if a, b := predict(t, command, nil), predict(t, command, sixSettings); a.OutputThroughput != b.OutputThroughput {
			t.Errorf("%s: %.2f tok/s untuned, %.2f tuned", name, a.OutputThroughput, b.OutputThroughput)
		}
	}
	direct := with(story, "--sim-gpu=h200", "--disable-custom-all-reduce")
	if a, b := predict(t, direct, nil), predict(t, direct, sixSettings); a.OutputThroughput == b.OutputThroughput {
		t.Error("settings have no effect on NVLink without the custom all-reduce")
	}
	off := with(story, "--disable-custom-all-reduce")
	if a, b := predict(t, story, nil), predict(t, off, nil); a.OutputThroughput != b.OutputThroughput {
		t.Error("on PCIe the custom all-reduce is off anyway")
	}
}
