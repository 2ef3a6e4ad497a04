package tuner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"nocturne/store"
)

const (
	leaseTime  = 30 * time.Second
	leaseRenew = 10 * time.Second
)

// leaseKeeper holds a campaign's lease and renews it until it is released.
// Its context ends when the lease is lost, with store.ErrLeaseLost as cause.
type leaseKeeper struct {
	context context.Context
	cancel  context.CancelCauseFunc
	store   store.Store
	done    chan struct{}

	mutex sync.Mutex
	lease store.Lease
}

func keepLease(ctx context.Context, s store.Store, campaignID string, log zerolog.Logger) (*leaseKeeper, error) {
	lease, err := acquire(ctx, s, campaignID)
	if err != nil {
		return nil, err
	}
	keeper := &leaseKeeper{store: s, lease: lease, done: make(chan struct{})}
	keeper.context, keeper.cancel = context.WithCancelCause(ctx)
	go keeper.renew(log)
	return keeper, nil
}

// acquire takes the lease, also from an owner that is known to be dead: a
// tuner that was killed must not block its campaign until the lease ends.
func acquire(ctx context.Context, s store.Store, campaignID string) (store.Lease, error) {
	owner, err := thisProcess()
	if err != nil {
		return store.Lease{}, err
	}
	lease, err := s.AcquireLease(ctx, campaignID, owner.String(), leaseTime)
	var leased *store.LeasedError
	if !errors.As(err, &leased) {
		return lease, err
	}
	if holder, ok := parseProcess(leased.Owner); ok && holder.deadHere(owner) {
		return s.ForceLease(ctx, campaignID, leased.Token, owner.String(), leaseTime)
	}
	return store.Lease{}, err
}

func (k *leaseKeeper) current() store.Lease {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.lease
}

// renew extends the lease in time. A store that is away for a while is no
// reason to stop: the lease is lost only when the store says so.
func (k *leaseKeeper) renew(log zerolog.Logger) {
	defer close(k.done)
	ticker := time.NewTicker(leaseRenew)
	defer ticker.Stop()
	for {
		select {
		case <-k.context.Done():
			return
		case <-ticker.C:
		}
		lease, err := k.store.RenewLease(k.context, k.current(), leaseTime)
		switch {
		case errors.Is(err, store.ErrLeaseLost):
			k.cancel(store.ErrLeaseLost)
			return
		case err != nil:
			log.Warn().Err(err).Msg("the campaign's lease could not be renewed; trying again")
		default:
			k.mutex.Lock()
			k.lease = lease
			k.mutex.Unlock()
		}
	}
}

func (k *leaseKeeper) release() {
	k.cancel(context.Canceled)
	<-k.done
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// An error leaves the lease to end by itself.
	_ = k.store.ReleaseLease(ctx, k.current())
}

// process names a process well enough to tell whether it still lives.
type process struct {
	host   string
	bootID string
	// space is the inode of the pid namespace: two containers on one machine may
	// have one host name, and one's pids mean nothing in the other.
	space string
	pid   int
	start uint64 // clock ticks since boot
}

func (p process) String() string {
	return fmt.Sprintf("%s pid %d (boot %s, pids %s, start %d)", p.host, p.pid, p.bootID, p.space, p.start)
}

func parseProcess(text string) (process, bool) {
	var p process
	host, rest, found := strings.Cut(text, " pid ")
	pid, rest, second := strings.Cut(rest, " (boot ")
	boot, rest, third := strings.Cut(rest, ", pids ")
	space, rest, fourth := strings.Cut(rest, ", start ")
	if !found || !second || !third || !fourth {
		return p, false
	}
	var err error
	if p.pid, err = strconv.Atoi(pid); err != nil {
		return p, false
	}
	if p.start, err = strconv.ParseUint(strings.TrimSuffix(rest, ")"), 10, 64); err != nil {
		return p, false
	}
	p.host, p.bootID, p.space = host, boot, space
	return p, true
}

// deadHere reports whether p is certainly dead: it ran in this boot of this
// machine, or in an earlier one, and is no more.
func (p process) deadHere(self process) bool {
	if p.host != self.host {
		return false
	}
	if p.bootID != self.bootID {
		return true
	}
	if p.space != self.space {
		return false
	}
	// A process of another user may be hidden from /proc; the kernel still says
	// whether there is one.
	if err := unix.Kill(p.pid, 0); err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	start, err := startTicks(p.pid)
	return err == nil && start != p.start || errors.Is(err, errEnded)
}

// errEnded: the process is there, but only until its parent has noticed.
var errEnded = errors.New("the process has ended")

func thisProcess() (process, error) {
	host, err := os.Hostname()
	if err != nil {
		return process{}, fmt.Errorf("own host name: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, fmt.Errorf("boot id: %w", err)
	}
	start, err := startTicks(os.Getpid())
	if err != nil {
		return process{}, err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return process{}, fmt.Errorf("own pid namespace: %w", err)
	}
	return process{host: host, bootID: strings.TrimSpace(string(boot)), space: space, pid: os.Getpid(), start: start}, nil
}

func startTicks(pid int) (uint64, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return 0, err
	}
	if stat.State == "Z" {
		return 0, fmt.Errorf("process %d: %w", pid, errEnded)
	}
	return stat.Starttime, nil
}
