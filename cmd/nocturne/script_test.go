package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nocturne/examples"
)

// TestScripts runs every command as a person would, in a home of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "contract": contract, "json": jsonValue, "freeport": freePort, "ready": ready, "shortdemo": shortDemo,
		},
	})
}

func setUpScript(env *testscript.Env) error {
	home, locks := filepath.Join(env.WorkDir, ".home"), filepath.Join(env.WorkDir, ".locks")
	for _, folder := range []string{home, locks} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	for _, variable := range [][2]string{{"HOME", home}, {"XDG_DATA_HOME", filepath.Join(home, "data")}, {locksVariable, locks}, {"GORACE", "atexit_sleep_ms=0"}} {
		env.Setenv(variable[0], variable[1])
	}
	return os.CopyFS(env.WorkDir, os.DirFS("testdata/campaigns"))
}

// exits STATUS COMMAND... runs a command that must end with that exit status, or
// with one of several: 0|3.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	status := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(status)) {
		ts.Fatalf("exit status %d, want %s: %s%s", status, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// contract DOCUMENT FILE checks an answer, contract events FILE a campaign's
// lines, field by field.
func contract(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: contract DOCUMENT|events FILE")
	}
	var faults []string
	if args[0] == "events" {
		faults = checkEvents(ts.ReadFile(args[1]))
	} else {
		faults = checkDocument(args[0], ts.ReadFile(args[1]))
	}
	if len(faults) > 0 {
		ts.Fatalf("%s", strings.Join(faults, "\n"))
	}
}

// json FILE PATH WANT compares a value of a document, such as
// trials.0.configuration.args, with its JSON; a text needs no quotes.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH WANT")
	}
	value, err := decodeOne(ts.ReadFile(args[0]))
	ts.Check(err)
	for _, step := range strings.Split(args[1], "/") {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(inner) {
				ts.Fatalf("%s: no item %s of %d", args[1], step, len(inner))
			}
			value = inner[i]
		default:
			ts.Fatalf("%s: %q is in no object", args[1], step)
		}
	}
	if n, isNumber := value.(json.Number); isNumber {
		got, _ := n.Float64()
		if want, err := strconv.ParseFloat(args[2], 64); err == nil && math.Abs(got-want) <= 1e-9*math.Abs(want) {
			value = json.Number(args[2]) // means over logarithms are not exact
		}
	}
	got, isText := value.(string)
	if !isText {
		encoded, err := json.Marshal(value)
		ts.Check(err)
		got = string(encoded)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %s, want %s (or not, with !)", args[1], got, args[2])
	}
}

// freeport NAME sets a variable to a port that is free now.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	ts.Check(listener.Close())
}

// ready URL waits until a server answers with success.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		if response, err := http.DefaultClient.Do(request); err == nil {
			ts.Check(response.Body.Close())
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ts.Fatalf("%s is not ready after %s", args[0], patience)
		}
	}
}

// shortdemo FILE writes the campaign of `nocturne demo` with a small budget.
func shortDemo(ts *testscript.TestScript, _ bool, args []string) {
	text := string(examples.Demo)
	for _, change := range [][2]string{{"trials: 14", "trials: 2"}, {"relaunches: 3", "relaunches: 2"}, {"load-scale=1500", "load-scale=15000"}, {"env: {", "env: {GORACE: atexit_sleep_ms=0, "}} {
		if !strings.Contains(text, change[0]) {
			ts.Fatalf("the demo has no %q to change", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}
