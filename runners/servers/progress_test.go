package servers_test

import (
	"strconv"
	"testing"

	"nocturne/runners/servers"
)

func TestProgressSamples(t *testing.T) {
	covered := map[string]bool{}
	for _, row := range samples(t, "testdata/progress.txt", 3) {
		id, phase, percent, line := row[0], row[1], row[2], row[3]
		covered[id] = true
		report, ok := kindOf(t, id).Observe(line)
		if !ok {
			t.Errorf("%s: not recognised: %q", id, line)
			continue
		}
		want := -1.0
		if percent != "-" {
			want, _ = strconv.ParseFloat(percent, 64)
		}
		if phase == "-" {
			phase = ""
		}
		if report.Phase.Name != phase || report.Phase.Percent != want {
			t.Errorf("%s: phase %+v, expected %q at %v", id, report.Phase, phase, want)
		}
	}
	for _, name := range servers.Names() {
		kind, _ := servers.Get(name)
		for _, progress := range kind.Progress {
			if !covered[progress.ID] {
				t.Errorf("%s: %s has no sample", name, progress.ID)
			}
		}
	}
}

func TestProgressFacts(t *testing.T) {
	kind, _ := servers.Get("sglang")
	report, _ := kind.Observe("max_total_num_tokens=500000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, context_len=32768")
	if report.Facts["max_running_requests"] != "48" || report.Facts["max_total_num_tokens"] != "500000" {
		t.Errorf("facts of the capacity line: %v", report.Facts)
	}
}
