package local

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"nocturne/runners"
	"nocturne/runners/fingerprint"

	"nocturne/runners/supervise"
)

// Name is the word for this machine in campaign files.
const Name = "local"

// Options change what a host takes from its process. The zero value is what a
// program wants.
type Options struct {
	// Environ is the environment ("NAME=value") below those that are built for
	// servers; nil is that of the process.
	Environ []string
	// Program is what ${nocturne} stands for; empty is the running program.
	Program string
	// LockDirectory is where locks lie; empty is a directory that all users of
	// the machine share.
	LockDirectory string
	// Source is where the fingerprint is read from; nil is this machine.
	Source fingerprint.Source
	// GPUMemory reads the memory in use on each GPU in MiB, nothing where there
	// are no GPUs; nil asks nvidia-smi, where it exists.
	GPUMemory func(ctx context.Context) ([]int64, error)
	// GPURelease is how long the driver may take to give the memory of ended
	// processes back; zero means two minutes.
	GPURelease time.Duration
	// ConfFiles are the NCCL configuration files that a process with the given
	// environment reads; nil finds them as NCCL does.
	ConfFiles func(env map[string]string) []string
}

// Host is this machine. It implements [runners.Host].
type Host struct {
	mutex  sync.Mutex
	locked []string // resources that a campaign of this process holds
	// versions of the programs that were asked for theirs, by the command.
	versions      map[string]string
	versionsMutex sync.Mutex

	environ       []string
	program       string
	lockDirectory string
	source        fingerprint.Source
	gpuMemory     func(ctx context.Context) ([]int64, error)
	gpuRelease    time.Duration
	confFiles     func(env map[string]string) []string
}

var _ runners.Host = (*Host)(nil)

// New returns the host.
func New(options Options) (*Host, error) {
	h := &Host{
		environ: options.Environ, program: options.Program, lockDirectory: options.LockDirectory, source: options.Source,
		gpuMemory: options.GPUMemory, gpuRelease: options.GPURelease, confFiles: options.ConfFiles,
	}
	if h.environ == nil {
		h.environ = os.Environ()
	}
	if h.program == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running program: %w", err)
		}
		h.program = program
	}
	if h.lockDirectory == "" {
		h.lockDirectory = chooseLockDirectory()
	}
	if h.source == nil {
		h.source = fingerprint.Local()
	}
	if h.gpuMemory == nil {
		h.gpuMemory = nvidiaMemory(h.source)
	}
	if h.gpuRelease == 0 {
		h.gpuRelease = defaultGPURelease
	}
	if h.confFiles == nil {
		h.confFiles = confFiles
	}
	return h, nil
}

// Name implements [runners.Host].
func (h *Host) Name() string { return Name }

// Fingerprint reads hardware and stack.
func (h *Host) Fingerprint(ctx context.Context) (runners.Fingerprint, error) {
	return fingerprint.Read(ctx, h.source)
}

// Recover implements [runners.Host].
func (h *Host) Recover(ctx context.Context, launch runners.Launch) error {
	return supervise.Recover(ctx, launch)
}

// Run implements [runners.Host].
func (h *Host) Run(ctx context.Context, job runners.Job, observer runners.Observer) runners.Result {
	return newTrial(h, job, observer).run(ctx)
}
