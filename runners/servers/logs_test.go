package servers_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nocturne/runners"
	"nocturne/runners/servers"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What is read from the log of each server and version range: phases with
// percentages in order, facts, the failure, the differences of the version.
func TestLogsByVersion(t *testing.T) {
	files, err := filepath.Glob("testdata/logs/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := readLog(t, file)
			golden := strings.TrimSuffix(file, ".log") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("read:\n%s\nexpected:\n%s", got, want)
			}
		})
	}
}

func readLog(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(filepath.Base(file), "-")
	kind, err := servers.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	evidence := servers.NewEvidence(kind)
	facts := map[string]string{}
	stage := runners.Loading
	var out bytes.Buffer
	var last runners.Phase
	// A line ends at either, as for the supervisor.
	for _, line := range strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' || r == '\r' }) {
		text := kind.Strip(line)
		if evidence.Add(text) {
			fmt.Fprintf(&out, "fatal: %s\n", text)
		}
		report, ok := kind.Observe(text)
		if !ok {
			continue
		}
		maps.Copy(facts, report.Facts)
		if report.Phase.Name != "" && report.Phase != last {
			last = report.Phase
			fmt.Fprintf(&out, "phase %s %g\n", last.Name, last.Percent)
		}
		if last.Name == servers.PhaseServing && last.Percent == 100 && stage == runners.Loading {
			stage = runners.Measuring
			evidence.Survived(nil)
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(facts)) {
		fmt.Fprintf(&out, "fact %s = %s\n", fact, facts[fact])
	}
	if explanation, failed := evidence.Explain(stage, nil); failed {
		policy := explanation.Cause.Policy()
		fmt.Fprintf(&out, "%s: %s %s by %s, %d retries\n", stage, policy.Class, explanation.Reason, explanation.Signature, policy.Retries)
	}
	for _, note := range evidence.Notes(stage, nil) {
		fmt.Fprintf(&out, "note: %s\n", note)
	}
	version, _ := servers.ParseVersion(facts["server_version"])
	if !version.Known() {
		text := strings.TrimPrefix(filepath.Base(file), name+"-")
		number, _, _ := strings.Cut(strings.TrimSuffix(text, ".log"), "-")
		version, _ = servers.ParseVersion(number)
	}
	_, differences := kind.At(version)
	for _, difference := range differences {
		fmt.Fprintf(&out, "difference %s\n", difference.ID)
	}
	return out.Bytes()
}
