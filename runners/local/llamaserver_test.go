//go:build llamaserver

// Trials on a real llama-server. Run examples/llamacpp/setup.sh DIR first, then
//
//	LLAMA_DIR=DIR go test -tags llamaserver -run LlamaServer ./runners/local
package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"nocturne/runners"
	"nocturne/runners/runnertest"
	"nocturne/runners/servers"
)

func llamaJob(t *testing.T, flags ...string) runners.Job {
	t.Helper()
	directory := os.Getenv("LLAMA_DIR")
	if directory == "" {
		t.Fatal("LLAMA_DIR is not set: it names the directory that examples/llamacpp/setup.sh made")
	}
	job := runnertest.ServerJob(t)
	job.Kind, job.Model = "llamacpp", "tiny-random"
	job.Args = slices.Concat([]string{
		filepath.Join(directory, "llama-server"), "-m", filepath.Join(directory, "target.gguf"), "--alias", "tiny-random",
		"--host", "${host}", "--port", "${port}", "--metrics", "--fit", "off", "-c", "4096",
	}, flags)
	return job
}

func TestLlamaServer(t *testing.T) {
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), llamaJob(t, "-t", "2"), observer)
	runnertest.WantComplete(t, result)
	runnertest.WantNothingLeft(t, observer)
	if result.Stack.ServerVersion == "" || result.Points[0].Metrics["output_throughput"] <= 0 {
		t.Errorf("stack %+v, metrics %v", result.Stack, result.Points[0].Metrics)
	}
	t.Logf("%+v\n%v\n%v\nloading %s overhead %s", result.Stack, result.Effective, result.Warnings, result.Loading, result.Overhead)
}

func TestLlamaServerSpeculates(t *testing.T) {
	directory := os.Getenv("LLAMA_DIR")
	args, err := servers.RenderSpeculation("llamacpp", servers.Speculation{Method: "draft", DraftModel: filepath.Join(directory, "draft.gguf"), Steps: 4})
	if err != nil {
		t.Fatal(err)
	}
	result := newHost(t).Run(t.Context(), llamaJob(t, args...), &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if length := result.Points[0].Metrics["spec_decode_acceptance_length"]; length < 1 || length > 5 {
		t.Errorf("acceptance length %v, expected 1 to 5", length)
	}
	for _, knob := range []string{"--spec-type", "speculation"} {
		if proof := proofOf(t, result, knob); proof.Status != runners.ProofApplied {
			t.Errorf("%+v", proof)
		}
	}
	t.Logf("%v\n%v\n%v", result.Effective, result.Points[0].Metrics, result.Warnings)
}

func TestLlamaServerFails(t *testing.T) {
	tests := []struct {
		flags  []string
		class  runners.Class
		reason string
	}{
		{[]string{"--no-such-flag"}, runners.ClassInfeasible, "bad_argument"},
		{[]string{"-fa", "maybe"}, runners.ClassInfeasible, "bad_argument"},
		{[]string{"-fa", "off", "-ctv", "q8_0"}, runners.ClassInfeasible, "bad_argument"},
		{[]string{"-m", "/no/such.gguf"}, runners.ClassEnvironment, "model_not_found"},
		{[]string{"--spec-type", "draft-simple", "-md", "/no/such.gguf"}, runners.ClassInfeasible, "model_not_found"},
	}
	for _, test := range tests {
		observer := &runnertest.Recorder{}
		result := newHost(t).Run(t.Context(), llamaJob(t, test.flags...), observer)
		runnertest.WantFailure(t, result, runners.Failed, test.class, test.reason)
		runnertest.WantNothingLeft(t, observer)
	}
	result := newHost(t).Run(t.Context(), llamaJob(t, "--spec-type", "draft-simple"), &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Invalid, runners.ClassInfeasible, "not_as_requested")
}
