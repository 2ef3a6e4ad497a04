package runnertest

import (
	"strings"
	"testing"
	"time"

	"nocturne/runners"
)

// failuresByStage breaks a launch at every stage and looks at the outcome, the
// class, the reason, the message, and what is left.
func failuresByStage(t *testing.T, newHost HostFunc) {
	tests := []struct {
		name    string
		flags   []string
		change  func(*runners.Job)
		outcome runners.Outcome
		class   runners.Class
		reason  string
		stage   runners.Stage
		message string
	}{
		{
			name: "the program does not exist", change: func(j *runners.Job) { j.Args = []string{"/no/such/server", "--port=${port}"} },
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "not_executable", stage: runners.Launching, message: "/no/such/server",
		},
		{
			name: "no port", change: func(j *runners.Job) { j.Args = []string{"${nocturne}", "fake"} },
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "argument_refused", stage: runners.Preparing, message: "--port=${port}",
		},
		{
			name: "a rule of the server", flags: []string{"--speculative-algorithm", "EAGLE3"},
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "argument_refused", stage: runners.Preparing, message: "R9",
		},
		{
			name: "unknown kind", change: func(j *runners.Job) { j.Kind = "ollama" },
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "argument_refused", stage: runners.Preparing, message: "llamacpp",
		},
		{
			name: "a secret that is not there", change: func(j *runners.Job) { j.Secrets = []runners.Secret{{Name: "HF_TOKEN", FromEnv: "HF_TOKEN"}} },
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "secret_missing", stage: runners.Preparing, message: "HF_TOKEN",
		},
		{
			name: "a workload that cannot be sent", change: func(j *runners.Job) { j.Workload.Dataset, j.Workload.File = "prompts", "/no/such/file" },
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "workload_unusable", stage: runners.Preparing, message: "/no/such/file",
		},
		{
			name: "ends early without a word", flags: []string{"--port-after=1m", "--die-after=10ms", "--exit=3"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "exited_early", stage: runners.Loading, message: "exited with status 3",
		},
		{
			name:    "ends early by a signal",
			flags:   []string{"--port-after=1m", "--die-after=10ms", "--exit=-9"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "exited_early", stage: runners.Loading, message: "signal 9",
		},
		{
			name:    "out of memory while loading",
			flags:   []string{"--port-after=1m", "--die-after=10ms", "--say=torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "--last-words=Received sigquit from a child process."},
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "out_of_memory", stage: runners.Loading, message: "Tried to allocate",
		},
		{
			name:    "cannot go on but does not end",
			flags:   []string{"--port-after=1m", "--say=an illegal memory access was encountered", "--say=Scheduler hit an exception: Traceback"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "crashed", stage: runners.Loading, message: "illegal memory",
		},
		{
			name: "another model", flags: []string{"--model=other"},
			outcome: runners.Failed, class: runners.ClassEnvironment, reason: "wrong_model", stage: runners.Verifying, message: "serves other, expected tiny",
		},
		{
			name: "healthy but answers nothing", flags: []string{"--refuse"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "no_completion", stage: runners.Verifying, message: "http_500",
		},
		{
			name: "no token counts", flags: []string{"--no-usage"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "no_completion", stage: runners.Verifying, message: "usage",
		},
		{
			name: "hangs in the first completion", flags: []string{"--hang-on-request=1"}, change: func(j *runners.Job) { j.Timeouts.Verifying = time.Second },
			outcome: runners.Failed, class: runners.ClassTransient, reason: "verifying_timeout", stage: runners.Verifying, message: "1s",
		},
		{
			name: "dies in the warm-up", flags: []string{"--die-on-request=2", "--last-words=Decode out of memory. Try to lower your batch size."},
			outcome: runners.Failed, class: runners.ClassInfeasible, reason: "out_of_memory", stage: runners.Warming, message: "Decode out of memory",
		},
		{
			name: "dies under load", flags: []string{"--die-on-request=5", "--exit=-9"},
			outcome: runners.Failed, class: runners.ClassTransient, reason: "died_under_load", stage: runners.Measuring, message: "signal 9",
		},
		{
			name: "hangs under load", flags: []string{"--hang-on-request=5"}, change: func(j *runners.Job) { j.Timeouts.Round = 2 * time.Second },
			outcome: runners.Failed, class: runners.ClassTransient, reason: "round_timeout", stage: runners.Measuring, message: "round 1 at concurrency 2",
		},
		{
			name: "served from the prefix cache", flags: []string{"--cached=50"},
			outcome: runners.Invalid, class: runners.ClassTransient, reason: "prefix_cache", stage: runners.Measuring, message: "50.0 %",
		},
		{
			name: "runs without what was asked", flags: []string{"--say=speculative_adaptive disabled: some reason. Falling back to static"},
			outcome: runners.Invalid, class: runners.ClassInfeasible, reason: "not_as_requested", stage: runners.Measuring, message: "Falling back",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := ServerJob(t, test.flags...)
			if test.change != nil {
				test.change(&job)
			}
			observer := &Recorder{}
			result := newHost(t).Run(t.Context(), job, observer)
			WantFailure(t, result, test.outcome, test.class, test.reason)
			if result.Failure.Stage != test.stage {
				t.Errorf("stage %s, expected %s", result.Failure.Stage, test.stage)
			}
			if !strings.Contains(result.Failure.Message, test.message) {
				t.Errorf("message %q, expected it to hold %q", result.Failure.Message, test.message)
			}
			if last := observer.Stages[len(observer.Stages)-1]; last != runners.Stopping {
				t.Errorf("last stage %s, expected stopping", last)
			}
			WantNothingLeft(t, observer)
		})
	}
}
