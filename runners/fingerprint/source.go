package fingerprint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Source is where a fingerprint is read from.
type Source interface {
	// Files is the root of the file system, with /proc, /sys and /etc.
	Files() fs.FS
	// Run runs a command to its end. A command that ends with another status than
	// 0 is no error.
	Run(ctx context.Context, name string, args ...string) (Output, error)
	// Size is the capacity in bytes of the file system at a path.
	Size(path string) (int64, error)
}

// Output is what a command printed, and its exit status.
type Output struct {
	Text   string // stdout, then stderr
	Status int
}

// Local is the Source of this machine.
func Local() Source { return local{} }

type local struct{}

// commandTimeout bounds one command. nvidia-smi takes seconds on eight GPUs
// without persistence mode.
const commandTimeout = 30 * time.Second

// toolDirectories are where container runtimes and WSL put nvidia-smi without
// touching the PATH.
var toolDirectories = []string{"/usr/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib", "/opt/bin"}

// Files implements Source.
func (local) Files() fs.FS { return os.DirFS("/") }

// Run implements Source.
func (local) Run(ctx context.Context, name string, args ...string) (Output, error) {
	path, err := findTool(name)
	if err != nil {
		return Output{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return Output{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		// A process that hangs in the driver does not even die of SIGKILL; its
		// waiting goroutine is left to it.
		select {
		case err = <-ended:
		case <-time.After(2 * cmd.WaitDelay):
			return Output{}, fmt.Errorf("%s does not answer and cannot be killed: the driver hangs: %w", name, ctx.Err())
		}
	}
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Output{}, fmt.Errorf("%s did not answer within %s: %w", name, commandTimeout, ctx.Err())
	case err != nil && !errors.As(err, &status):
		return Output{}, err
	}
	return Output{Text: stdout.String() + stderr.String(), Status: cmd.ProcessState.ExitCode()}, nil
}

func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range toolDirectories {
		if found, elsewhere := exec.LookPath(dir + "/" + name); elsewhere == nil {
			return found, nil
		}
	}
	return "", err
}

// Size implements Source.
func (local) Size(path string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(stat.Blocks) * stat.Bsize, nil
}
