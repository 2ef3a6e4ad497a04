package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"nocturne/runners"
	"nocturne/runners/fingerprint"
)

// lockDirectories are where lock files may lie, the first that can be written
// counts. They are shared by all users of the machine: a lock that only its own
// user sees protects nothing.
func lockDirectories() []string { return []string{"/run/lock", os.TempDir()} }

// Lock takes the GPUs of a job, by UUID, against other campaigns on the machine,
// and ends what a killed tuner left on them.
// The kernel releases the locks (flock) when the process dies.
func (h *Host) Lock(ctx context.Context, gpus runners.GPUSelection, holder string) (release func(), err error) {
	resources, err := h.resources(ctx, gpus)
	if err != nil {
		return nil, err
	}
	var held []*os.File
	release = func() {
		for _, file := range held {
			// The name stays, because another process may have it open by now; it
			// only no longer says who holds it. Closing releases.
			_ = file.Truncate(0)
			_ = file.Close()
		}
		held = nil
		h.mutex.Lock()
		h.locked = nil
		h.mutex.Unlock()
	}
	// In one order everywhere, so that two campaigns cannot each hold one half.
	slices.Sort(resources)
	resources = slices.Compact(resources)
	for _, resource := range resources {
		file, err := h.lockResource(resource, holder)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, file)
	}
	if err := h.recoverJournal(ctx, resources); err != nil {
		release()
		return nil, err
	}
	h.mutex.Lock()
	h.locked = resources
	h.mutex.Unlock()
	return release, nil
}

// resources names what the selection stands for.
func (h *Host) resources(ctx context.Context, gpus runners.GPUSelection) ([]string, error) {
	whole, err := h.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	used, err := fingerprint.Select(whole.Hardware, gpus)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, gpu := range used.GPUs {
		names = append(names, gpu.UUID)
	}
	if len(names) == 0 {
		return []string{runners.HostResource}, nil
	}
	return names, nil
}

func (h *Host) lockResource(resource, holder string) (*os.File, error) {
	path := filepath.Join(h.lockDirectory, "nocturne-"+resource+".lock")
	file, err := openShared(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s of %s: %w", resource, h.Name(), err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		content, _ := os.ReadFile(path) // without it the holder is not named
		return nil, &runners.LockedError{Host: h.Name(), Resource: resource, Holder: strings.TrimSpace(string(content))}
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, holder+"\n")); err != nil {
		file.Close()
		return nil, fmt.Errorf("write lock %s: %w", path, err)
	}
	return file, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// openShared opens a lock file that any user may hold. In a sticky directory the
// kernel refuses to create over another user's file (fs.protected_regular), so
// an existing one is opened without asking for creation.
func openShared(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	return file, file.Chmod(0o666) // whatever the umask is
}

// chooseLockDirectory returns the first shared directory that can be written.
func chooseLockDirectory() string {
	for _, directory := range lockDirectories() {
		if unix.Access(directory, unix.W_OK) == nil {
			return directory
		}
	}
	return os.TempDir()
}
