package servers_test

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"

	"nocturne/runners"
	"nocturne/runners/servers"
)

// Logs that llama-server really wrote.
func TestRecordedLogsOfLlamaServer(t *testing.T) {
	tests := []struct {
		file           string
		reason         string
		class          runners.Class
		tagged         bool
		phases         int
		withDraftModel bool
	}{
		{file: "fail-assert-batch-0.txt", reason: "crashed", class: runners.ClassTransient, phases: 1},
		{file: "fail-draft-missing.txt", reason: "model_not_found", class: runners.ClassInfeasible, phases: 2, withDraftModel: true},
		{file: "fail-flag-value.txt", reason: "bad_argument", class: runners.ClassInfeasible},
		{file: "fail-model-missing.txt", reason: "model_not_found", class: runners.ClassEnvironment, phases: 1},
		{file: "fail-port-in-use.txt", reason: "port_in_use", class: runners.ClassTransient},
		{file: "fail-quantized-v-cache.txt", reason: "bad_argument", class: runners.ClassInfeasible, phases: 1},
		{file: "fail-removed-flag.txt", reason: "bad_argument", class: runners.ClassInfeasible},
		{file: "fail-unknown-flag.txt", reason: "bad_argument", class: runners.ClassInfeasible},
		{file: "log.txt", phases: 4},
		{file: "log-speculative.txt", phases: 5},
		{file: "log-draft-missing-but-healthy.txt", tagged: true, phases: 4},
	}
	kind, err := servers.Get("llamacpp")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			circumstances := servers.Circumstances{servers.WithDraftModel: test.withDraftModel, servers.NCCLUntouched: true}
			evidence := servers.NewEvidence(kind)
			phases := 0
			for _, line := range readLines(t, filepath.Join("..", "testdata", "llamacpp", test.file)) {
				text := kind.Strip(line)
				evidence.Add(text)
				if report, ok := kind.Observe(text); ok && report.Phase.Name != "" {
					phases++
				}
			}
			explanation, failed := evidence.Explain(runners.Loading, circumstances)
			if failed != (test.reason != "") || explanation.Reason != test.reason || failed && explanation.Cause.Policy().Class != test.class {
				t.Errorf("explained by %+v, expected %s %s", explanation, test.class, test.reason)
			}
			if _, tagged := evidence.Tagged(runners.Loading, circumstances); tagged != test.tagged {
				t.Errorf("tagged: %v, expected %v", tagged, test.tagged)
			}
			if phases != test.phases {
				t.Errorf("%d phases seen, expected %d", phases, test.phases)
			}
		})
	}
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}
