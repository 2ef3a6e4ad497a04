package supervise

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SurvivorsError says that processes of a launch could not be ended. Nothing
// else may be launched on the host: they hold its memory.
type SurvivorsError struct {
	Members []Member
	// Cause is set when the wait ended early.
	Cause error
}

func (e *SurvivorsError) Error() string {
	names := make([]string, len(e.Members))
	for i, m := range e.Members {
		names[i] = m.String()
	}
	text := fmt.Sprintf("%d processes of the launch are still there: %s", len(e.Members), strings.Join(names, "; "))
	if e.Cause != nil {
		return text + ": " + e.Cause.Error()
	}
	return text + "; they survived SIGKILL, most likely inside a driver: look at the kernel log and reboot the host"
}

func (e *SurvivorsError) Unwrap() error { return e.Cause }

// Stop ends the launch: it asks the server to terminate, gives it the StopTimeout
// of the Spec, then kills all that is left, and returns when no process of the
// launch exists, its output is complete and the supervisor has ended. It may be
// called again. A *SurvivorsError names what could not be ended; its clean-up
// still goes on.
func (p *Process) Stop(ctx context.Context) error { return p.stop(ctx, p.spec.StopTimeout) }

// Kill is Stop without asking first.
func (p *Process) Kill(ctx context.Context) error { return p.stop(ctx, 0) }

func (p *Process) stop(ctx context.Context, timeout time.Duration) error {
	// An error means that the supervisor is gone, which is dealt with below.
	_ = p.order(order{Do: orderStop, Timeout: timeout})
	limit := time.NewTimer(timeout + p.spec.KillTimeout)
	defer limit.Stop()
	var cause error
	select {
	case <-p.gone:
		return p.sweepIfLost(ctx)
	case <-ctx.Done():
		cause = fmt.Errorf("stop the server: %w", ctx.Err())
	case <-limit.C:
	}
	members, err := p.tree()
	if err != nil {
		return err
	}
	return &SurvivorsError{Members: members, Cause: cause}
}

// sweepIfLost does the work of a supervisor that vanished before it had done it.
func (p *Process) sweepIfLost(ctx context.Context) error {
	p.mu.Lock()
	clean := p.clean
	known := make([]identity, 0, len(p.known))
	for id := range p.known {
		known = append(known, id)
	}
	p.mu.Unlock()
	if clean {
		return nil
	}
	return sweep(ctx, p.launch, known, p.spec.KillTimeout)
}

// Processes lists the living processes of the launch, the oldest first, without
// the supervisor.
func (p *Process) Processes() ([]Member, error) {
	members, err := p.tree()
	return slices.DeleteFunc(members, Member.dead), err
}

// tree also lists the dead that nobody has collected yet.
func (p *Process) tree() ([]Member, error) {
	all, err := takeSnapshot()
	if err != nil {
		return nil, err
	}
	pids := all.descendants(p.supervisor.pid)
	if all.identity(p.supervisor.pid) != p.supervisor {
		pids = nil // the pid is no longer the supervisor's
	}
	if isLaunchCgroup(p.launch.Cgroup, p.launch.Marker) {
		pids = append(pids, cgroupMembers(p.launch.Cgroup)...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.known {
		if all.identity(id.pid) == id {
			pids = append(pids, id.pid)
		}
	}
	members := all.members(pids)
	for _, m := range members {
		p.known[m.identity()] = true
	}
	return members, nil
}
