package spec_test

import (
	"slices"
	"strings"
	"testing"

	"nocturne/nccl"
	"nocturne/runners/servers"
	"nocturne/tuner/spec"
)

const speculative = `campaign: night
server: {kind: KIND, command: [COMMAND, --port, "${port}"]}
workload: {dataset: random, concurrency: [1, 64]}
objective: {maximize: output_throughput, at: 64}
space: {speculative: {method: METHOD, draft_model: /d, steps: {choices: [2, 4]}}}
budget: {trials: 2}
`

func speculativeCampaign(t *testing.T, kind, command, method string) *spec.Campaign {
	t.Helper()
	return parse(t, strings.NewReplacer("KIND", kind, "COMMAND", command, "METHOD", method).Replace(speculative))
}

// The installed version decides how speculation is written, and not what a
// configuration is called.
func TestSpeculationOfTheInstalledVersion(t *testing.T) {
	newest := speculativeCampaign(t, "llamacpp", "llama-server", "draft")
	version, _ := servers.ParseVersion("version: 8000 (7e4c0a9)")
	old, err := newest.WithServer(version)
	if err != nil {
		t.Fatal(err)
	}
	values := old.Space.Default()
	for whole := range old.Space.Enumerate() {
		values = whole // one that speculates comes last
	}
	for campaign, flag := range map[*spec.Campaign]string{newest: "--spec-type", old: "--draft-max"} {
		job, err := campaign.Job(values, nccl.Context{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(job.Args, flag) {
			t.Errorf("arguments %q lack %s", job.Args, flag)
		}
		configuration, err := campaign.Configuration(values, nccl.Context{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(configuration.Args, flag) {
			t.Errorf("the configuration shows %q", configuration.Args)
		}
		if same, _ := newest.Configuration(values, nccl.Context{}); same.Hash != configuration.Hash {
			t.Errorf("hash %s under version %q, %s under the newest", configuration.Hash, job.ServerVersion, same.Hash)
		}
	}
	if job, _ := old.Job(values, nccl.Context{}); job.ServerVersion != version.String() {
		t.Errorf("the job is for version %q", job.ServerVersion)
	}
}

// A version that cannot do it is told before anything is launched.
func TestVersionWithoutSpeculation(t *testing.T) {
	version, _ := servers.ParseVersion("1.2.0")
	campaign := speculativeCampaign(t, "trtllm", "trtllm-serve", "eagle3")
	if _, err := campaign.WithServer(version); err == nil || !strings.Contains(err.Error(), "installed here is 1.2.0") {
		t.Errorf("error %v", err)
	}
}

// Both arms run under the admission limit that speculation would move, unless the
// file gives one; counters are switched on where a server needs that.
func TestArgumentsThatNocturneAdds(t *testing.T) {
	for _, test := range []struct {
		kind, command, method string
		want, not             []string
	}{
		{"sglang", "python3, -m, sglang.launch_server", "eagle3", []string{"--max-running-requests 64", "--enable-metrics"}, nil},
		{"sglang", "python3, -m, sglang.launch_server, --max-running-requests=8, --enable-metrics", "eagle3", nil, []string{"--max-running-requests 64", "64 --enable-metrics"}},
		{"vllm", "vllm, serve, /m", "eagle3", nil, []string{"--max-num-seqs", "metrics"}},
		{"llamacpp", "llama-server", "draft", []string{"--metrics"}, nil},
	} {
		campaign := speculativeCampaign(t, test.kind, test.command, test.method)
		for values := range campaign.Space.Enumerate() {
			job, err := campaign.Job(values, nccl.Context{})
			if err != nil {
				t.Fatal(err)
			}
			line := strings.Join(job.Args, " ")
			for _, want := range test.want {
				if strings.Count(line, want) != 1 {
					t.Errorf("%s has %q not once", line, want)
				}
			}
			for _, not := range test.not {
				if strings.Contains(line, not) {
					t.Errorf("%s has %q", line, not)
				}
			}
			for _, flag := range []string{"--enable-metrics", "--max-running-requests"} {
				if strings.Count(line, flag) > 1 {
					t.Errorf("%s has %s twice", line, flag)
				}
			}
		}
	}
}
