// Package load measures the load generator against the simulated server, whose
// times are known: by how much what it reports differs from the truth.
package load

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"nocturne/runners/load"
	"nocturne/runners/sim"
)

// TestMain lets the test binary be the simulated server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sim" {
		os.Exit(sim.Main(context.Background(), os.Args[2:], os.Environ(), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const (
	promptTokens = 64
	outputTokens = 64
	generations  = 4 // requests for each place
)

// flags are a server without noise that loads at once and has room for all. Less
// memory for the cache than usual leaves some for 512 running requests.
var flags = []string{
	"--model-path=/models/m", "--served-model-name=m", "--tp=4", "--enable-metrics", "--max-running-requests=512", "--mem-fraction-static=0.75",
	"--sim-load-time=0s", "--sim-launch-noise=0", "--sim-round-noise=0", "--sim-workers=0", "--log-level=error",
}

// BenchmarkAccuracy reports, for a closed loop against the simulated server in
// (nearly) real time, the difference from what the server's model predicts: of the steady
// rate in percent, and how late the generator was. Run with -benchtime 1x on a
// machine with two idle cores or more: the server needs one of them.
func BenchmarkAccuracy(b *testing.B) {
	for _, c := range []struct {
		concurrency int
		scale       float64 // of the server's time, so that none takes minutes
	}{{1, 1}, {64, 2}, {512, 8}} {
		b.Run(fmt.Sprintf("concurrency=%d", c.concurrency), func(b *testing.B) {
			concurrency := c.concurrency
			o := measure(b, concurrency, c.scale)
			prediction, err := sim.Predict(flags, nil)
			if err != nil {
				b.Fatal(err)
			}
			truth := prediction.ThroughputOf(sim.Workload{PromptTokens: promptTokens, OutputTokens: outputTokens, Concurrency: concurrency})
			steady := o.Metrics[load.MetricSteadyOutputThroughput]
			b.ReportMetric(steady, "tokens/s")
			b.ReportMetric(100*math.Abs(steady/truth-1), "%-off-rate")
			b.ReportMetric(o.Metrics["mean_client_lag_ms"], "ms-lag")
			b.ReportMetric(100*o.Metrics[load.MetricClientBusy], "%-client-busy")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func measure(b *testing.B, concurrency int, scale float64) load.RoundOutcome {
	b.Helper()
	address := serve(b, scale)
	client, err := load.New(load.Target{BaseURL: "http://" + address, Model: "m", Protocol: load.OpenAICompletions})
	if err != nil {
		b.Fatal(err)
	}
	dataset, err := load.NewDataset(load.DatasetSpec{
		Workload: "accuracy", Dataset: load.DatasetRandom, InputTokens: promptTokens, Requests: generations * concurrency, Seed: 1,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var o load.RoundOutcome
	for i := range b.N {
		o, err = client.Round(b.Context(), load.RoundSpec{
			Prompts: dataset.Prompts(i, 1), Concurrency: concurrency, OutputTokens: outputTokens, IgnoreEOS: true, ServingScale: scale,
		})
		if err != nil || len(o.Failures) > 0 {
			b.Fatalf("%v, failures %v", err, o.Failures)
		}
	}
	b.StopTimer()
	return o
}

// serve starts the simulated server and waits until it serves.
func serve(b *testing.B, scale float64) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	command := exec.CommandContext(ctx, os.Args[0], append([]string{
		"sim", "--port=" + address[strings.LastIndexByte(address, ':')+1:], fmt.Sprintf("--sim-serving-scale=%g", scale),
	}, flags...)...)
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cancel(); _ = command.Wait() }) // killed, which is an error
	client, err := load.New(load.Target{BaseURL: "http://" + address, Model: "m", Protocol: load.OpenAICompletions})
	if err != nil {
		b.Fatal(err)
	}
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for range 600 {
		<-ticks.C
		if _, err := client.Complete(ctx, load.Request{Prompt: "ready", OutputTokens: 1, IgnoreEOS: true}); err == nil {
			return address
		}
	}
	b.Fatal("the simulated server was not ready within a minute")
	return ""
}
