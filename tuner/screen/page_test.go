package screen_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

var update = flag.Bool("update", false, "write the golden files")

// Answers show local time.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// passing matches what depends on when a test runs.
var passing = regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?\b`)

// golden compares a text with the file that people read in review.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(string(want), got); difference != "" {
		t.Errorf("%s differs (-want +got; -update writes it):\n%s", path, difference)
	}
}

func of[T any](value T) *T { return &value }

var (
	begun    = time.Date(2026, 12, 1, 22, 0, 3, 0, time.UTC)
	ended    = time.Date(2026, 12, 2, 6, 41, 50, 0, time.UTC)
	hardware = runners.Hardware{Key: "hw1:aa", Name: "8 x NVIDIA RTX PRO 6000, PCIe", Instance: "in1:bb", CPU: "AMD EPYC 9575F", Sockets: 2, NUMANodes: 2, MemoryMiB: 1 << 20,
		GPUs: []runners.GPU{{Index: 0, Name: "NVIDIA RTX PRO 6000", UUID: "GPU-1", MemoryMiB: 97887}}}
	stack    = runners.Stack{Key: "st1:cc", Driver: "580.95.05", CUDA: "13.0", NCCL: "2.28.9", Server: "sglang", ServerVersion: "0.5.18"}
	baseline = store.Configuration{Hash: "c1:base", Values: values("NCCL_PROTO", nil, "speculative.steps", 0), Unset: []string{"NCCL_PROTO"}}
	winner   = store.Configuration{Hash: "c1:best", Values: values("NCCL_PROTO", "LL", "speculative.steps", 2), Env: map[string]string{"NCCL_PROTO": "LL"},
		Args: []string{"--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "2"}}
	outOfMemory = runners.Failure{Class: runners.ClassInfeasible, Reason: "out_of_memory",
		Message: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n(the server exited with status 1)\nlast lines:\n  Traceback (most recent call last):\n  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"}
	commandFailed = runners.Failure{Class: runners.ClassInfeasible, Reason: "command_failed", Message: "the command exited with status 2\nlast lines:\n  starting\n  no such device"}
)

func values(pairs ...any) search.Values {
	out := search.Values{}
	for i := 0; i < len(pairs); i += 2 {
		switch value := pairs[i+1].(type) {
		case nil:
			out[pairs[i].(string)] = search.Unset
		case int:
			out[pairs[i].(string)] = search.Int(int64(value))
		case string:
			out[pairs[i].(string)] = search.Text(value)
		}
	}
	return out
}

func trialsOfANight() output.Trials {
	trial := func(number int, role store.Role, configuration store.Configuration, value float64) output.Trial {
		return output.Trial{Trial: number, Role: role, State: store.TrialComplete, Configuration: configuration, Value: &value,
			LoadingS: of(912.4), MeasuringS: of(131.0), Proof: []runners.Proof{{Knob: "NCCL_PROTO", Status: runners.ProofApplied, Evidence: runners.EvidenceNCCL}, {Knob: "--x", Status: runners.ProofApplied, Evidence: runners.EvidenceServer}}}
	}
	failed := func(number int, failure runners.Failure) output.Trial {
		return output.Trial{Trial: number, Role: store.RoleSearch, State: store.TrialFailed, Configuration: winner, Failure: &failure, LoadingS: of(40.0)}
	}
	relaunch := trial(5, store.RoleConfirm, winner, 94.1)
	relaunch.RepeatOf, relaunch.Proof = of(2), append(relaunch.Proof, runners.Proof{Knob: "OTHER", Status: runners.ProofUnknown})
	stopped := trial(7, store.RoleSearch, winner, 81.5)
	stopped.State, stopped.Expected = store.TrialPruned, &store.Expected{Ratio: 1.031, Interval: [2]float64{0.98, 1.08}, Improvement: 0.03, Crash: 0.1}
	return output.Trials{Campaign: "k25", Run: 1, Trials: []output.Trial{
		trial(1, store.RoleBaseline, baseline, 62.9), trial(2, store.RoleSearch, winner, 94.0), failed(3, outOfMemory), failed(4, commandFailed), relaunch,
		{Trial: 6, Role: store.RoleConfirm, State: store.TrialRunning, Configuration: baseline, RepeatOf: of(1)},
		stopped,
	}}
}

func concluded() output.Show {
	return output.Show{
		Campaign: "k25", Run: 1, State: store.CampaignComplete, Model: "Kimi-K2.5-INT4", Hardware: &hardware, Stacks: []runners.Stack{stack}, Created: begun, Ended: &ended,
		Objective: output.Objective{Metric: "output_throughput", Direction: "maximize"}, Confirmed: true,
		Baseline: &output.Measured{Configuration: baseline, Value: of(62.9), Launches: 3}, Current: &output.Measured{Configuration: baseline, Value: of(88.8), Launches: 3},
		Best: &output.Measured{Configuration: winner, Value: of(94.0), Interval: &[2]float64{93.1, 94.9}, Launches: 3},
		Verdict: &output.Verdict{Claim: "improved", Against: of("current"), Candidate: &winner, MinimalDetectable: of(0.021), LaunchNoise: of(0.008),
			Comparisons: []output.Comparison{{Against: "current", Speedup: 1.0586, Interval: &[2]float64{1.031, 1.087}, Launches: 6},
				{Against: "baseline", Speedup: 1.4944, Interval: &[2]float64{1.45, 1.53}, Launches: 6}}},
		Limits: []output.LimitState{{Metric: "p99_ttft_ms", Max: of(2000.0), Baseline: of(812.0), Best: of(640.5), Met: of(true)}, {Metric: "p99_itl_ms", Max: of(50.0), Min: of(1.0)}},
		Trials: map[string]int{"total": 49, "complete": 44, "failed": 5}, Failures: map[string]int{"out_of_memory": 4, "command_failed": 1},
		FailureDetails: []output.FailureDetail{
			{Class: outOfMemory.Class, Reason: outOfMemory.Reason, Trials: []int{3, 9, 12, 30}, Message: outOfMemory.Message, LogPath: "/data/logs/k25@1/trial-3.1/server.log"},
			{Class: commandFailed.Class, Reason: commandFailed.Reason, Trials: []int{4}, Message: commandFailed.Message}},
		Importance: []output.Importance{
			{Knob: "NCCL_P2P_LEVEL", Share: 0.62, Interval: &[2]float64{0.41, 0.78}, Curve: []output.Effect{
				{Value: search.Unset, Effect: 0.9, Interval: [2]float64{0.87, 0.94}}, {Value: search.Text("PHB"), Effect: 0.985, Interval: [2]float64{0.95, 1.02}},
				{Value: search.Text("SYS"), Effect: 1.13, Interval: [2]float64{1.09, 1.17}}}},
			{Knob: "flag.num_continuous_decode_steps", Share: 0.05}, {Knob: "NCCL_BUFFSIZE", Share: 0.01}},
		Tied: []output.Tied{{Configuration: winner, Ratio: 1, Interval: [2]float64{1, 1}, Launches: 3, Changes: 6},
			{Configuration: winner, Ratio: 0.998, Interval: [2]float64{0.98, 1.02}, Launches: 1, Changes: 2, Simplest: true},
			{Configuration: winner, Ratio: 0.99, Interval: [2]float64{0.97, 1.01}, Launches: 1, Changes: 4}},
		Time: output.Time{TotalS: 30100, LoadingS: 25000, MeasuringS: 4800, OverheadS: 300},
	}
}

func TestAnswersForPeople(t *testing.T) {
	cause := "trial 7: host_dirty: 2 processes of an earlier launch hold the GPUs\npids 4711, 4712"
	running := concluded()
	running.State, running.Verdict, running.Ended, running.Confirmed, running.Limits = store.CampaignRunning, nil, nil, false, nil
	running.Running = &output.RunningTrial{Trial: 7, Role: store.RoleSearch, Attempt: 2, Stage: runners.Loading, Started: time.Now().Add(-200500 * time.Millisecond)}
	paused := running
	paused.State, paused.Running, paused.Cause, paused.Best, paused.FailureDetails = store.CampaignPaused, nil, &cause, nil, nil
	tie := concluded()
	tie.Verdict = &output.Verdict{Claim: "tie", Candidate: &winner, Comparisons: []output.Comparison{{Against: "baseline", Speedup: 1.012, Interval: &[2]float64{0.97, 1.05}, Launches: 4}}}
	tie.Best = &output.Measured{Configuration: baseline, Value: of(62.9), Launches: 2}
	tie.Tied = []output.Tied{{Changes: 2}, {Changes: 0, Simplest: true}}
	none := concluded()
	none.Verdict = &output.Verdict{Claim: "none", Reason: "no candidate gave a valid measurement", Comparisons: []output.Comparison{}}
	none.Tied = []output.Tied{{Changes: 1, Simplest: true}, {Changes: 2}}
	none.Best, none.Confirmed, none.State = nil, false, store.CampaignFailed
	known := output.BestKnown{Hardware: hardware, Stack: stack, Model: "Kimi-K2.5-INT4", Workload: output.Workload{Key: "wl1:dd", Workload: runners.Workload{Name: "chat-short"}},
		Objective: output.Objective{Metric: "output_throughput", Direction: "maximize", At: of(8)}, Configuration: winner, Value: 94, Interval: &[2]float64{93.1, 94.9},
		Speedup: of(1.0586), Launches: 3, Confirmed: true, Campaign: "k25", Run: 2, Time: ended}
	single := output.BestKnown{Hardware: hardware, Objective: output.Objective{Metric: "mean_tpot_ms", Direction: "minimize", Aggregate: of("geomean")}, Configuration: baseline, Value: 11.5, Launches: 1, Campaign: "other", Run: 1, Time: begun}
	before, after := stack, stack
	before.Driver = "570.1"
	for name, write := range map[string]func(*screen.Page){
		"campaigns": func(p *screen.Page) {
			p.Campaigns(output.Campaigns{Campaigns: []output.CampaignSummary{
				{Campaign: "k25", Run: 12, State: store.CampaignComplete, Claim: of("improved"), Speedup: of(1.0586), Created: begun, Model: "Kimi-K2.5-INT4", Hardware: hardware.Name},
				{Campaign: "bowl", Run: 1, State: store.CampaignRunning, Created: ended, Hardware: "no GPU, AMD EPYC"}}})
		},
		"campaigns-none": func(p *screen.Page) { p.Campaigns(output.Campaigns{}) },
		"trials":         func(p *screen.Page) { p.Trials(trialsOfANight(), "output_throughput", false) },
		"show":           func(p *screen.Page) { p.Show(concluded()) },
		"show-running":   func(p *screen.Page) { p.Show(running) },
		"show-paused":    func(p *screen.Page) { p.Show(paused) },
		"show-tie":       func(p *screen.Page) { p.Show(tie) },
		"show-none":      func(p *screen.Page) { p.Show(none) },
		"best":           func(p *screen.Page) { p.Best(output.Best{Best: []output.BestKnown{known, single}}) },
		"compare": func(p *screen.Page) {
			side := output.Side{Campaign: "k25", Run: 1, Hardware: hardware, Stack: before, Objective: known.Objective}
			other := side
			other.Run, other.Stack = 2, after
			p.Compare(output.Compare{A: side, B: other, Differences: []output.Difference{{Field: "driver", A: "570.1", B: "580.95.05"}}, Attribution: "driver",
				Reasons: []string{"only the driver, and the CUDA version that it brings, changed"}, Pairs: []output.Pair{
					{Configuration: winner, A: output.Measured{Value: of(94.0)}, B: output.Measured{Value: of(96.5)}, Ratio: 1.0266, Interval: &[2]float64{1.004, 1.049}, Verdict: "faster"},
					{Configuration: baseline, A: output.Measured{Value: of(62.9)}, B: output.Measured{Value: of(63.0)}, Ratio: 1.0016, Verdict: "inconclusive"}}})
		},
		"fingerprint": func(p *screen.Page) {
			p.Fingerprint(output.Fingerprint{Schema: 1, Fingerprint: runners.Fingerprint{Hardware: hardware, Stack: stack, Settings: map[string]string{"iommu": "off", "empty": ""}, Unreadable: []string{"ecc: not supported"}}})
		},
		"tried": func(p *screen.Page) {
			metrics := runners.Metrics{"output_throughput": 94.02, "mean_ttft_ms": 81.5, "median_ttft_ms": 80, "p99_ttft_ms": 120.25, "mean_acceptance": 0.47, "completed": 32}
			p.Tried(output.Trial{State: store.TrialComplete, Configuration: winner, LoadingS: of(912.4), MeasuringS: of(131.0), LogPath: "/data/server.log",
				Proof:  []runners.Proof{{Knob: "NCCL_PROTO", Status: runners.ProofApplied, Evidence: runners.EvidenceNCCL}, {Knob: "NCCL_ALGO", Status: runners.ProofUnknown, Evidence: runners.EvidenceRequested, Detail: "no process could be read"}},
				Points: []runners.PointResult{{Concurrency: 8, Metrics: metrics, Rounds: make([]runners.RoundResult, 2)}}}, "k25.try", 3, "/data/nocturne.db")
		},
		"tried-failed": func(p *screen.Page) {
			p.Tried(output.Trial{State: store.TrialFailed, Configuration: winner, Failure: &outOfMemory}, "k25.try", 4, "/data/nocturne.db")
		},
		"status": func(p *screen.Page) {
			p.Status(store.Status{Engine: "sqlite 3.54.1", Location: "/data/nocturne.db", Version: 1, Known: 2, Warnings: []string{"the file lies on tmpfs: it is gone after a reboot"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			write(screen.NewPage(&out, 0))
			text := out.String()
			if strings.Contains(name, "running") {
				text = passing.ReplaceAllString(text, "HH:MM")
			}
			golden(t, name, text)
		})
	}
}

// On a narrow terminal the last column is wrapped, not the line.
func TestTablesFitTheTerminal(t *testing.T) {
	var out bytes.Buffer
	screen.NewPage(&out, 110).Trials(trialsOfANight(), "output_throughput", false)
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "values are") {
			break
		}
		if width := len([]rune(strings.TrimRight(line, "\n"))); width > 110 {
			t.Errorf("a row is %d columns wide, want at most 110: %s", width, line)
		}
	}
	golden(t, "trials-narrow", out.String())
}

func TestHeadline(t *testing.T) {
	for message, want := range map[string]string{
		outOfMemory.Message:   "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
		commandFailed.Message: "the command exited with status 2: no such device",
		"plain":               "plain",
		"the server was killed by signal 9 (killed)\nthe log is empty": "the server was killed by signal 9 (killed)",
		"": "",
	} {
		if got := screen.Headline(message); got != want {
			t.Errorf("%q has the headline %q, want %q", message, got, want)
		}
	}
}

// night tells the events of a short campaign.
func night(t *testing.T, view screen.View) {
	t.Helper()
	campaign := store.Campaign{Name: "k25", Run: 1}
	tell := func(name string, payload any) {
		text, err := output.WriteJSON(payload)
		if err != nil {
			t.Fatal(err)
		}
		view.Event(campaign, store.Event{Name: name, Payload: text})
	}
	tell(output.EventCampaignStarted, output.CampaignStarted{Store: "/data/nocturne.db", Host: "local", Hardware: hardware, Knobs: 2, Configurations: 33, Exact: true,
		Objective: output.Objective{Metric: "output_throughput", Direction: "maximize"}, Baseline: baseline.Values})
	tell(output.EventPhase, output.PhaseEntered{Phase: "baseline", Launches: 1})
	for i, trial := range trialsOfANight().Trials[:5] {
		if i == 1 {
			tell(output.EventPhase, output.PhaseEntered{Phase: "search", Launches: 3})
		}
		reason := "as the search proposes"
		if i == 1 {
			reason = "recipe: 8 PCIe GPUs without NVLink, https://example.com/nccl"
		}
		tell(output.EventTrialStarted, output.TrialStarted{Trial: trial.Trial, Role: trial.Role, Reason: reason, Of: 9})
		tell(output.EventStage, output.StageEntered{Trial: trial.Trial, Stage: runners.Loading, Phase: "weights", Percent: of(40.0), UsualS: of(912.4), RemainingS: of(540.0)})
		time.Sleep(17 * time.Minute)
		finished := output.TrialFinished{Trial: trial}
		if trial.Value != nil {
			finished.Ratio = of(*trial.Value / 62.9)
			finished.BestTrial, finished.BestRatio = of(2), of(94.0/62.9)
		}
		tell(output.EventTrialFinished, finished)
	}
	tell(output.EventWarning, output.Warning{Message: "search space exhausted"})
	tell(output.EventVerdict, output.VerdictReached{Verdict: *concluded().Verdict, Best: concluded().Best})
	tell(output.EventCampaignFinished, output.CampaignFinished{State: store.CampaignComplete})
}

// A plain log has one line for each trial, and a sign of life while a server
// takes its quarter of an hour to load.
func TestPlainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		view := screen.NewProgress(&out, false, true)
		night(t, view)
		view.Close()
		golden(t, "progress", out.String())
	})
}

// The status line of a terminal is drawn over, and gone in the end.
func TestLiveProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		view := screen.NewProgress(&out, true, false)
		night(t, view)
		view.Close()
		text := out.String()
		if !strings.Contains(text, "trial 2/9 search  |  loading (weights 40 %) 1:00 min, about 8:00 min left") || !strings.Contains(text, "usually 15:12 min") || !strings.Contains(text, "ends about") {
			t.Errorf("the status line does not say where the trial is, how long that usually takes and when the end comes:\n%q", text)
		}
		if last := text[strings.LastIndex(text, "\r")+1:]; strings.Contains(last, "trial 5/9") {
			t.Errorf("the status line is still there: %q", last)
		}
	})
}

// How a campaign ends tells what to do.
func TestProgressOfAnInterruption(t *testing.T) {
	for state, want := range map[store.CampaignState]string{
		store.CampaignInterrupted: "`nocturne resume k25` goes on", store.CampaignPaused: "once the cause is mended, `nocturne resume k25` goes on",
		store.CampaignFailed: "campaign failed: no baseline",
	} {
		var out bytes.Buffer
		view := screen.NewProgress(&out, false, false)
		text := fmt.Appendf(nil, `{"state": %q, "cause": "no baseline"}`, state)
		view.Event(store.Campaign{Name: "k25"}, store.Event{Name: output.EventCampaignFinished, Payload: text})
		view.Close()
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q does not say %q", state, out.String(), want)
		}
	}
}

// Lines are JSON, one for each event.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	view := screen.NewLines(&out)
	view.Event(store.Campaign{Name: "k25", Run: 3}, store.Event{Seq: 4, Name: output.EventWarning, Payload: []byte(`{"message":"x"}`)})
	view.Close()
	if got := out.String(); !strings.HasPrefix(got, `{"schema":1,"seq":4,"event":"warning"`) || !strings.HasSuffix(got, `"campaign":"k25","run":3,"message":"x"}`+"\n") {
		t.Errorf("got %q", got)
	}
}
