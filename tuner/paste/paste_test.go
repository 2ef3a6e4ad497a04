package paste_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/paste"
)

var update = flag.Bool("update", false, "write golden files")

func known(configuration store.Configuration) output.BestKnown {
	return output.BestKnown{
		Hardware:  runners.Hardware{Key: "hw1:0011", Name: "8 x NVIDIA RTX PRO 6000, PCIe"},
		Stack:     runners.Stack{Driver: "590.44", NCCL: "2.28.9", Server: "sglang", ServerVersion: "0.5.18"},
		Model:     "Kimi-K2.5-INT4",
		Objective: output.Objective{Metric: "output_throughput", Direction: "maximize"}, Configuration: configuration, Value: 93.97,
		Launches: 3, Confirmed: true, Campaign: "k25", CampaignID: "01J", Run: 2, Time: time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC),
	}
}

// configurations by the name of their golden files.
var configurations = map[string]store.Configuration{
	"story": {
		Env:   map[string]string{"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS", "NCCL_NTHREADS": "512"},
		Unset: []string{"NCCL_MAX_NCHANNELS", "NCCL_BUFFSIZE"},
		Args:  []string{"--attention-backend", "fa3", "--speculative-num-steps", "2"},
	},
	"awkward": {
		Env: map[string]string{
			"NCCL_ALGO": "ring,tree;allreduce:tree", "NCCL_PROTO": "^LL128", "NCCL_SOCKET_IFNAME": "=eth0,eth1",
			"QUOTES": `it's "quoted" \ and $HOME %h`, "JSON": `{"a":[1,2],"b":"c d"}`, "REFERENCE": "$(HOME) `id` $$(x)", "UNICODE": "grün ✓", "EMPTY": "",
		},
		Unset: []string{"NCCL_NTHREADS"},
		Args:  []string{"--speculative-config", `{"method":"mtp","n":3}`, "--note=it's 100 %", "", "--dump=${trial_dir}/x", "$(id)"},
	},
	"nothing": {},
	"flags":   {Args: []string{"--enable-mixed-chunk"}},
}

// TestFormats compares every format of every configuration with its file.
func TestFormats(t *testing.T) {
	for name, configuration := range configurations {
		for _, format := range paste.Formats() {
			if format == "json" {
				continue
			}
			text, err := paste.Write(known(configuration), format)
			if err != nil {
				t.Errorf("%s, %s: %v", name, format, err)
				continue
			}
			path := filepath.Join("testdata", name+"."+format)
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || text != string(want) {
				t.Errorf("%s differs (%v); it is now\n%s", path, err, text)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	if _, err := paste.Write(known(configurations["story"]), "json"); err == nil {
		t.Error("json has no text form and was written")
	}
	if paste.Known("yaml") || !paste.Known("nccl.conf") {
		t.Error("Known does not know the formats")
	}
	for name, test := range map[string]struct {
		configuration store.Configuration
		formats       []string
		words         string
	}{
		"a name that is a command": {store.Configuration{Env: map[string]string{"A;id": "b"}}, paste.Formats(), "not a variable's name"},
		"a removed name":           {store.Configuration{Unset: []string{"A B"}}, paste.Formats(), "not a variable's name"},
		"NUL":                      {store.Configuration{Env: map[string]string{"A": "b\x00c"}}, paste.Formats(), "NUL"},
		"a line end":               {store.Configuration{Env: map[string]string{"NCCL_A": "b\nc"}}, []string{"env", "nccl.conf"}, "line end"},
		"a secret":                 {store.Configuration{Env: map[string]string{"NCCL_PSK": "b"}}, []string{"nccl.conf"}, "secret"},
	} {
		for _, format := range test.formats {
			if format == "json" {
				continue
			}
			if text, err := paste.Write(known(test.configuration), format); err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%s, %s: got %v, want a refusal with %q\n%s", name, format, err, test.words, text)
			}
		}
	}
}

// What a store says may come from anywhere: it stays in its comment.
func TestNothingLeavesItsComment(t *testing.T) {
	evil := "x\nid\r\nid\u2028id"
	best := known(store.Configuration{Args: []string{"--x=" + evil}, Env: map[string]string{"A": "b"}})
	best.Campaign, best.Model, best.Hardware.Name, best.Stack.Driver, best.Stack.Server, best.CampaignID, best.Objective.Metric = evil, evil, evil, evil, evil, evil, evil
	for _, format := range []string{"env", "systemd", "nccl.conf"} {
		text, err := paste.Write(best, format)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") && line != "A=b" && line != "[Service]" && line != `Environment="A=b"` {
				t.Errorf("%s: a line left its comment: %q", format, line)
			}
		}
	}
	best.Configuration.Args = nil
	text, err := paste.Write(best, "shell")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(text), "\n"); lines[len(lines)-1] != "export A=b" || len(lines) != 5 {
		t.Errorf("shell: %q", lines)
	}
}
