package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// cgroupPrefix begins the name of every cgroup that is made here; nothing else is
// ever killed or removed as a cgroup.
const cgroupPrefix = "nocturne-"

// cgroupName is the directory name of a launch's cgroup.
func cgroupName(marker string) string { return cgroupPrefix + marker }

// ownCgroup finds the directory of the cgroup v2 that a process is in. The
// hierarchy may be mounted anywhere: alone at /sys/fs/cgroup, or beside version 1
// at /sys/fs/cgroup/unified, or not at all.
func ownCgroup(proc procfs.Proc) (string, error) {
	cgroups, err := proc.Cgroups()
	if err != nil {
		return "", fmt.Errorf("read the own cgroup: %w", err)
	}
	// Version 2 is hierarchy 0 without controllers (cgroups(7)).
	i := slices.IndexFunc(cgroups, func(c procfs.Cgroup) bool { return c.HierarchyID == 0 && len(c.Controllers) == 0 })
	if i < 0 {
		return "", errors.New("this kernel runs without cgroup v2")
	}
	mounts, err := proc.MountInfo()
	if err != nil {
		return "", fmt.Errorf("read the mounts: %w", err)
	}
	for _, mount := range mounts {
		if mount.FSType != "cgroup2" {
			continue
		}
		if inside, ok := below(mount.Root, cgroups[i].Path); ok {
			return filepath.Join(unescapeMount(mount.MountPoint), inside), nil
		}
	}
	return "", fmt.Errorf("cgroup v2 is not mounted where %s could be seen", cgroups[i].Path)
}

// below returns the part of path under root; a mount may show only a part of the
// hierarchy. A path outside of the cgroup namespace begins with "/..".
func below(root, path string) (string, bool) {
	inside, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(inside) || strings.HasPrefix(path, "/..") {
		return "", false
	}
	return inside, true
}

// unescapeMount undoes the escapes of mountinfo.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// makeCgroup makes the cgroup of a launch below parent and checks that it will
// be of use: that processes can be put in, and killed as one (Linux 5.14).
func makeCgroup(parent, marker string) (string, error) {
	dir := filepath.Join(parent, cgroupName(marker))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"cgroup.procs", "cgroup.kill"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
		f.Close()
	}
	return dir, nil
}

// isLaunchCgroup says whether dir is the existing cgroup of the launch.
func isLaunchCgroup(dir, marker string) bool {
	if dir == "" || filepath.Base(dir) != cgroupName(marker) {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "cgroup.procs"))
	return err == nil
}

// killCgroup kills every process in the cgroup and below at once; one that forks
// meanwhile cannot escape.
func killCgroup(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
}

// cgroupMembers lists the processes in the cgroup and those below it.
func cgroupMembers(dir string) []int {
	var pids []int
	for _, sub := range cgroupTree(dir) {
		data, err := os.ReadFile(filepath.Join(sub, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(data)) {
			// A process of another pid namespace reads as 0, which names nobody here
			// and would stand for every process where parents are looked up.
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// cgroupTree lists a cgroup and those below it, parents first.
func cgroupTree(dir string) []string {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // removed meanwhile
		}
		if entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

// removeCgroup removes the emptied cgroup and those that the server made below
// it. The kernel may need a moment after the last process was collected.
func removeCgroup(dir string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		var failed error
		dirs := cgroupTree(dir)
		slices.Reverse(dirs)
		for _, sub := range dirs {
			if err := os.Remove(sub); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
		}
		if failed == nil || time.Now().After(deadline) {
			return failed
		}
		time.Sleep(time.Millisecond)
	}
}
