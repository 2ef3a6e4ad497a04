package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Environment is what /proc/PID/environ shows of a process: the environment it
// was started with, not what it changed later.
type Environment struct {
	// Known is false when the environment cannot be read: that is not the same
	// as an empty one.
	Known bool
	// Gone says that the process is dead, or none that has an environment.
	Gone bool
	// Reason says why it is not known.
	Reason string
	// Variables holds all of it, secrets included. Of a name that occurs twice
	// the first counts, as for getenv(3).
	Variables map[string]string
}

// ReadEnvironment reads the environment of a process.
//
// A process that changes its title (setproctitle) writes over its environment
// in place: what is left are zero bytes, or the end of the title. Such a block
// is not known. SPT_NOENV=1 in the environment keeps py-setproctitle from it.
func ReadEnvironment(pid int) Environment {
	const attempts, pause = 5, time.Millisecond
	for attempt := 1; ; attempt++ {
		env, starting := readEnvironment(pid)
		if !starting || attempt == attempts {
			return env
		}
		time.Sleep(pause) // within execve(2): over in microseconds
	}
}

// readEnvironment also says whether the process seems to be in the middle of
// execve(2), when both its environment and its command line look empty.
func readEnvironment(pid int) (env Environment, starting bool) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Environment{Gone: true, Reason: "the process has ended"}, false
	}
	stat, err := proc.Stat()
	if err != nil || dead(stat.State, 1) {
		return Environment{Gone: true, Reason: "the process has ended"}, false
	}
	if stat.Flags&kernelThread != 0 {
		return Environment{Gone: true, Reason: "a kernel thread"}, false
	}
	entries, err := proc.Environ()
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH):
		return Environment{Gone: true, Reason: "the process has ended"}, false
	case err != nil:
		return Environment{Reason: err.Error()}, false
	case len(entries) == 0 && !started(proc):
		return Environment{Reason: "the process is just starting or ending"}, true
	case len(entries) == 0:
		// Started: but maybe only since the environment was read.
		if entries, err = proc.Environ(); err != nil {
			return Environment{Reason: err.Error()}, false
		}
	}
	variables, ok := parseEnvironment(entries)
	if !ok {
		return Environment{Reason: "the process wrote over its environment when it changed its title; " +
			"SPT_NOENV=1 in the environment of the server may help"}, false
	}
	return Environment{Known: true, Variables: variables}, false
}

// started says whether a process shows a command line.
func started(proc procfs.Proc) bool {
	args, err := proc.CmdLine()
	return err == nil && len(args) > 0
}

// parseEnvironment is false for a block that was written over: then it has
// entries that are empty or are no assignment.
func parseEnvironment(entries []string) (map[string]string, bool) {
	variables := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, false
		}
		if _, again := variables[name]; !again {
			variables[name] = value
		}
	}
	return variables, true
}

// Mismatch is a variable that a process has otherwise than planned.
type Mismatch struct {
	Process  Member
	Variable string
	// Want and Found are nil for absent.
	Want, Found *string
}

func (m Mismatch) String() string {
	return fmt.Sprintf("%s: %s is %s instead of %s", m.Process, m.Variable, quoteOrAbsent(m.Found), quoteOrAbsent(m.Want))
}

func quoteOrAbsent(value *string) string {
	if value == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", *value)
}

// Unreadable is a process whose environment is not known.
type Unreadable struct {
	Process Member
	Reason  string
}

// Verification is what the environments of the processes of a launch show.
type Verification struct {
	// Checked are the processes that could be read. With none, nothing is proved.
	Checked []Member
	// Mismatches are sorted by process, then by variable.
	Mismatches []Mismatch
	Unreadable []Unreadable
}

// VerifyEnvironment compares the environment of every process with the plan:
// variables in want must have that value, those in absent must not exist. The
// dead and kernel threads are left out.
func VerifyEnvironment(processes []Member, want map[string]string, absent []string) Verification {
	plan := make(map[string]*string, len(want)+len(absent))
	for _, name := range absent {
		plan[name] = nil
	}
	for name, value := range want {
		plan[name] = &value
	}
	names := make([]string, 0, len(plan))
	for name := range plan {
		names = append(names, name)
	}
	slices.Sort(names)

	var v Verification
	for _, process := range processes {
		env := ReadEnvironment(process.PID)
		switch {
		case env.Gone:
			continue
		case !env.Known:
			v.Unreadable = append(v.Unreadable, Unreadable{Process: process, Reason: env.Reason})
			continue
		}
		v.Checked = append(v.Checked, process)
		for _, name := range names {
			if m := (Mismatch{Process: process, Variable: name, Want: plan[name]}); m.differs(env) {
				v.Mismatches = append(v.Mismatches, m)
			}
		}
	}
	return v
}

// differs fills in what was found, and says whether it is not what was wanted.
func (m *Mismatch) differs(env Environment) bool {
	if value, ok := env.Variables[m.Variable]; ok {
		m.Found = &value
	}
	if m.Want == nil || m.Found == nil {
		return m.Want != m.Found
	}
	return *m.Want != *m.Found
}
