package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkServing runs a closed loop over loopback against a server process and
// reports how far the measured rate is from the predicted one.
func BenchmarkServing(b *testing.B) {
	const requests, tokens, scale = 20, 256, 50
	for _, concurrency := range []int{1, 8} {
		b.Run(fmt.Sprintf("concurrency=%d", concurrency), func(b *testing.B) {
			args := with(append(eagle(2), quiet...), fmt.Sprintf("--sim-serving-scale=%d", scale), "--sim-load-scale=100000", "--sim-workers=0", "--port=0")
			prediction, err := Predict(args, sixSettings)
			if err != nil {
				b.Fatal(err)
			}
			want := prediction.ThroughputOf(Workload{8, tokens, concurrency})
			log := newOutput()
			cmd := command(b, args)
			cmd.Env, cmd.Stderr = environmentList(sixSettings), log
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			for !log.has(readyLine) {
				time.Sleep(time.Millisecond)
			}
			url := addressLine.FindStringSubmatch(log.String())[1] + "/v1/completions"
			var rate float64
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				var group sync.WaitGroup
				for client := range concurrency {
					group.Go(func() {
						for n := range requests {
							stream(b, url, fmt.Sprintf("%d %d %d a b c d e", i, client, n), tokens)
						}
					})
				}
				group.Wait()
				rate += float64(concurrency*requests*tokens) / (time.Since(begin).Seconds() * scale)
			}
			rate /= float64(b.N)
			b.ReportMetric(rate, "tok/s")
			b.ReportMetric(100*(rate/want-1), "%deviation")
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

func stream(b *testing.B, url, prompt string, tokens int) {
	body := fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"ignore_eos":true,"stream":true}`, prompt, tokens)
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || !bytes.HasSuffix(content, []byte("data: [DONE]\n\n")) {
		b.Errorf("a stream broke off: %v", err)
	}
}

// BenchmarkLaunch measures the processor time of a launch with eight workers that
// loads for 15 minutes in one second.
func BenchmarkLaunch(b *testing.B) {
	var used time.Duration
	for b.Loop() {
		log := newOutput()
		cmd := command(b, with(story, "--port=0", "--sim-load-scale=900"))
		cmd.Stderr = log
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		for !log.has(readyLine) {
			time.Sleep(10 * time.Millisecond)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		_ = cmd.Wait()
		used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/launch")
}
