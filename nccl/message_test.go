package nccl_test

import (
	"testing"

	"nocturne/nccl"
)

// The table of channels for one all-reduce with 16 channels, computed by hand
// from the rule; LL columns hold from 2.26 on.
func TestChannelsForMessage(t *testing.T) {
	const kib = 1024
	columns := []struct {
		name    string
		version string
		message nccl.Message
		want    [7]int // 8 KiB to 512 KiB
	}{
		{"Ring LL, 8 ranks, 512 threads", "2.28.9", nccl.Message{Algorithm: "Ring", Protocol: "LL", Ranks: 8}, [7]int{1, 1, 1, 2, 4, 8, 16}},
		{"Ring LL, 8 ranks, 256 threads", "2.28.9", nccl.Message{Algorithm: "Ring", Protocol: "LL", Ranks: 8, Threads: 256}, [7]int{1, 1, 2, 4, 8, 16, 16}},
		{"Ring LL, 4 ranks", "2.28.9", nccl.Message{Algorithm: "Ring", Protocol: "LL", Ranks: 4}, [7]int{1, 1, 2, 4, 8, 16, 16}},
		{"Ring LL, 2 ranks", "2.28.9", nccl.Message{Algorithm: "Ring", Protocol: "LL", Ranks: 2}, [7]int{1, 2, 4, 8, 16, 16, 16}},
		{"Tree LL", "2.28.9", nccl.Message{Algorithm: "Tree", Protocol: "LL", Ranks: 8}, [7]int{2, 4, 8, 16, 16, 16, 16}},
		{"Tree LL, 2.29", "2.29.7", nccl.Message{Algorithm: "Tree", Protocol: "LL", Ranks: 8}, [7]int{2, 4, 8, 16, 16, 16, 16}},
		{"LL128 to 2.28", "2.24.3", nccl.Message{Algorithm: "Ring", Protocol: "LL128", Ranks: 8}, [7]int{1, 2, 4, 8, 16, 16, 16}},
		{"LL128 from 2.29", "2.31.2", nccl.Message{Algorithm: "Ring", Protocol: "LL128", Ranks: 8}, [7]int{1, 1, 2, 4, 8, 16, 16}},
		{"Simple", "2.28.9", nccl.Message{Algorithm: "Ring", Protocol: "Simple", Ranks: 8}, [7]int{1, 1, 1, 2, 4, 8, 16}},
	}
	for _, column := range columns {
		for row, want := range column.want {
			message := column.message
			message.Bytes, message.Channels = 8*kib<<row, 16
			if got, err := nccl.ChannelsForMessage(version(t, column.version), message); err != nil || got != want {
				t.Errorf("%s, %d KiB: %d channels, %v; want %d", column.name, message.Bytes/kib, got, err, want)
			}
		}
	}
}

// The worked example: three tokens of hidden size 7168 in 16 bits over 8 ranks.
func TestChannelsOfADecodeStep(t *testing.T) {
	message := nccl.Message{Algorithm: "Ring", Protocol: "LL", Bytes: 3 * 7168 * 2, Ranks: 8, Channels: 16}
	for threads, want := range map[int]int{0: 1, 512: 1, 256: 2, 128: 5} {
		message.Threads = threads
		if got, err := nccl.ChannelsForMessage(version(t, "2.28.9"), message); err != nil || got != want {
			t.Errorf("%d threads: %d channels, %v; want %d", threads, got, err, want)
		}
	}
}

func TestChannelsForMessageRefuses(t *testing.T) {
	good := nccl.Message{Algorithm: "Ring", Protocol: "LL", Bytes: 1, Ranks: 2, Channels: 4}
	now := version(t, "2.28.9")
	if got, err := nccl.ChannelsForMessage(now, good); err != nil || got != 1 {
		t.Fatalf("%d, %v", got, err)
	}
	for name, change := range map[string]func(*nccl.Message){
		"algorithm": func(m *nccl.Message) { m.Algorithm = "NVLS" },
		"protocol":  func(m *nccl.Message) { m.Protocol = "ll" },
		"ranks":     func(m *nccl.Message) { m.Ranks = 0 },
		"channels":  func(m *nccl.Message) { m.Channels = 0 },
		"bytes":     func(m *nccl.Message) { m.Bytes = -1 },
	} {
		bad := good
		change(&bad)
		if _, err := nccl.ChannelsForMessage(now, bad); err == nil {
			t.Errorf("a wrong %s is accepted", name)
		}
	}
	for _, v := range []nccl.Version{{}, version(t, "2.21.5")} {
		if _, err := nccl.ChannelsForMessage(v, good); err == nil {
			t.Errorf("the rule of %s is not known", v)
		}
	}
}
