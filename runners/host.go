package runners

import (
	"context"
	"fmt"
	"time"
)

// Host carries out trials on one machine. Trials run one at a time; the caller
// does not overlap calls of Run.
type Host interface {
	// Name is the word people use for the host: "local", "ssh://root@gpu-1".
	Name() string
	// Fingerprint reads the machine's hardware and software stack. What cannot
	// be read is named in the report, not guessed.
	Fingerprint(ctx context.Context) (Fingerprint, error)
	// ServerVersion asks the program of a job for its version without launching the
	// server; empty where it cannot be told. It asks once for each program.
	ServerVersion(ctx context.Context, job Job) string
	// Lock takes the GPUs of the job (by UUID; the whole machine where it has
	// none) against other campaigns on the same host, until release is called
	// or the process dies. A taken lock is a *LockedError, which names the holder.
	Lock(ctx context.Context, gpus GPUSelection, holder string) (release func(), err error)
	// Run carries the job out and leaves no process of it behind, whatever
	// happens. Everything that goes wrong is told in the Result. When the context
	// is cancelled, the server is stopped and the outcome is Interrupted.
	Run(ctx context.Context, job Job, observer Observer) Result
	// Recover makes sure that nothing of an earlier launch is left, also when
	// the process that made it was killed. It returns once everything is gone.
	Recover(ctx context.Context, launch Launch) error
}

// HostResource is what is locked on a machine without GPUs: the whole of it.
const HostResource = "host"

// LockedError says that another campaign uses what a job needs.
type LockedError struct {
	Host string
	// Resource is the UUID of a GPU, or HostResource.
	Resource string
	// Holder is what the other campaign calls itself; empty when it did not say.
	Holder string
}

func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	what := e.Resource + " of host " + e.Host
	if e.Resource == HostResource {
		what = "host " + e.Host
	}
	return fmt.Sprintf("%s is in use by %s: wait for it or stop it, two campaigns at once would measure each other", what, holder)
}

// Observer is told what a trial does while it runs. Its methods are called
// from one goroutine at a time and must not block for long.
type Observer interface {
	// Launched is called when the supervisor exists and before the server
	// starts. The server is not started when it returns an error: a launch that
	// is not on record could not be cleaned up after a crash.
	Launched(launch Launch) error
	// Stage is called when the trial enters a stage.
	Stage(stage Stage)
	// Phase is called when the server's log shows progress within loading.
	Phase(phase Phase)
	// Round is called after each measured round. It may end the trial early.
	Round(round Round) RoundDecision
}

// Stage is where a running trial is.
type Stage string

// Stages of a trial, in order.
const (
	Preparing Stage = "preparing"
	Launching Stage = "launching"
	Loading   Stage = "loading"
	Verifying Stage = "verifying"
	Warming   Stage = "warming"
	Measuring Stage = "measuring"
	Stopping  Stage = "stopping"
)

// Phase is progress within loading, read from the server's log.
type Phase struct {
	Name string `json:"name"` // "weights", "kv_cache", "graph_capture" ...
	// Percent done, 0 to 100; negative when the log does not say.
	Percent float64 `json:"percent"`
}

// Round is one pass of the workload at one load point.
type Round struct {
	Point   int // index of the load point
	Number  int // from 1 within the load point
	Metrics Metrics
}

// RoundDecision is what the observer answers to a round.
type RoundDecision uint8

// Decisions after a round.
const (
	Continue RoundDecision = iota
	// Prune stops the trial: it cannot win. The Result's outcome is Pruned.
	Prune
)

// Launch identifies the processes of one launch well enough to find and stop
// them from another process, or after a restart of the tuner.
type Launch struct {
	Host string `json:"host"`
	// SupervisorPID and SupervisorStart (clock ticks since boot, field 22 of
	// /proc/PID/stat) name the supervisor process; a pid alone may have been
	// reused.
	SupervisorPID   int    `json:"supervisor_pid"`
	SupervisorStart uint64 `json:"supervisor_start"`
	// BootID is /proc/sys/kernel/random/boot_id: after a reboot nothing is left.
	BootID string `json:"boot_id"`
	// Marker is the value of NOCTURNE_LAUNCH in the environment of every process
	// of the launch.
	Marker string `json:"marker"`
	// Cgroup is the path of the launch's cgroup v2, empty where none was made.
	Cgroup  string    `json:"cgroup,omitempty"`
	Address string    `json:"address,omitempty"` // host:port given to the server
	LogPath string    `json:"log_path,omitempty"`
	Started time.Time `json:"started"`
}
