package local

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"nocturne/runners"
	"nocturne/runners/servers"
)

const (
	// versionTimeout bounds the question for a version: a Python that starts from a
	// cold network file system takes seconds.
	versionTimeout = 30 * time.Second
	// mostHead is how much of a script is read for its first line.
	mostHead = 4 << 10
)

// ServerVersion implements [runners.Host]. What cannot be told before a launch is
// told by the server after it, so no failure here is worth a word.
func (h *Host) ServerVersion(ctx context.Context, job runners.Job) string {
	kind, err := servers.Get(job.Kind)
	if err != nil {
		return ""
	}
	fill := placeholders{host: loopback, program: h.program}
	command := kind.VersionCommand(fill.fill(job.Args), func(program string) string { return servers.Interpreter(head(program)) })
	if len(command) == 0 {
		return ""
	}
	h.versionsMutex.Lock()
	defer h.versionsMutex.Unlock()
	key := strings.Join(command, "\x00")
	if version, asked := h.versions[key]; asked {
		return version
	}
	version, told := servers.InstalledVersion(h.ask(ctx, command, job))
	if !told && ctx.Err() != nil {
		return ""
	}
	if h.versions == nil {
		h.versions = map[string]string{}
	}
	h.versions[key] = version.String()
	return version.String()
}

// ask runs a command in the environment of the job, without its secrets, and
// returns what it printed.
func (h *Host) ask(ctx context.Context, command []string, job runners.Job) string {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	job.Secrets, job.Env = nil, placeholders{host: loopback, program: h.program}.fillMap(job.Env)
	env, _, err := environment(h.environ, &job, nil)
	if err != nil {
		return ""
	}
	asked := exec.CommandContext(ctx, command[0], command[1:]...)
	asked.Dir, asked.WaitDelay = job.Directory, time.Second
	for name, value := range env {
		asked.Env = append(asked.Env, name+"="+value)
	}
	text, err := asked.CombinedOutput() // llama.cpp prints its version to stderr
	if err != nil {
		return ""
	}
	return string(text)
}

// head is the beginning of a file that is found like a program; empty when it
// cannot be read.
func head(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, mostHead))
	return string(text)
}
