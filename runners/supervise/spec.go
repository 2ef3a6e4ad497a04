package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// Command is the hidden argument that turns the tuner's executable into a
	// supervisor; see Main.
	Command = "supervise"
	// MarkerVariable is set in the environment of every server, to the marker of
	// its launch.
	MarkerVariable = "NOCTURNE_LAUNCH"
	// DefaultLogLimit bounds a log when the Spec does not.
	DefaultLogLimit = 64 << 20
	// DefaultKillTimeout is how long killed processes may take to disappear. One
	// that survives SIGKILL longer hangs in the kernel, usually in the GPU
	// driver, and only a reboot helps.
	DefaultKillTimeout = 2 * time.Minute
)

// Spec is what a supervisor is to run.
type Spec struct {
	// Args is the argument vector. A program without a slash is looked up in the
	// PATH of Env.
	Args []string
	// Env is the whole environment, secrets included; nothing is inherited. The
	// marker is added to it.
	Env map[string]string
	// Directory is the working directory; empty means that of the tuner.
	Directory string
	// LogPath is where stdout and stderr are written; an existing file is
	// replaced. Empty means no log.
	LogPath string
	// LogLimit bounds the log in bytes: the first half of it is kept, and of what
	// follows the newest, between a quarter and a half. Zero means
	// DefaultLogLimit.
	LogLimit int64
	// StopTimeout is the time from terminate to kill.
	StopTimeout time.Duration
	// KillTimeout is the time from kill until Stop gives up and names the
	// survivors. Zero means DefaultKillTimeout.
	KillTimeout time.Duration
	// CgroupParent is the directory of the cgroup v2 below which the launch's
	// cgroup is made; empty means that of the tuner itself.
	CgroupParent string
	// NoCgroup forbids a cgroup.
	NoCgroup bool
}

// resolve checks the spec and fills in what was left out.
func (s Spec) resolve() (Spec, error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return s, errors.New("no program to start: the argument vector is empty")
	}
	for i, arg := range s.Args {
		if strings.ContainsRune(arg, 0) {
			return s, fmt.Errorf("argument %d holds a zero byte", i)
		}
	}
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return s, fmt.Errorf("environment variable %q cannot be passed: its name must be neither empty nor hold '=', "+
				"and neither name nor value may hold a zero byte", name)
		}
	}
	if s.StopTimeout < 0 || s.KillTimeout < 0 || s.LogLimit < 0 {
		return s, errors.New("stop timeout, kill timeout and log limit must not be negative")
	}
	if s.KillTimeout == 0 {
		s.KillTimeout = DefaultKillTimeout
	}
	if s.LogLimit == 0 {
		s.LogLimit = DefaultLogLimit
	}
	return s.absolute()
}

// absolute makes the paths independent of the working directory, which the
// supervisor does not share.
func (s Spec) absolute() (Spec, error) {
	var err error
	if s.Directory == "" {
		if s.Directory, err = os.Getwd(); err != nil {
			return s, fmt.Errorf("find the working directory of the server: %w", err)
		}
	}
	if s.Directory, err = filepath.Abs(s.Directory); err != nil {
		return s, fmt.Errorf("find the working directory of the server: %w", err)
	}
	if s.LogPath == "" {
		return s, nil
	}
	if s.LogPath, err = filepath.Abs(s.LogPath); err != nil {
		return s, fmt.Errorf("find the log of the server: %w", err)
	}
	return s, nil
}
