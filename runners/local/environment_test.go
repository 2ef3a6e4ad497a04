package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/runnertest"
)

func TestStrayVariables(t *testing.T) {
	environ := []string{"NCCL_PROTO=LL", "PATH=/bin", "VLLM_USE_V1=1", "HOME=/root", "CUDA_VISIBLE_DEVICES=0", "OMP_NUM_THREADS=4", "NCCL_ALGO=Ring", "EDITOR=vi"}
	want := []string{"NCCL_PROTO", "OMP_NUM_THREADS", "VLLM_USE_V1"}
	if diff := cmp.Diff(want, local.StrayVariables(environ, "NCCL_ALGO")); diff != "" {
		t.Error(diff)
	}
}

// The environment of a server is built from the job, not taken from the shell.
func TestEnvironmentOfAServerIsBuilt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := newHost(t, func(o *local.Options) {
		o.Environ = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/root", "LC_ALL=C.UTF-8", "EDITOR=vi", "NCCL_PROTO=Simple", "NCCL_ALGO=Ring",
			"KEPT=1", "TOKEN=from-env", "CUDA_VISIBLE_DEVICES=7", "LD_LIBRARY_PATH=/opt/lib",
		}
	})
	job := runnertest.CommandJob(t)
	job.Args = []string{"env"}
	job.Env = map[string]string{"NCCL_BUFFSIZE": "4194304", "DIR": "${trial_dir}"}
	job.Inherit = []string{"KEPT", "NCCL_ALGO"}
	job.Prove = []string{"NCCL_ALGO"} // a knob that is absent in this trial
	job.Secrets = []runners.Secret{{Name: "A", FromEnv: "TOKEN"}, {Name: "B", FromFile: file}}
	job.GPUs = runners.GPUSelection{Indices: []int{2, 3}}
	result := host.Run(t.Context(), job, &runnertest.Recorder{})
	log, err := os.ReadFile(result.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(log)), "\n")
	got = slices.DeleteFunc(got, func(line string) bool {
		return strings.HasPrefix(line, "PATH=") || strings.HasPrefix(line, "NOCTURNE_LAUNCH=")
	})
	slices.Sort(got)
	want := []string{
		"A=from-env", "B=from-file", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=2,3", "DIR=" + filepath.Dir(result.LogPath),
		"HOME=/root", "KEPT=1", "LC_ALL=C.UTF-8", "LD_LIBRARY_PATH=/opt/lib", "NCCL_BUFFSIZE=4194304",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Placeholders are filled once, and one argument stays one argument.
func TestPlaceholdersStayOneArgument(t *testing.T) {
	job := runnertest.CommandJob(t)
	job.LogDirectory = filepath.Join(t.TempDir(), "a b ${host} $HOME")
	job.Args = []string{"printf", "%s\n", "dir=${trial_dir};", "${host} '\"*", "${unknown}", "{}"}
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	log, err := os.ReadFile(result.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	want := "dir=" + filepath.Dir(result.LogPath) + ";\n127.0.0.1 '\"*\n${unknown}\n{}\n"
	if string(log) != want {
		t.Errorf("got %q, expected %q", log, want)
	}
}

func TestConfFileThatSetsATunedVariable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nccl.conf")
	if err := os.WriteFile(file, []byte("# ours\nNCCL_ALGO=Tree\nNCCL_DEBUG=WARN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := newHost(t, func(o *local.Options) {
		o.ConfFiles = func(map[string]string) []string { return []string{"/no/such/nccl.conf", file} }
	})
	run := func(env map[string]string, prove ...string) runners.Result {
		job := runnertest.CommandJob(t, "0", `{"x": 1}`)
		job.Env, job.Prove = env, prove
		return host.Run(t.Context(), job, &runnertest.Recorder{})
	}
	result := run(nil, "NCCL_ALGO")
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassEnvironment, "nccl_conf_conflict")
	if !strings.Contains(result.Failure.Message, file+":2 sets NCCL_ALGO=Tree") {
		t.Errorf("message %q", result.Failure.Message)
	}
	runnertest.WantComplete(t, run(nil, "NCCL_PROTO"))
	runnertest.WantComplete(t, run(map[string]string{"NCCL_ALGO": "Ring"}, "NCCL_ALGO")) // the environment wins over files
}

func TestConfFileThatCannotBeRead(t *testing.T) {
	host := newHost(t, func(o *local.Options) {
		o.ConfFiles = func(map[string]string) []string { return []string{t.TempDir()} } // a directory
	})
	result := host.Run(t.Context(), runnertest.CommandJob(t, "0", `{"x": 1}`), &runnertest.Recorder{})
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassEnvironment, "nccl_conf_unreadable")
}

func TestFixedPortOfTheCommand(t *testing.T) {
	job := runnertest.ServerJob(t)
	job.Args = []string{"${nocturne}", "fake", "--port=18743"}
	observer := &runnertest.Recorder{}
	runnertest.WantComplete(t, newHost(t).Run(t.Context(), job, observer))
	if got := observer.Launches[0].Address; got != "127.0.0.1:18743" {
		t.Errorf("address %q", got)
	}
}
