package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// hold makes trials of a bowl wait until the test lets them go.
func (w *world) hold() (file string, release func()) {
	w.t.Helper()
	gate := filepath.Join(w.folder, "gate")
	file = w.bowl()
	script, err := os.ReadFile(filepath.Join(w.folder, "measure.sh"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("measure.sh", "until [ -e '"+gate+"' ]; do sleep 0.01; done\n"+string(script))
	return file, func() { w.write("gate", "") }
}

// startMeasuring starts a tuner that is in the middle of its first trial.
func (w *world) startMeasuring(file string) *process {
	w.t.Helper()
	p := w.start("tune", file)
	if !p.await(isStage("measuring")) {
		w.t.Fatalf("the tuner has ended: %s", p.stderr.String())
	}
	return p
}

func isStage(stage string) func(event) bool {
	return func(e event) bool { return e.Event == output.EventStage && strings.Contains(e.line, `"`+stage+`"`) }
}

func isFinished(number int) func(event) bool {
	return func(e event) bool { return e.Event == output.EventTrialFinished && e.number() == number }
}

// Two tuners must not run one campaign, nor share the host. The second says who
// is at work, and leaves nothing behind.
func TestSecondTunerIsRefused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		file, release := w.hold()
		other := w.write("other.yaml", strings.Replace(read(t, file), "campaign: bowl", "campaign: other", 1))
		first := w.startMeasuring(file)
		for _, args := range [][]string{{"tune", file}, {"tune", file, "--new-run"}, {"resume", "bowl"}, {"try", file}, {"tune", other}} {
			_, stderr, status := w.run(args...)
			if status != tuner.ExitPaused || !strings.Contains(stderr, "campaign bowl, pid") || !strings.Contains(stderr, "in use") {
				t.Errorf("nocturne %s beside a running tuner: exit status %d, want 5, and who is at work: %s", strings.Join(args, " "), status, stderr)
			}
		}
		if listed := answer[output.Campaigns](w, "campaigns").Campaigns; len(listed) != 1 {
			t.Errorf("tuners that were refused left campaigns behind: %+v", listed)
		}
		release()
		first.endsWith(0)
	})
}

// While a campaign runs, others can see where it is.
func TestShowOfARunningCampaign(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	file, release := w.hold()
	first := w.startMeasuring(file)
	stdout, stderr, status := w.run("show", "bowl")
	for _, want := range []string{"bowl run 1: running, begun", "trial 1 (baseline): measuring, begun", "ago", "no verdict yet, nothing measured so far", "`nocturne resume bowl` goes on"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("show does not say %q (exit status %d): %s%s", want, status, stdout, stderr)
		}
	}
	stdout, _, _ = w.run("show", "bowl", "--json")
	if faults := checkDocument("show", stdout); len(faults) > 0 {
		t.Errorf("show --json: %v", faults)
	}
	release()
	first.endsWith(0)
}

// A campaign whose tuner was killed reads as interrupted once its lease has
// ended; what is stored stays for its next tuner.
func TestKilledCampaignReadsAsInterrupted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		file, release := w.hold()
		first := w.startMeasuring(file)
		first.signal(syscall.SIGKILL)
		first.end()
		state := func() store.CampaignState { return answer[output.Show](w, "show", "bowl").State }
		if got := state(); got != store.CampaignRunning {
			t.Errorf("while its lease lasts the campaign is %s, want running", got)
		}
		w.endLease("bowl")
		show := answer[output.Show](w, "show", "bowl")
		if show.State != store.CampaignInterrupted || show.Cause == nil || !strings.Contains(*show.Cause, "its tuner is gone") {
			t.Errorf("the campaign is %s, want interrupted, and why", show.State)
		}
		if listed := answer[output.Campaigns](w, "campaigns").Campaigns; listed[0].State != store.CampaignInterrupted {
			t.Errorf("campaigns lists it as %s, want interrupted", listed[0].State)
		}
		if text, _, _ := w.run("show", "bowl"); !strings.Contains(text, "`nocturne resume bowl` goes on") {
			t.Errorf("show does not say how to go on: %s", text)
		}
		if stored, err := w.store().Campaign(t.Context(), "bowl"); err != nil || stored.State != store.CampaignRunning {
			t.Errorf("what is stored was changed to %s, %v", stored.State, err)
		}
		release()
		if _, stderr, status := w.run("resume", "bowl"); status != 0 {
			t.Errorf("resume ended with %d: %s", status, stderr)
		}
		if got := state(); got != store.CampaignComplete {
			t.Errorf("at its end the campaign is %s", got)
		}
	})
}

// endLease lets a campaign's lease end now, as time would.
func (w *world) endLease(campaign string) {
	w.t.Helper()
	found, err := w.store().Campaign(w.t.Context(), campaign)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.store().AcquireLease(w.t.Context(), found.ID, "a test", time.Hour)
	leased := (*store.LeasedError)(nil)
	if !errors.As(err, &leased) {
		w.t.Fatalf("a campaign whose tuner was just killed: %v, want its lease to last", err)
	}
	if _, err := w.store().ForceLease(w.t.Context(), found.ID, leased.Token, leased.Owner, time.Microsecond); err != nil {
		w.t.Fatal(err)
	}
}

// The lease of a tuner that was killed is taken over at once, not when it ends.
func TestLeaseOfTheDeadIsTakenOver(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		file, release := w.hold()
		first := w.startMeasuring(file)
		first.signal(syscall.SIGKILL)
		first.end()
		release()
		second := w.start("tune", file)
		if !second.await(isFinished(1)) {
			t.Errorf("the second tuner ended with %d: %s", second.end(), second.stderr.String())
		}
		second.endsWith(0)
	})
}

// Ctrl-C stops after clean-up; the run goes on where it was.
func TestInterruptIsResumable(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"interrupt": syscall.SIGINT, "terminate": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			file, release := w.hold()
			first := w.startMeasuring(file)
			first.signal(sig)
			first.endsWith(tuner.ExitInterrupted)
			w.awaitSilence()
			show := answer[output.Show](w, "show", "bowl")
			if show.State != store.CampaignInterrupted || show.Trials["pending"] != 1 || len(show.Failures) != 0 {
				t.Errorf("the campaign is %s with trials %v and failures %v, want interrupted with one pending", show.State, show.Trials, show.Failures)
			}
			release()
			if _, stderr, status := w.run("resume", "bowl"); status != 0 {
				t.Errorf("resume ended with %d: %s", status, stderr)
			}
		})
	}
}

// A second Ctrl-C ends the tuner at once; its supervisor still cleans up.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	file := w.bowl("seed: 7", "seed: 7\ntimeouts: {stopping: 1s}")
	w.write("measure.sh", "trap '' TERM\nwhile :; do sleep 0.05; done\n") // only killing ends it
	first := w.startMeasuring(file)
	first.signal(syscall.SIGINT)
	if !first.await(isStage("stopping")) {
		t.Fatalf("the tuner has ended: %s", first.stderr.String())
	}
	first.signal(syscall.SIGINT)
	first.endsWith(tuner.ExitInterrupted)
	w.awaitSilence()
}

// A campaign outlives the terminal that it was begun from.
func TestHangUpDoesNotStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	file, release := w.hold()
	first := w.startMeasuring(file)
	first.signal(syscall.SIGHUP)
	release()
	first.endsWith(0)
}

// A reader of the progress may go away, as `tee` does with its terminal.
func TestReaderThatGoesAwayDoesNotStop(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"json": {"--json"}, "plain": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			reading, writing, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := w.command(append([]string{"tune", w.bowl()}, flags...)...)
			var stderr strings.Builder
			cmd.Stdout, cmd.Stderr = writing, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := reading.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(reading.Close(), writing.Close()); err != nil {
				t.Fatal(err)
			}
			if status := exitCode(t, cmd.Wait()); status != 0 {
				t.Errorf("exit status %d without a reader, want 0: %s", status, stderr.String())
			}
			if state := answer[output.Show](w, "show", "bowl").State; state != store.CampaignComplete {
				t.Errorf("the campaign is %s without a reader, want complete", state)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
