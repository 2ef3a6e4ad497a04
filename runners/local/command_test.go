package local_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
	"nocturne/runners/runnertest"
)

func TestCommandMetrics(t *testing.T) {
	pattern := func(metric, regex string) runners.MetricPattern {
		return runners.MetricPattern{Metric: metric, Regex: regex}
	}
	tests := []struct {
		name     string
		args     []string
		patterns []runners.MetricPattern
		want     runners.Metrics
		reason   string
		message  string
	}{
		{name: "JSON on the last line", args: []string{"0", "header", `{"busbw": 12.5, "size": 8, "name": "x", "ok": true, "none": null}`}, want: runners.Metrics{"busbw": 12.5, "size": 8}},
		{name: "an empty line after it", args: []string{"0", `{"busbw": 1e3}`, "", "  "}, want: runners.Metrics{"busbw": 1000}},
		{name: "stderr is no output", args: []string{"0", `{"busbw": 1}`, `err:{"busbw": 2}`}, want: runners.Metrics{"busbw": 1}},
		{name: "NaN", args: []string{"0", `{"busbw": NaN}`}, reason: "non_finite", message: `{\"busbw\": NaN}`},
		{name: "infinity", args: []string{"0", `{"a": 1, "busbw": -Infinity}`}, reason: "non_finite", message: "-Infinity"},
		{name: "too large for a float", args: []string{"0", `{"busbw": 1e999}`}, reason: "non_finite", message: "1e999"},
		{name: "NaN inside a text is a text", args: []string{"0", `{"note": "a: NaN, b", "busbw": 3}`}, want: runners.Metrics{"busbw": 3}},
		{name: "no JSON", args: []string{"0", "done"}, reason: "no_metrics", message: `"done"`},
		{name: "an array", args: []string{"0", "[1]"}, reason: "no_metrics", message: "[1]"},
		{name: "no number", args: []string{"0", `{"a": "b"}`}, reason: "no_metrics", message: "no number"},
		{name: "no output", args: []string{"0"}, reason: "no_metrics", message: `""`},
		{
			name: "patterns, the last match counts", args: []string{"0", "busbw 1.5 GB/s", "latency: 30 us", "busbw 2.5 GB/s"},
			patterns: []runners.MetricPattern{pattern("busbw", `^busbw ([\d.]+)`), pattern("latency", `(latency): (?P<value>\d+)`)},
			want:     runners.Metrics{"busbw": 2.5, "latency": 30},
		},
		{name: "a pattern without a match", args: []string{"0", "nothing"}, patterns: []runners.MetricPattern{pattern("busbw", `busbw ([\d.]+)`)}, reason: "no_metrics", message: "busbw"},
		{name: "a pattern that finds no number", args: []string{"0", "busbw n/a"}, patterns: []runners.MetricPattern{pattern("busbw", `busbw (\S+)`)}, reason: "no_metrics", message: "n/a"},
		{name: "a pattern that finds nan", args: []string{"0", "busbw nan"}, patterns: []runners.MetricPattern{pattern("busbw", `busbw (\S+)`)}, reason: "non_finite", message: "nan"},
		{name: "a pattern without a group", args: []string{"0"}, patterns: []runners.MetricPattern{pattern("busbw", `busbw`)}, reason: "argument_refused", message: "no group"},
		{name: "a program that is not there", args: nil, reason: "not_executable", message: "/no/such"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := runnertest.CommandJob(t, test.args...)
			if test.args == nil {
				job.Args = []string{"/no/such"}
			}
			job.Command.Patterns = test.patterns
			observer := &runnertest.Recorder{}
			result := newHost(t).Run(t.Context(), job, observer)
			runnertest.WantNothingLeft(t, observer)
			if test.reason != "" {
				if result.Outcome != runners.Failed || result.Failure.Reason != test.reason || !strings.Contains(result.Failure.Message, test.message) {
					t.Errorf("%s %+v, expected %s with %q", result.Outcome, result.Failure, test.reason, test.message)
				}
				return
			}
			runnertest.WantComplete(t, result)
			if diff := cmp.Diff(test.want, result.Points[0].Metrics); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCommandExitStatus(t *testing.T) {
	tests := []struct {
		args   []string
		class  runners.Class
		reason string
	}{
		{[]string{"2"}, runners.ClassInfeasible, "command_failed"},
		{[]string{"75"}, runners.ClassTransient, "command_failed"},
		{[]string{"3"}, runners.ClassEnvironment, "command_failed"},
		{[]string{"9"}, runners.ClassInfeasible, "command_failed"},
		{[]string{"9", "no algorithm/protocol available for function AllReduce"}, runners.ClassEnvironment, "command_failed"},
		{[]string{"9", "err:CUDA error: out of memory"}, runners.ClassInfeasible, "out_of_memory"},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			job := runnertest.CommandJob(t, test.args...)
			job.Command.Exit = map[int]runners.Class{75: runners.ClassTransient, 3: runners.ClassEnvironment}
			if strings.HasPrefix(strings.Join(test.args[1:], ""), "no algorithm") {
				test.class = runners.ClassInfeasible // the file's map decides, whatever the log says
			}
			runnertest.WantFailure(t, newHost(t).Run(t.Context(), job, &runnertest.Recorder{}), runners.Failed, test.class, test.reason)
		})
	}
}

func TestCommandRounds(t *testing.T) {
	job := runnertest.CommandJob(t, "0", `{"busbw": 4}`)
	job.Workload.Rounds = runners.Rounds{Fixed: 3}
	job.Env, job.Prove = map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_PROTO"}
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	runnertest.WantComplete(t, result)
	if len(observer.Launches) != 3 || len(observer.Rounds) != 3 || len(result.Points[0].Rounds) != 3 {
		t.Errorf("%d launches, %d rounds, %+v", len(observer.Launches), len(observer.Rounds), result.Points)
	}
	if proof := result.Proof[0]; proof.Status == runners.ProofMismatch || *proof.Requested != "LL" {
		t.Errorf("proof %+v", proof)
	}
}

func TestCommandEnvironmentIsProvedWhileItRuns(t *testing.T) {
	t.Parallel()
	job := runnertest.CommandJob(t, "0", "sleep:1s", `{"busbw": 4}`)
	job.Env, job.Prove = map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_PROTO"}
	result := newHost(t).Run(t.Context(), job, &runnertest.Recorder{})
	runnertest.WantComplete(t, result)
	if proof := result.Proof[0]; proof.Status != runners.ProofApplied || *proof.Observed != "LL" {
		t.Errorf("proof %+v", proof)
	}

	job = runnertest.CommandJob(t)
	job.Args = []string{"env", "-i", "sleep", "300"}
	job.Env, job.Prove = map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_PROTO"}
	observer := &runnertest.Recorder{}
	result = newHost(t).Run(t.Context(), job, observer)
	runnertest.WantFailure(t, result, runners.Invalid, runners.ClassInfeasible, "env_not_applied")
	runnertest.WantNothingLeft(t, observer)
}

func TestCommandRoundTimeout(t *testing.T) {
	t.Parallel()
	job := runnertest.CommandJob(t, "0", "before", "sleep:5m")
	job.Timeouts.Round = 1500 * time.Millisecond
	observer := &runnertest.Recorder{}
	result := newHost(t).Run(t.Context(), job, observer)
	runnertest.WantFailure(t, result, runners.Failed, runners.ClassTransient, "round_timeout")
	if !strings.Contains(result.Failure.Message, "before") {
		t.Errorf("message %q lacks the last lines", result.Failure.Message)
	}
	runnertest.WantNothingLeft(t, observer)
}

func TestCommandKilledBySignal(t *testing.T) {
	job := runnertest.CommandJob(t)
	job.Args = []string{"sh", "-c", "kill -SEGV $$"}
	runnertest.WantFailure(t, newHost(t).Run(t.Context(), job, &runnertest.Recorder{}), runners.Failed, runners.ClassTransient, "command_failed")
}
