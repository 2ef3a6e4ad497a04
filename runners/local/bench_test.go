package local_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"nocturne/runners"
	"nocturne/runners/runnertest"
)

// momentOf reads the moment that the fake server wrote into its log.
func momentOf(b *testing.B, result runners.Result, event string) time.Time {
	b.Helper()
	log, err := os.ReadFile(result.LogPath)
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(event + ` at (\d+)`).FindSubmatch(log)
	if found == nil {
		b.Fatalf("the log does not say when the server was %s: %s", event, log)
	}
	nanoseconds, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, nanoseconds)
}

// reportLatencies reports the mean and the worst of the latencies.
func reportLatencies(b *testing.B, latencies []time.Duration) {
	var sum, worst time.Duration
	for _, latency := range latencies {
		sum += latency
		worst = max(worst, latency)
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(len(latencies))/1000, "ms-mean")
	b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst")
	b.ReportMetric(0, "ns/op") // the wait itself says nothing
}

// BenchmarkReadiness is the time from the first moment at which the server would
// call itself healthy to the end of loading.
func BenchmarkReadiness(b *testing.B) {
	host := newHost(b)
	var latencies []time.Duration
	for b.Loop() {
		observer := &runnertest.Recorder{}
		result := host.Run(b.Context(), runnertest.ServerJob(b, "--health-after=700ms"), observer)
		runnertest.WantComplete(b, result)
		latencies = append(latencies, observer.At[runners.Verifying].Sub(momentOf(b, result, "ready")))
	}
	reportLatencies(b, latencies)
}

// BenchmarkDeath is the time from the end of the server to the end of loading.
func BenchmarkDeath(b *testing.B) {
	host := newHost(b)
	var latencies []time.Duration
	for b.Loop() {
		observer := &runnertest.Recorder{}
		result := host.Run(b.Context(), runnertest.ServerJob(b, "--port-after=1m", "--die-after=300ms"), observer)
		latencies = append(latencies, observer.At[runners.Stopping].Sub(momentOf(b, result, "dead")))
	}
	reportLatencies(b, latencies)
}

// BenchmarkTrialOverhead is the runner's own time for each trial on a server that
// loads in no time: everything but its start, its answers, warm-up and rounds.
func BenchmarkTrialOverhead(b *testing.B) {
	host := newHost(b)
	var overhead, total time.Duration
	trials := 0
	for b.Loop() {
		job := runnertest.ServerJob(b)
		job.Env, job.Prove = map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_PROTO"}
		result := host.Run(b.Context(), job, &runnertest.Recorder{})
		runnertest.WantComplete(b, result)
		overhead += result.Overhead
		total += result.Ended.Sub(result.Started)
		trials++
	}
	b.ReportMetric(float64(overhead.Microseconds())/float64(trials)/1000, "ms-overhead")
	b.ReportMetric(float64(total.Microseconds())/float64(trials)/1000, "ms-total")
}

// BenchmarkCommandTrial is a whole trial of a command that does nothing.
func BenchmarkCommandTrial(b *testing.B) {
	host := newHost(b)
	for b.Loop() {
		job := runnertest.CommandJob(b)
		job.Args = []string{"echo", `{"x": 1}`}
		runnertest.WantComplete(b, host.Run(b.Context(), job, &runnertest.Recorder{}))
	}
}
