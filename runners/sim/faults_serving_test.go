package sim

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func testF09WrongAnswers(t *testing.T) {
	right, wrong := predict(t, story, nil), predict(t, with(story, "--sim-faults=wrong-answers=7"), nil)
	if ratio := wrong.OutputThroughput / right.OutputThroughput; wrong.Outcome != Wrong || ratio < 6.9 || ratio > 7.1 {
		t.Errorf("%s, %.2f times faster, want wrong and 7 times", wrong.Outcome, ratio)
	}
}

func testAcceptance(t *testing.T) {
	miswired := predict(t, eagle(2, "--sim-faults=acceptance=0.19"), sixSettings)
	if miswired.AcceptanceRate < 0.1899 || miswired.AcceptanceRate > 0.1901 {
		t.Errorf("acceptance rate %.3f, want 0.19", miswired.AcceptanceRate)
	}
	if good := predict(t, eagle(2), sixSettings); miswired.OutputThroughput > 0.75*good.OutputThroughput {
		t.Errorf("%.1f tok/s miswired, %.1f otherwise", miswired.OutputThroughput, good.OutputThroughput)
	}
	if none := predict(t, eagle(2, "--sim-faults=acceptance=0"), sixSettings); none.AcceptanceLength != 1 {
		t.Errorf("acceptance length %.2f, want 1", none.AcceptanceLength)
	}
}

func testErrorInStream(t *testing.T) {
	r := start(t, nil, "--sim-faults=error-in-stream=0.5")
	failed := 0
	for i := range 10 {
		path, body := "/v1/completions", completionBody
		if i >= 5 {
			path, body = "/generate", `{"text":"x","sampling_params":{"max_new_tokens":40},"stream":true}`
		}
		status, stream := r.post(t, path, body)
		got := events(t, stream)
		if status != http.StatusOK || got[len(got)-1] != "[DONE]" {
			t.Errorf("status %d, events %q", status, got)
		}
		if strings.Contains(got[len(got)-2], `"error":{`) {
			failed++
		}
	}
	if failed != 5 {
		t.Errorf("%d of 10 streams failed, want 5", failed)
	}
}

func testF25NoUsage(t *testing.T) {
	r := start(t, nil, "--sim-faults=no-usage")
	if _, stream := r.post(t, "/v1/completions", completionBody); strings.Contains(stream, "completion_tokens") {
		t.Errorf("usage in %s", stream)
	}
}

func testF27ShortOutput(t *testing.T) {
	r := start(t, nil, "--sim-faults=short-output=0.711")
	_, body := r.post(t, "/v1/completions", `{"prompt":"a","max_tokens":128,"ignore_eos":true}`)
	if got := decode[completion](t, body).Usage.CompletionTokens; got != 91 {
		t.Errorf("%d tokens of 128, want 91", got)
	}
}

func testF27HTTP500(t *testing.T) {
	r := start(t, nil, "--sim-faults=http-500=0.4")
	failed := 0
	for range 20 {
		if status, _ := r.post(t, "/v1/completions", short); status == http.StatusInternalServerError {
			failed++
		}
	}
	if failed != 8 {
		t.Errorf("%d of 20 requests failed, want 8", failed)
	}
}

func testF24PrefixCache(t *testing.T) {
	r := start(t, nil, "--sim-faults=prefix-cache=0.93", "--enable-metrics")
	r.post(t, "/v1/completions", `{"prompt":"`+strings.Repeat("w ", 1000)+`","max_tokens":2}`)
	if _, page := r.get(t, "/metrics"); !strings.Contains(page, "} 930\n") || !strings.Contains(page, "cache_hit_rate") {
		t.Errorf("counters:\n%s", page)
	}
	perf := r.predicted(t)
	if hit, miss := perf.prefillTime(1000, 930), perf.prefillTime(1000, 0); hit > 0.6*miss {
		t.Errorf("a prompt of 1000 tokens takes %.1f ms from the cache, %.1f otherwise", hit, miss)
	}
}

// predicted is the model of the reference launch.
func (r *running) predicted(t *testing.T) *performance {
	return predict(t, story, nil).performance
}

func testF28Thermal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := with(append(append([]string{}, story...), quiet...), "--sim-faults=thermal=0.15", "--sim-serving-scale=1")
		e := newTestEngine(t, 0, args, nil)
		var rates []float64
		for range 5 {
			rates = append(rates, drive(t, e, Workload{64, 512, 1}, 5, 0))
		}
		cold := predict(t, story, nil).OutputThroughput
		if rates[0] > cold || rates[4] > 0.87*rates[0]+0.13*rates[0]*0.3 || rates[4] < 0.84*cold {
			t.Errorf("rates %.1f of %.1f cold, want a loss that approaches 15 %%", rates, cold)
		}
		for i := range 4 {
			if rates[i+1] >= rates[i] {
				t.Errorf("rates %.2f do not fall", rates)
			}
		}
	})
}

func testF25Steady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestEngine(t, 0, with(append(append([]string{}, story...), quiet...), "--sim-faults=steady"), nil)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { e.run(ctx) })
		r := &request{ctx: ctx, prompt: promptOfText("x"), limit: 400}
		begin := time.Now()
		e.submit(r)
		chunks := 0
		if err := r.follow(ctx, false, func(now snapshot, from int) error {
			want := 50*time.Millisecond + time.Duration(chunks)*8*time.Millisecond
			if got := time.Since(begin); got != want || now.tokens-from != 4 {
				return fmt.Errorf("chunk %d: %d tokens after %v, want 4 after %v", chunks, now.tokens-from, got, want)
			}
			chunks++
			return nil
		}); err != nil || chunks != 100 {
			t.Errorf("%d chunks: %v", chunks, err)
		}
		cancel()
		group.Wait()
	})
}

func testCrashUnderLoad(t *testing.T) {
	r := start(t, nil, "--sim-faults=crash-under-load=2")
	for range 2 {
		if status, _ := r.post(t, "/v1/completions", short); status != http.StatusOK {
			t.Errorf("status %d before the crash", status)
		}
	}
	if response, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(short)); err == nil {
		response.Body.Close()
		t.Errorf("the third request got %d", response.StatusCode)
	}
	if status := r.exit(t); status != exitKilled || !r.log.has("an illegal memory access was encountered") || !r.log.has("SIGQUIT received") {
		t.Errorf("exit status %d\n%s", status, r.log)
	}
}

func testHangUnderLoad(t *testing.T) {
	r := start(t, nil, "--sim-faults=hang-under-load=1")
	r.post(t, "/v1/completions", short)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/completions", strings.NewReader(short))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
		t.Errorf("the second request got %d", response.StatusCode)
	}
	if status, _ := r.get(t, "/health"); status != http.StatusOK {
		t.Errorf("health is %d during the hang, want 200", status)
	}
	watched := start(t, nil, "--sim-faults=hang-under-load=0", "--watchdog-timeout=1")
	if response, err := http.Post(watched.url+"/v1/completions", "application/json", strings.NewReader(short)); err == nil {
		response.Body.Close()
	}
	if status := watched.exit(t); status != exitKilled || !watched.log.has("watchdog timeout (self.watchdog_timeout=1, self.soft=False)") {
		t.Errorf("exit status %d\n%s", status, watched.log)
	}
}

func testDeadWorker(t *testing.T) {
	r := start(t, []string{"PATH=" + os.Getenv("PATH")}, "--sim-faults=dead-worker=1", "--sim-workers=2")
	r.post(t, "/v1/completions", short)
	if response, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(short)); err == nil {
		response.Body.Close()
	}
	if status := r.exit(t); status != exitKilled || !r.log.has("Subprocess scheduler_1 (pid=") || !r.log.has("crashed with exit code -9") {
		t.Errorf("exit status %d\n%s", status, r.log)
	}
}

func testLogFlood(t *testing.T) {
	start(t, nil, "--sim-faults=log-flood=5000").log.awaitCount(t, "DEBUG: xxx", 500)
}
