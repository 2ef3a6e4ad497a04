package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait; a test that reaches it has failed.
const patience = 30 * time.Second

// output collects what a server prints and lets tests wait for a text in it.
type output struct {
	mu      sync.Mutex
	changed chan struct{} // replaced at each write
	text    bytes.Buffer
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) has(text string) bool { return strings.Contains(o.String(), text) }

// await waits until the text was printed.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	o.awaitCount(t, text, 1)
}

// awaitCount waits until the text was printed so many times.
func (o *output) awaitCount(t *testing.T, text string, times int) {
	t.Helper()
	limit := time.After(patience)
	for {
		o.mu.Lock()
		found, changed := bytes.Count(o.text.Bytes(), []byte(text)) >= times, o.changed
		o.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%q was not printed within %v:\n%s", text, patience, o)
		}
	}
}

// running is a server within the test process.
type running struct {
	url    string
	log    *output
	status chan int
	stop   context.CancelFunc
}

const readyLine = "The server is fired up and ready to roll!"

var addressLine = regexp.MustCompile(`Uvicorn running on (http://\S+)`)

// launchMain starts Main without waiting. Time runs fast and there are no workers
// unless the arguments say otherwise.
func launchMain(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{log: newOutput(), status: make(chan int, 1), stop: cancel}
	args = append([]string{"--model-path=/models/k", "--tp=8", "--port=0", "--sim-workers=0",
		"--sim-load-scale=100000", "--sim-serving-scale=500"}, args...)
	go func() { r.status <- Main(ctx, args, env, r.log, r.log) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-r.status:
		case <-time.After(patience):
			t.Errorf("the server did not stop:\n%s", r.log)
		}
	})
	return r
}

// start is launchMain for a server that becomes ready.
func start(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	r := launchMain(t, env, args...)
	r.log.await(t, readyLine)
	r.url = addressLine.FindStringSubmatch(r.log.String())[1]
	return r
}

// exit waits for the end and returns the status.
func (r *running) exit(t *testing.T) int {
	t.Helper()
	select {
	case status := <-r.status:
		r.status <- status // for the clean-up
		return status
	case <-time.After(patience):
		t.Fatalf("the server did not end:\n%s", r.log)
		return 0
	}
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return do(t, http.MethodGet, r.url+path, "")
}

func (r *running) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	return do(t, http.MethodPost, r.url+path, body)
}

func do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// events splits a stream into the data of its events.
func events(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	scanner := bufio.NewScanner(strings.NewReader(body))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
			out = append(out, data)
		} else if scanner.Text() != "" {
			t.Errorf("%q is no event", scanner.Text())
		}
	}
	return out
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// subprocess starts a server as a process of its own.
func subprocess(t *testing.T, env []string, args ...string) (*exec.Cmd, *output) {
	t.Helper()
	log := newOutput()
	cmd := command(t, append([]string{"--model-path=/models/k", "--port=0", "--sim-load-scale=100000"}, args...))
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 100 * time.Millisecond
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, log
}

// command is the test binary as a server.
func command(tb testing.TB, args []string) *exec.Cmd {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return exec.Command(program, append([]string{"sim"}, args...)...)
}
