package sim

import (
	"strings"
	"testing"
)

// F01: what a byte count becomes when it reaches NCCL as people write it.
func TestF01_IntegersAreReadLikeStrtoll(t *testing.T) {
	for text, want := range map[string]int64{
		"16777216": 16777216, "16M": 16, "16MiB": 16, "0x1000000": 16777216, "0X10": 16,
		"1.6777216e+07": 1, "010": 8, "08": 0, "0o20": 0, "1_048_576": 1, "off": 0, "no": 0, "true": 0,
		" 42": 42, "+7": 7, "-1": -1, "0x": 0, "-0x10": -16, "0": 0, "-": 0,
	} {
		if got, ok := strtoll(text); !ok || got != want {
			t.Errorf("strtoll(%q) = %d, %t, want %d", text, got, ok, want)
		}
	}
	if _, ok := strtoll("99999999999999999999"); ok {
		t.Error("a number beyond 64 bits was read")
	}
}

func TestF01_ByteSizes(t *testing.T) {
	version := ncclVersion{2, 28, 9}
	for text, want := range map[string]int{
		"": defaultSimpleBuffer, "16777216": 16 << 20, "16M": 16, "010": 8, "-2": defaultSimpleBuffer,
		"99999999999999999999": defaultSimpleBuffer,
	} {
		c, _ := newCommunicator(map[string]string{"NCCL_BUFFSIZE": text}, version, machines[defaultMachine], 8)
		if c.buffers[simple] != want {
			t.Errorf("NCCL_BUFFSIZE=%q gives %d bytes, want %d", text, c.buffers[simple], want)
		}
	}
	for text, want := range map[string]Outcome{
		"16777216":   Healthy,
		"16M":        Hang,  // a buffer of 16 bytes holds no chunk of protocol Simple
		"4294967295": Crash, // -1 in 32 bits
		"2147483648": Crash, // negative in 32 bits
	} {
		if p := predict(t, story, map[string]string{"NCCL_BUFFSIZE": text}); p.Outcome != want {
			t.Errorf("NCCL_BUFFSIZE=%s: %s (%s), want %s", text, p.Outcome, p.Reason, want)
		}
	}
	if p := predict(t, story, map[string]string{"NCCL_BUFFSIZE": "16M", "NCCL_PROTO": "LL"}); p.Outcome != Healthy {
		t.Errorf("NCCL_BUFFSIZE=16M with NCCL_PROTO=LL: %s (%s), want healthy: Simple never runs", p.Outcome, p.Reason)
	}
}

// F06: names and values with a wrong letter change nothing, and nobody complains.
func TestF06_MisspeltSettingsAreSilent(t *testing.T) {
	untuned := predict(t, story, nil)
	for name, value := range map[string]string{
		"CCL_NET_GDR_LEVEL": "PHB", "NCCL_ALGOS": "Ring", "NCCL_P2P_LEVEL": "sys", "NCCL_P2P_DISABLE": "true",
		"NCCL_PROTOS": "LL", "nccl_algo": "Ring",
	} {
		if p := predict(t, story, map[string]string{name: value}); p.OutputThroughput != untuned.OutputThroughput {
			t.Errorf("%s=%s changes the rate from %.2f to %.2f", name, value, untuned.OutputThroughput, p.OutputThroughput)
		}
	}
	if p := predict(t, story, map[string]string{"NCCL_P2P_LEVEL": "SYS"}); p.OutputThroughput <= untuned.OutputThroughput {
		t.Error("NCCL_P2P_LEVEL=SYS has no effect")
	}
	disabled := predict(t, story, map[string]string{"NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_DISABLE": "1"})
	if disabled.OutputThroughput != untuned.OutputThroughput {
		t.Error("NCCL_P2P_DISABLE=1 does not win over NCCL_P2P_LEVEL=SYS")
	}
	ring := predict(t, story, map[string]string{"NCCL_ALGO": "rInG"})
	if ring.OutputThroughput == untuned.OutputThroughput {
		t.Error("names of algorithms must not depend on case")
	}
}

func TestP2PLevel(t *testing.T) {
	m := machines[defaultMachine]
	for _, c := range []struct {
		value, version string
		want           pathType
	}{
		{"", "2.28.9", pathPXB}, {"", "2.22.3", pathSYS}, {"SYS", "2.28.9", pathSYS}, {"sys", "2.28.9", pathPXB},
		{"LOC", "2.28.9", pathLOC}, {"0", "2.28.9", pathLOC}, {"1", "2.28.9", pathPIX}, {"3", "2.28.9", pathPHB},
		{"4", "2.28.9", pathSYS}, {"99", "2.28.9", pathSYS}, {"P2C", "2.28.9", pathP2C}, {"P2C", "2.26.5", pathPXB},
		{"C2C", "2.25.1", pathPXB}, {" SYS", "2.28.9", pathPXB}, {"-1", "2.28.9", pathPXB},
	} {
		version, err := parseNCCLVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		env := &ncclEnvironment{values: map[string]string{"NCCL_P2P_LEVEL": c.value}}
		if got := env.p2pLevel(version, m); got != c.want {
			t.Errorf("NCCL_P2P_LEVEL=%q on %s is %s, want %s", c.value, c.version, pathNames[got], pathNames[c.want])
		}
	}
}

func TestThreadsAreClamped(t *testing.T) {
	for value, want := range map[string]int{"": 512, "512": 512, "256": 256, "100": 512, "1024": 512, "32": 64, "0": 512, "-32": 512, "0x80": 128} {
		c, _ := newCommunicator(map[string]string{"NCCL_NTHREADS": value}, ncclVersion{2, 28, 9}, machines[defaultMachine], 8)
		if c.threads != want {
			t.Errorf("NCCL_NTHREADS=%q gives %d threads, want %d", value, c.threads, want)
		}
	}
}

func TestChannelLimits(t *testing.T) {
	for _, c := range []struct {
		env  string
		want int
	}{
		{"", 16}, {"MAX_NCHANNELS=16", 16}, {"MAX_NCHANNELS=32", 16}, {"MAX_NCHANNELS=4", 4}, {"MAX_NCHANNELS=0", 1},
		{"MAX_NRINGS=4", 4}, {"MAX_NCHANNELS=8 MAX_NRINGS=4", 8}, {"MAX_CTAS=2", 2}, {"MAX_CTAS=0", 16},
		{"MIN_NCHANNELS=99", 64}, {"MIN_CTAS=99", 64}, {"MIN_CTAS=8 MAX_CTAS=4", 4},
		{"MIN_NCHANNELS=32 MAX_NCHANNELS=4", 32}, {"MAX_NCHANNELS=8 MAX_CTAS=4", 4},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env["NCCL_"+name] = value
		}
		comm, _ := newCommunicator(env, ncclVersion{2, 28, 9}, machines[defaultMachine], 8)
		if comm.channels != c.want {
			t.Errorf("%s gives %d channels, want %d", c.env, comm.channels, c.want)
		}
	}
}

// The table of channels in NVIDIA/nccl 2.26 to 2.28 for 16 available channels, as
// it follows from src/enqueue.cc.
func TestChannelsOfAMessage(t *testing.T) {
	sizes := []int{8, 16, 32, 64, 128, 256, 512}
	for _, c := range []struct {
		name      string
		algorithm algorithm
		protocol  protocol
		ranks     int
		threads   string
		version   ncclVersion
		want      []int
	}{
		{"Ring LL, 8 ranks", ring, ll, 8, "512", ncclVersion{2, 28, 9}, []int{1, 1, 1, 2, 4, 8, 16}},
		{"Ring LL, 8 ranks, 256 threads", ring, ll, 8, "256", ncclVersion{2, 28, 9}, []int{1, 1, 2, 4, 8, 16, 16}},
		{"Ring LL, 4 ranks", ring, ll, 4, "", ncclVersion{2, 28, 9}, []int{1, 1, 2, 4, 8, 16, 16}},
		{"Ring LL, 2 ranks", ring, ll, 2, "", ncclVersion{2, 28, 9}, []int{1, 2, 4, 8, 16, 16, 16}},
		{"Tree LL", tree, ll, 8, "", ncclVersion{2, 28, 9}, []int{2, 4, 8, 16, 16, 16, 16}},
		{"LL128", ring, ll128, 8, "", ncclVersion{2, 28, 9}, []int{1, 2, 4, 8, 16, 16, 16}},
		{"LL128, 2.29", ring, ll128, 8, "", ncclVersion{2, 29, 2}, []int{1, 1, 2, 4, 8, 16, 16}},
		{"Simple", ring, simple, 8, "512", ncclVersion{2, 28, 9}, []int{1, 1, 1, 2, 4, 8, 16}},
	} {
		comm, _ := newCommunicator(map[string]string{"NCCL_NTHREADS": c.threads}, c.version, machines[defaultMachine], c.ranks)
		for i, size := range sizes {
			if got, _ := comm.split(c.algorithm, c.protocol, size<<10); got != c.want[i] {
				t.Errorf("%s: %d KiB run on %d channels, want %d", c.name, size, got, c.want[i])
			}
		}
	}
}
