package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestF34_NetworkFileSystemsAreRefused(t *testing.T) {
	tests := map[string]struct {
		magic   int64
		mounted string
		network bool
		warning bool
	}{
		"ext4":        {magic: unix.EXT4_SUPER_MAGIC},
		"xfs":         {magic: unix.XFS_SUPER_MAGIC},
		"btrfs":       {magic: unix.BTRFS_SUPER_MAGIC},
		"nfs":         {magic: unix.NFS_SUPER_MAGIC, network: true},
		"cifs":        {magic: unix.CIFS_SUPER_MAGIC, network: true},
		"smb2":        {magic: unix.SMB2_SUPER_MAGIC, network: true},
		"9p":          {magic: unix.V9FS_MAGIC, network: true},
		"ceph":        {magic: unix.CEPH_SUPER_MAGIC, network: true},
		"lustre":      {magic: 0x0bd00bd0, network: true},
		"sshfs":       {magic: fuseMagic, mounted: "fuse.sshfs", network: true},
		"rclone":      {magic: fuseMagic, mounted: "fuse.rclone", network: true},
		"gocryptfs":   {magic: fuseMagic, mounted: "fuse.gocryptfs", warning: true},
		"virtiofs":    {magic: fuseMagic, mounted: "virtiofs", warning: true},
		"unknown":     {magic: 0x12345},
		"tmpfs":       {magic: unix.TMPFS_MAGIC, warning: true},
		"ramfs":       {magic: unix.RAMFS_MAGIC, warning: true},
		"overlay":     {magic: unix.OVERLAYFS_SUPER_MAGIC, warning: true},
		"unseen fuse": {magic: fuseMagic, mounted: "fuse", warning: true},
	}
	for name, test := range tests {
		kind := classify(test.magic, func() string { return test.mounted })
		if kind.network != test.network || (kind.warning != "") != test.warning {
			t.Errorf("%s is %+v, want network %v, warning %v", name, kind, test.network, test.warning)
		}
		if (test.network || test.warning) && kind.name == "" {
			t.Errorf("%s has no name for the message", name)
		}
	}
}

func TestMountType(t *testing.T) {
	if got := mountType("/proc/self"); got != "proc" {
		t.Errorf("/proc/self is on %q, want proc", got)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc", link); err != nil {
		t.Fatal(err)
	}
	if got := mountType(link); got != "proc" {
		t.Errorf("a link to /proc is on %q, want proc", got)
	}
}

func TestTemporaryFileSystemWarns(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "nocturne-test-")
	if err != nil {
		t.Fatalf("this test needs /dev/shm: %v", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // memory
	s, err := Open(t.Context(), filepath.Join(folder, "nocturne.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is kept
	status, err := s.Status(t.Context())
	if err != nil || len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "tmpfs") {
		t.Errorf("status %+v, %v: want a warning of tmpfs", status, err)
	}
}

func TestFolderLock(t *testing.T) {
	folder := t.TempDir()
	release, err := lockFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockProbe)
	defer cancel()
	if _, err := lockFolder(ctx, folder); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v, want to wait until the context ends", err)
	}
	got := make(chan error, 1)
	go func() {
		release, err := lockFolder(t.Context(), folder)
		if err == nil {
			release()
		}
		got <- err
	}()
	release()
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the lock was not handed on")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("locking left %v, %v", entries, err)
	}
}
