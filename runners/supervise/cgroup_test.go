package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/procfs"
)

func TestOwnCgroup(t *testing.T) {
	t.Parallel()
	const (
		unified = "23 1 0:21 / / rw - ext4 /dev/sda rw\n" +
			"31 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
			"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		bound = "31 23 0:26 /docker/abc /sys/fs/cgroup ro,nosuid master:9 - cgroup2 cgroup rw\n"
		blank = `31 23 0:26 / /mnt/c\040group rw - cgroup2 cgroup2 rw` + "\n"
		v1    = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	)
	tests := map[string]struct {
		mounts, cgroup string
		want           string
		fails          string
	}{
		"unified":           {unified, "0::/system.slice/nocturne.service\n", "/sys/fs/cgroup/system.slice/nocturne.service", ""},
		"root":              {unified, "0::/\n", "/sys/fs/cgroup", ""},
		"hybrid":            {hybrid, "8:pids:/\n4:memory:/process_api/1\n0::/\n", "/sys/fs/cgroup/unified", ""},
		"part of the tree":  {bound, "0::/docker/abc/init\n", "/sys/fs/cgroup/init", ""},
		"outside the mount": {bound, "0::/docker/other\n", "", "not mounted where /docker/other"},
		"outside namespace": {unified, "0::/../other\n", "", "not mounted where"},
		"blank in the path": {blank, "0::/a\n", "/mnt/c group/a", ""},
		"version 1 only":    {v1, "4:memory:/x\n1:name=systemd:/x\n", "", "without cgroup v2"},
		"not mounted":       {v1, "4:memory:/x\n0::/x\n", "", "not mounted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := procFixture(t, fstest.MapFS{
				"7/mountinfo": {Data: []byte(test.mounts)},
				"7/cgroup":    {Data: []byte(test.cgroup)},
			})
			fs, err := procfs.NewFS(root)
			if err != nil {
				t.Fatal(err)
			}
			proc, err := fs.Proc(7)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ownCgroup(proc)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("cgroup %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// Only a cgroup that carries the launch's own name is ever touched.
func TestIsLaunchCgroup(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for _, name := range []string{"nocturne-A", "system.slice"} {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(parent, name, "cgroup.procs"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		dir  string
		want bool
	}{
		"its own":    {filepath.Join(parent, "nocturne-A"), true},
		"another":    {filepath.Join(parent, "nocturne-B"), false},
		"the system": {filepath.Join(parent, "system.slice"), false},
		"none":       {"", false},
	}
	for name, test := range tests {
		if got := isLaunchCgroup(test.dir, "A"); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
