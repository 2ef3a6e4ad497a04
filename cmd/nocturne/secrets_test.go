package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/internal/testpg"
)

const (
	secretFromEnv  = "hf_VerySecretValueOfTheEnvironment"
	secretFromFile = "sk-VerySecretValueOfAFile"
	secretPassword = "VerySecretPasswordOfTheDatabase"
)

// secretive is a campaign whose command gives its secrets away wherever it can:
// on both streams, and in the words with which it fails.
func (w *world) secretive() string {
	w.t.Helper()
	key := w.write("key", secretFromFile+"\n")
	w.env = append(w.env, "MY_TOKEN="+secretFromEnv)
	w.write("tell.sh", `
echo "token $HF_TOKEN"; echo "key $SERVER_API_KEY" >&2
if [ "$2" = 3 ]; then echo "login with $HF_TOKEN failed" >&2; exit 2; fi
until [ -e gate ]; do sleep 0.01; done
echo "{\"score\": $2}"
`)
	return w.write("secretive.yaml", fmt.Sprintf(`
campaign: secretive
server:
  kind: command
  command: [sh, tell.sh]
  env: {HF_TOKEN: {from_env: MY_TOKEN}, SERVER_API_KEY: {from_file: %s}, %s: "%s"}
workload: {rounds: 1}
objective: {maximize: score}
space: {flags: {--a: {int: [1, 3], default: 1}}}
seed: 1
budget: {trials: 2}
`, key, worldVariable, w.folder))
}

// F38 (g): secrets are in no output, log, store, archive, nor in what the
// processes of the machine show to everybody.
func TestF38_SecretsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string {
			u, err := url.Parse(testpg.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.UserPassword(u.User.Username(), secretPassword)
			return u.String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, db(t))
			file := w.secretive()
			tuner := w.start("tune", file, "--log-level=debug")
			if !tuner.await(isStage("measuring")) {
				t.Fatalf("the tuner has ended: %s", tuner.stderr.String())
			}
			w.checkProcesses()
			var told strings.Builder
			show, _, _ := w.run("show", "secretive") // while it runs
			told.WriteString(show)
			w.write("gate", "")
			if status := tuner.end(); status != 0 {
				t.Fatalf("tune: exit status %d: %s", status, tuner.stderr.String())
			}
			for e := range tuner.events {
				told.WriteString(e.line)
			}
			told.WriteString(tuner.stderr.String())
			for _, args := range [][]string{
				{"validate", file}, {"render", file}, {"render", file, "--json"}, {"try", file, "--set", "--a=3"}, {"tune", file, "--new-run"},
				{"show", "secretive"}, {"trials", "secretive"}, {"trials", "secretive", "--json"}, {"best", "--format=shell"},
				{"compare", "secretive@1", "secretive@2"}, {"export"}, {"db", "status"}, {"resume", "secretive"},
			} {
				stdout, stderr, _ := w.run(args...)
				told.WriteString(stdout + stderr)
			}
			if !strings.Contains(told.String(), "login with *** failed") {
				t.Error("the failed trial's last words are in no answer: the test would not see a secret in them")
			}
			w.checkText("the outputs", told.String())
			w.checkFiles()
		})
	}
}

// A database that cannot be reached is told without its password.
func TestF38_DatabaseErrorHasNoPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for _, db := range []string{
		"postgres://me:" + secretPassword + "@127.0.0.1:1/nocturne", "postgres://me:" + secretPassword + "%zz@host/x",
		"mysql://me:" + secretPassword + "@host/x", "postgres://me@127.0.0.1:1/x?password=" + secretPassword,
	} {
		for _, args := range [][]string{{"campaigns"}, {"tune", w.bowl()}, {"db", "copy", db}} {
			stdout, stderr, status := w.run(append(args, "--db", db)...)
			if status == 0 || stderr == "" {
				t.Errorf("nocturne %v with --db %s: exit status %d, %q", args, db, status, stderr)
			}
			w.checkText("the outputs", stdout+stderr)
		}
	}
}

// checkText fails when a text holds a secret.
func (w *world) checkText(what, text string) {
	w.t.Helper()
	for _, secret := range []string{secretFromEnv, secretFromFile, secretPassword} {
		if at := strings.Index(text, secret); at >= 0 {
			w.t.Errorf("%s hold a secret: ...%s", what, text[max(0, at-200):at+len(secret)])
		}
	}
}

// checkProcesses looks at what the tuner's and the supervisor's processes show:
// command lines to everybody, environments to their user.
func (w *world) checkProcesses() {
	w.t.Helper()
	supervisors := 0
	for _, pid := range w.processes() {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		w.checkText("command lines", string(cmdline))
		if bytes.Contains(cmdline, []byte("supervise")) {
			supervisors++
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil {
				w.t.Fatal(err)
			}
			w.checkText("the supervisor's environment", string(environ))
		}
	}
	if supervisors != 1 {
		w.t.Errorf("%d supervisors run, want 1", supervisors)
	}
}

// checkFiles looks into every file of the world: the store, its log, what trials
// leave. What a server itself writes is kept as it is; only the user reads it.
func (w *world) checkFiles() {
	w.t.Helper()
	logs := 0
	err := filepath.WalkDir(w.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "key" || path == w.program {
			return err
		}
		if strings.HasPrefix(entry.Name(), "round-") {
			logs++
			if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
				w.t.Errorf("%s has mode %v, want 0600 (%v)", path, info.Mode(), err)
			}
			return nil
		}
		text, err := os.ReadFile(path)
		w.checkText(path, string(text))
		return err
	})
	if err != nil || logs == 0 {
		w.t.Errorf("%d logs were seen: %v", logs, err)
	}
}
