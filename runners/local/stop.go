package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// stop removes every process of the launch. An error means that the host is not
// clean. It runs to its end also when the trial was cancelled.
func (t *trial) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	t.enter(runners.Stopping)
	if err := t.releasePort(); err != nil {
		t.result.Warnings = append(t.result.Warnings, fmt.Sprintf("release the port: %v", err))
	}
	if t.process == nil {
		return nil
	}
	if err := t.stopProcess(ctx); err != nil {
		return err
	}
	return t.awaitGPUMemory(ctx)
}

// stopProcess stops the launch and reads its log to the end.
func (t *trial) stopProcess(ctx context.Context) error {
	t.noteHostMemory()
	if err := t.process.Stop(context.WithoutCancel(ctx)); err != nil {
		return fail(servers.ReasonHostDirty, "%v", err)
	}
	t.background.Wait()
	if t.forget != nil {
		t.forget()
	}
	return nil
}

// noteHostMemory looks whether the kernel killed something for want of memory,
// while the cgroup that counts it still exists.
func (t *trial) noteHostMemory() {
	cgroup := t.process.Launch().Cgroup
	if cgroup == "" {
		return
	}
	events, err := os.ReadFile(filepath.Join(cgroup, "memory.events"))
	if err != nil {
		return // no memory controller in this cgroup
	}
	for line := range strings.Lines(string(events)) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" && count != "0" {
			t.hostMemoryOut = true
		}
	}
}

// explain finds the failure behind an error.
func (t *trial) explain(err error, stage runners.Stage) *failure {
	var known *failure
	ended := errors.Is(err, errDied) || errors.Is(err, errFatalLine)
	switch {
	case errors.As(err, &known) && !known.log:
		return known
	case known == nil && !ended:
		return fail(servers.ReasonTunerError, "%v", err)
	case t.hostMemoryOut:
		return fail(servers.ReasonHostMemory, "the kernel killed a process of the server for want of memory%s", t.lastLines())
	}
	if t.log == nil {
		return known // nothing has run that could have said more
	}
	how := t.howItEnded(err)
	if explanation, ok := t.log.explain(stage, t.circumstances); ok {
		return &failure{
			reason: explanation.Reason, cause: explanation.Cause,
			message: excerpt(explanation.Line) + "\n(" + how + ")" + t.lastLines(),
		}
	}
	if known != nil {
		known.message += t.lastLines()
		return known
	}
	reason := servers.ReasonExitedEarly
	if servers.UnderLoad(stage) {
		reason = servers.ReasonDiedUnderLoad
	}
	return fail(reason, "%s%s", how, t.lastLines())
}

// howItEnded says in words how the server ended, or what was seen instead.
func (t *trial) howItEnded(err error) string {
	if !errors.Is(err, errDied) {
		return err.Error()
	}
	exit, _ := t.process.Exit()
	return "the server " + exitText(exit)
}

// exitText completes "the server ...".
func exitText(exit supervise.Exit) string {
	switch {
	case exit.Lost:
		return "was lost with its supervisor"
	case exit.Signal != 0:
		return "was " + exit.String()
	}
	return exit.String()
}

// lastLines are the last lines of the log for a message.
func (t *trial) lastLines() string {
	lines := t.log.lastLines()
	if len(lines) == 0 {
		return "\nthe log is empty"
	}
	return "\nlast lines:\n  " + strings.Join(lines, "\n  ")
}
