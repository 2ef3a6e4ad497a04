package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// fileSystem is what a kind of file system means for a database file.
type fileSystem struct {
	name    string
	network bool   // refused
	warning string // what may happen to the file
}

// fuseMagic is the type of every file system that a user process serves; the
// mount table tells which one.
const fuseMagic = 0x65735546

const temporary = "it is lost when the machine or the container stops"

// fileSystems are those that matter, by the type of statfs(2). The numbers that
// package unix lacks are those of the kernel and of the file systems' sources.
var fileSystems = map[int64]fileSystem{
	unix.NFS_SUPER_MAGIC:       {name: "nfs", network: true},
	unix.SMB_SUPER_MAGIC:       {name: "smb", network: true},
	unix.SMB2_SUPER_MAGIC:      {name: "smb2", network: true},
	unix.CIFS_SUPER_MAGIC:      {name: "cifs", network: true},
	unix.V9FS_MAGIC:            {name: "9p", network: true},
	unix.CEPH_SUPER_MAGIC:      {name: "ceph", network: true},
	unix.AFS_SUPER_MAGIC:       {name: "afs", network: true},
	unix.CODA_SUPER_MAGIC:      {name: "coda", network: true},
	unix.OCFS2_SUPER_MAGIC:     {name: "ocfs2", network: true},
	0x0bd00bd0:                 {name: "lustre", network: true},
	0x47504653:                 {name: "gpfs", network: true},
	0x19830326:                 {name: "beegfs", network: true},
	0x01161970:                 {name: "gfs2", network: true},
	unix.TMPFS_MAGIC:           {name: "tmpfs", warning: temporary},
	unix.RAMFS_MAGIC:           {name: "ramfs", warning: temporary},
	unix.OVERLAYFS_SUPER_MAGIC: {name: "overlay", warning: "it is lost when the container is removed"},
}

// networkFUSE are user-space file systems whose files lie on other machines.
var networkFUSE = []string{"sshfs", "rclone", "s3fs", "gcsfuse", "goofys", "mount-s3", "glusterfs", "ceph", "juicefs", "davfs", "blobfuse", "smb", "nfs"}

// checkFileSystem refuses a folder where SQLite's locks and shared memory do not
// work, and warns of one where the file does not last.
func checkFileSystem(folder string) (warnings []string, err error) {
	var status unix.Statfs_t
	if err := unix.Statfs(folder, &status); err != nil {
		return nil, fmt.Errorf("ask for the file system of %s: %w", folder, err)
	}
	kind := classify(int64(status.Type), func() string { return mountType(folder) }) //nolint:unconvert // 32 bits on some architectures
	if kind.network {
		return nil, fmt.Errorf("%s is on %s, a network file system, where SQLite's locks do not work and the database may be damaged: "+
			"name a file on a local disk, or a PostgreSQL server", folder, kind.name)
	}
	if kind.warning != "" {
		return []string{fmt.Sprintf("the database is on %s: %s", kind.name, kind.warning)}, nil
	}
	return nil, nil
}

// classify tells what a file system means for the database; mounted names a
// FUSE file system as the mount table does ("fuse.sshfs").
func classify(magic int64, mounted func() string) fileSystem {
	if magic != fuseMagic {
		return fileSystems[magic]
	}
	name := mounted()
	for _, network := range networkFUSE {
		if strings.Contains(name, network) {
			return fileSystem{name: name, network: true}
		}
	}
	return fileSystem{name: name, warning: "not every file system of this kind keeps locks and synchronizes to disk"}
}

// mountType returns the type of the mount that holds the folder, "fuse" when the
// mount table does not tell.
func mountType(folder string) string {
	kind, longest := "fuse", 0
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return kind
	}
	for _, mount := range mounts {
		point := strings.TrimSuffix(mount.MountPoint, "/")
		// Of mounts on the same point the last one is seen.
		if (folder == point || strings.HasPrefix(folder, point+"/")) && len(point) >= longest {
			kind, longest = mount.FSType, len(point)
		}
	}
	return kind
}

// lockProbe is how often a taken lock is tried again.
const lockProbe = 10 * time.Millisecond

// lockFolder keeps other processes of this program from making or migrating a
// database in the folder until release is called or the process ends. The
// folder itself is locked, so that no file stays behind.
func lockFolder(ctx context.Context, folder string) (release func(), err error) {
	handle, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("lock the folder of the database: %w", err)
	}
	ticker := time.NewTicker(lockProbe)
	defer ticker.Stop()
	for {
		err := unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = handle.Close() }, nil // closing unlocks
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock the folder %s: %w", folder, err), handle.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process that opens or migrates a database in %s: %w", folder, ctx.Err()), handle.Close())
		case <-ticker.C:
		}
	}
}
