package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// fatalGrace is how long a server that has said that it cannot go on may take
// to end by itself, so that other ranks can still say why.
const fatalGrace = 2 * time.Second

// watch returns a context that ends when the server does, or says that it cannot
// go on. The function ends the watch and waits for it.
func (t *trial) watch(ctx context.Context) (alive context.Context, stop func()) {
	alive, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-alive.Done():
			return
		case <-t.process.Done():
			cancel(errDied)
			return
		case <-t.log.fatal:
		}
		grace := time.NewTimer(fatalGrace)
		defer grace.Stop()
		select {
		case <-alive.Done():
		case <-t.process.Done():
			cancel(errDied)
		case <-grace.C:
			cancel(errFatalLine)
		}
	}()
	return alive, func() {
		cancel(context.Canceled)
		<-finished
	}
}

// load waits until the server calls itself healthy.
func (t *trial) load(ctx context.Context) error {
	t.enter(runners.Loading)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan readiness, 1)
	t.background.Go(func() { ready <- t.awaitReady(ctx) })

	var limit <-chan time.Time
	if t.job.Timeouts.Loading > 0 {
		timer := time.NewTimer(t.job.Timeouts.Loading)
		defer timer.Stop()
		limit = timer.C
	}
	gauge := &memoryGauge{read: t.memoryOfJob, background: &t.background}
	rule := newStallRule(t.job.Timeouts.Stalled, t.process.Processes, func() int64 { return gauge.latest(ctx) })
	ticker := time.NewTicker(rule.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case is := <-ready:
			if is.err != nil {
				return is.err
			}
			t.reachAt(is.address)
			t.log.ready(t.circumstances)
			return nil
		case <-limit:
			return t.tooSlow()
		case <-ticker.C:
			if silent, stalled := rule.stalled(t.log.standing()); stalled {
				return t.stalled(silent, rule.spinning)
			}
		}
	}
}

// readiness is where a healthy server was found, or why there is none.
type readiness struct {
	address string
	err     error
}

// awaitReady waits for the port, then for health.
func (t *trial) awaitReady(ctx context.Context) readiness {
	address, err := t.awaitListener(ctx)
	var foreign *supervise.ForeignListenerError
	switch {
	case errors.As(err, &foreign):
		return readiness{err: fail(servers.ReasonPortInUse, "%v", err)}
	case errors.Is(err, supervise.ErrEnded):
		return readiness{err: errDied}
	case err != nil:
		return readiness{err: orCause(ctx, fail(servers.ReasonTunerError, "%v", err))}
	}
	return readiness{address, newPages(address, t.pages.header).awaitHealth(ctx, t.kind.Ready)}
}

// otherInterval is how often the other loopback address is looked at.
const otherInterval = 200 * time.Millisecond

// awaitListener waits until the launch listens at its address, or at the same
// port of the other loopback address: some servers do as they please. From then
// on only the address that was found is used.
func (t *trial) awaitListener(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	planned := make(chan error, 1)
	go func() {
		_, err := t.process.WaitListening(ctx, t.address)
		planned <- err
	}()
	other := otherLoopback(t.address)
	ticker := time.NewTicker(otherInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-planned:
			return t.address, err
		case <-ticker.C:
			// An error here is about an address that nobody was told to use.
			if _, listening, err := t.process.Listening(other); err == nil && listening {
				cancel()
				if <-planned == nil {
					return t.address, nil
				}
				return other, nil
			}
		}
	}
}

// reachAt makes the rest of the trial use the address at which the server was
// found.
func (t *trial) reachAt(address string) {
	if address == t.address {
		return
	}
	t.result.Warnings = append(t.result.Warnings, fmt.Sprintf("the server listens on %s instead of %s", address, t.address))
	t.address = address
	t.pages = newPages(address, t.pages.header)
}

// tooSlow is the failure of a server that got on until the limit.
func (t *trial) tooSlow() *failure {
	return fail(servers.ReasonLoadingTimeout, "not ready within %s, %s: raise timeouts.loading if the server was getting on%s",
		t.job.Timeouts.Loading, lastSeen(t.log.standing()), t.lastLines())
}

// stalled is the failure of a server that stopped getting on. In a collective it
// is the fault of the transport knobs, when the trial has any.
func (t *trial) stalled(silent time.Duration, spinning int) *failure {
	now := t.log.standing()
	where := ""
	switch {
	case inCollective(now):
		where = "the set-up of a collective made no progress"
	case ranksSpin(now, spinning):
		where = fmt.Sprintf("%d processes of %d ranks spin, as in a collective that never ends", spinning, now.ranks)
	default:
		return fail(servers.ReasonStalled, "no log line, no reading and no growth of GPU memory for %s, %s%s%s",
			rounded(silent), lastSeen(now), t.hanging(), t.lastLines())
	}
	f := fail(servers.ReasonStalledCollective, "%s for %s, %s%s%s", where, rounded(silent), lastSeen(now), t.hanging(), t.lastLines())
	if !t.transportTuned() {
		return f.because(servers.CauseHang)
	}
	return f
}

// ranksSpin tells whether every rank of a communicator only burns CPU time:
// waiting for the GPU in a loop is what a rank does whose collective does not
// end. Compilers burn it as well.
func ranksSpin(now standing, spinning int) bool {
	compiles := now.phase.Name == servers.PhaseCompile || now.phase.Name == servers.PhaseAutotune
	return now.ranks > 1 && spinning >= now.ranks && !compiles
}

// hanging names the processes that hang in the kernel, which no signal ends.
func (t *trial) hanging() string {
	members, err := t.process.Processes()
	if err != nil {
		return ""
	}
	var stuck []string
	for _, member := range members {
		if member.State == "D" {
			stuck = append(stuck, member.String())
		}
	}
	if len(stuck) == 0 {
		return ""
	}
	return "; in the kernel hang " + strings.Join(stuck, ", ")
}

// lastSeen says how far a server had come.
func lastSeen(now standing) string {
	var seen []string
	if now.phase.Name != "" {
		phase := now.phase.Name
		if now.phase.Percent >= 0 {
			phase += fmt.Sprintf(" %.0f %%", now.phase.Percent)
		}
		seen = append(seen, "last phase "+phase)
	}
	if now.line == "" {
		return "it printed nothing"
	}
	return strings.Join(append(seen, "last line: "+now.line), ", ")
}

func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// memoryOfJob is the memory in use on the GPUs of the job.
func (t *trial) memoryOfJob(ctx context.Context) ([]int64, error) {
	used, err := t.host.gpuMemory(ctx)
	if err != nil {
		return nil, err
	}
	var own []int64
	for _, gpu := range t.ofJob(used) {
		own = append(own, gpu.mib)
	}
	return own, nil
}

// inCollective tells whether the log ends in the set-up of a communicator: in
// that phase of the server, or with a line of NCCL itself.
func inCollective(now standing) bool {
	if now.phase.Name == servers.PhaseDistributed && now.phase.Percent != 100 {
		return true
	}
	_, isNCCL := nccl.ParseLine(now.line)
	return isNCCL
}
