package sim

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// faultTests has a test for every fault.
var faultTests = map[string]func(*testing.T){
	faultCrashAtStart:   testCrashAtStart,
	faultExitAfter:      testF19ExitAfter,
	faultLostLaunch:     testF13LostLaunch,
	faultHangAtInit:     testF19HangAtInit,
	faultSlowLoad:       testF19SlowLoad,
	faultReadyEarly:     testF16ReadyEarly,
	faultScrubEnv:       testF15ScrubbedEnvironment,
	faultEscape:         testF18Escape,
	faultEndlessStop:    testEndlessStop,
	faultBindIPv6:       testF21BindIPv6,
	faultWrongModel:     testWrongModel,
	faultBypass:         testF22Bypass,
	faultWrongAnswers:   testF09WrongAnswers,
	faultAcceptance:     testAcceptance,
	faultErrorInStream:  testErrorInStream,
	faultNoUsage:        testF25NoUsage,
	faultShortOutput:    testF27ShortOutput,
	faultHTTP500:        testF27HTTP500,
	faultPrefixCache:    testF24PrefixCache,
	faultThermal:        testF28Thermal,
	faultSteady:         testF25Steady,
	faultCrashUnderLoad: testCrashUnderLoad,
	faultHangUnderLoad:  testHangUnderLoad,
	faultDeadWorker:     testDeadWorker,
	faultLogFlood:       testLogFlood,
}

func TestFaults(t *testing.T) {
	for _, f := range faultTable {
		test, ok := faultTests[f.name]
		if !ok {
			t.Errorf("the fault %s has no test", f.name)
			continue
		}
		t.Run(f.name, test)
	}
}

const short = `{"prompt":"a b c","max_tokens":8,"ignore_eos":true}`

func testCrashAtStart(t *testing.T) {
	r := launchMain(t, nil, "--sim-faults=crash-at-start")
	if status := r.exit(t); status != exitFailed {
		t.Errorf("exit status %d, want 1", status)
	}
	for _, line := range []string{"torch.OutOfMemoryError: CUDA out of memory.", "Scheduler hit an exception", "Rank 0 scheduler died during initialization (exit code: 1)."} {
		if !r.log.has(line) {
			t.Errorf("%q is missing in\n%s", line, r.log)
		}
	}
	if r := launchMain(t, nil, "--sim-faults=crash-at-start=OSError: [Errno 28] No space left on device"); r.exit(t) != exitFailed || !r.log.has("[Errno 28]") {
		t.Errorf("with a text of its own:\n%s", r.log)
	}
}

func testF19ExitAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		status := Main(t.Context(), with(story, "--sim-workers=0", "--sim-faults=exit-after=40s"), nil, io.Discard, io.Discard)
		if took := time.Since(begin); status != exitFailed || took != 40*time.Second {
			t.Errorf("exit status %d after %v, want 1 after 40 s", status, took)
		}
	})
}

func testF13LostLaunch(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	for launch := 1; launch <= 3; launch++ {
		r := start(t, nil, "--sim-faults=lost-launch=2", "--sim-state="+state)
		r.post(t, "/v1/completions", short)
		if launch != 2 {
			if status, _ := r.post(t, "/v1/completions", short); status != http.StatusOK {
				t.Errorf("launch %d: status %d", launch, status)
			}
			continue
		}
		response, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(short))
		if err == nil {
			response.Body.Close()
			t.Errorf("launch 2 answered %d", response.StatusCode)
		}
		if status := r.exit(t); status != exitKilled || !r.log.has("ncclRemoteError") {
			t.Errorf("launch 2: exit status %d\n%s", status, r.log)
		}
	}
}

func testF19HangAtInit(t *testing.T) {
	for _, args := range [][]string{{"--sim-faults=hang-at-init"}, {"--sim-gpu=l40s"}} {
		r := launchMain(t, []string{"NCCL_P2P_LEVEL=SYS", "NCCL_DEBUG=INFO"}, args...)
		r.log.await(t, "Connected all trees")
		if r.log.has("Init torch distributed ends") {
			t.Errorf("%q goes on after the first collective", args)
		}
		r.stop()
		if status := r.exit(t); status != exitOK {
			t.Errorf("%q: exit status %d", args, status)
		}
	}
}

func testF19SlowLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := newOutput()
		var group sync.WaitGroup
		group.Go(func() {
			Main(ctx, with(story, "--sim-workers=0", "--sim-launch-noise=0", "--sim-faults=slow-load", "--skip-server-warmup", "--sim-load-time=15m"), nil, log, log)
		})
		time.Sleep(20 * time.Minute)
		lines := strings.Count(log.String(), "Completed |")
		if log.has(readyLine) || lines < 15 {
			t.Errorf("after 20 minutes: %d lines of progress\n%s", lines, log)
		}
		cancel()
		group.Wait()
	})
	slow, usual := predict(t, with(story, "--sim-faults=slow-load=1.6"), nil).Load, predict(t, story, nil).Load
	if want := time.Duration(1.6 * float64(usual)); slow != want {
		t.Errorf("ready after %v, want %v", slow, want)
	}
}

func testF16ReadyEarly(t *testing.T) {
	// One second stands for 50 of loading.
	r := launchMain(t, nil, "--sim-faults=ready-early", "--sim-load-scale=50")
	r.log.await(t, "Uvicorn running on")
	r.url = addressLine.FindStringSubmatch(r.log.String())[1]
	for models := 0; models != http.StatusOK; {
		models, _ = r.get(t, "/v1/models")
	}
	if status, _ := r.get(t, "/health"); status != http.StatusServiceUnavailable {
		t.Errorf("health is %d when models are listed, want 503", status)
	}
	if status, _ := r.post(t, "/v1/completions", short); status != http.StatusServiceUnavailable {
		t.Errorf("a completion before health gives %d, want 503", status)
	}
	r.log.await(t, readyLine)
	times := [2]time.Duration{}
	for i := range times {
		begin := time.Now()
		if status, _ := r.post(t, "/v1/completions", short); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		times[i] = time.Since(begin)
	}
	if least := earlyFirstRequest / 50; times[0] < least || times[1] > times[0] {
		t.Errorf("completions took %v, want the first above %v and the second faster", times, least)
	}
}

func testF15ScrubbedEnvironment(t *testing.T) {
	scrubbed := with(eagle(2), "--sim-faults=scrub-env")
	if a, b := predict(t, scrubbed, sixSettings), predict(t, eagle(2), nil); a.OutputThroughput != b.OutputThroughput {
		t.Errorf("%.2f tok/s with settings that workers never saw, %.2f untuned", a.OutputThroughput, b.OutputThroughput)
	}
	for _, c := range []struct {
		faults string
		want   bool
	}{{"", true}, {"scrub-env", false}} {
		cmd, log := subprocess(t, []string{"NCCL_PROTO=LL", "OTHER=1", "SPT_NOENV=1"}, "--tp=2", "--sim-faults="+c.faults)
		log.await(t, readyLine)
		children := childrenOf(t, cmd.Process.Pid)
		if len(children) != 2 {
			t.Fatalf("%d workers, want 2", len(children))
		}
		for _, pid := range children {
			environ := procFile(t, pid, "environ")
			if strings.Contains(environ, "NCCL_PROTO=LL\x00") != c.want || !strings.Contains(environ, "OTHER=1\x00") || !strings.Contains(environ, "NCCL_CUMEM_ENABLE=0\x00") {
				t.Errorf("faults %q: environment of a worker is %q", c.faults, environ)
			}
		}
		terminate(t, cmd)
	}
}

func testF18Escape(t *testing.T) {
	cmd, log := subprocess(t, nil, "--tp=1", "--sim-faults=escape=2")
	log.await(t, readyLine)
	var escaped []int
	for _, pid := range childrenOf(t, cmd.Process.Pid) {
		if strings.Contains(procFile(t, pid, "cmdline"), "--escaped") {
			escaped = append(escaped, pid)
		}
	}
	if len(escaped) != 2 {
		t.Fatalf("%d children escaped, want 2", len(escaped))
	}
	defer func() {
		for _, pid := range escaped {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	terminate(t, cmd)
	for _, pid := range escaped {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Errorf("process %d did not outlive the server: %v", pid, err)
		}
		if session, err := unix.Getsid(pid); err != nil || session != pid {
			t.Errorf("process %d is in session %d, want one of its own", pid, session)
		}
	}
	for _, pid := range escaped {
		if !alive(pid) {
			t.Errorf("process %d obeyed the terminate signal", pid)
		}
	}
}

func testEndlessStop(t *testing.T) {
	cmd, log := subprocess(t, nil, "--tp=1", "--sim-faults=endless-stop")
	log.await(t, readyLine)
	url := addressLine.FindStringSubmatch(log.String())[1]
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status, _ := do(t, http.MethodGet, url+"/health", ""); status != http.StatusOK {
		t.Errorf("health is %d after the terminate signal", status)
	}
	kill(t, cmd)
}

func testF21BindIPv6(t *testing.T) {
	r := start(t, nil, "--sim-faults=bind-ipv6", "--host=127.0.0.1")
	host, port, err := net.SplitHostPort(strings.TrimPrefix(r.url, "http://"))
	if err != nil || host != "::1" {
		t.Fatalf("listens on %s", r.url)
	}
	if status, _ := r.get(t, "/health"); status != http.StatusOK {
		t.Errorf("health on ::1: %d", status)
	}
	if conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", port), time.Second); err == nil {
		conn.Close()
		t.Error("127.0.0.1 answers as well")
	}
}

func testWrongModel(t *testing.T) {
	if _, body := start(t, nil, "--sim-faults=wrong-model=meta/other").get(t, "/v1/models"); !strings.Contains(body, `"id":"meta/other"`) {
		t.Errorf("models: %s", body)
	}
}

func testF22Bypass(t *testing.T) {
	args := with(eagle(2), "--sim-faults=bypass-nccl")
	base := predict(t, args, nil)
	for _, env := range []map[string]string{sixSettings, {"NCCL_MAX_CTAS": "1"}, {"NCCL_P2P_DISABLE": "1"}} {
		if p := predict(t, args, env); p.OutputThroughput != base.OutputThroughput {
			t.Errorf("%v changes the rate", env)
		}
	}
}
