package supervise

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkDeathDetection measures from the kill of a server to the news of it.
// The goal is 50 ms.
func BenchmarkDeathDetection(b *testing.B) {
	var total, worst time.Duration
	for b.Loop() {
		b.StopTimer()
		p := start(b, helperSpec(b, "block"))
		await(b, p, "up")
		b.StartTimer()
		killed := time.Now()
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		<-p.Done()
		took := time.Since(killed)
		b.StopTimer()
		total, worst = total+took, max(worst, took)
		if err := p.Stop(testContext(b)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N)/1000, "ms/death")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

// BenchmarkLaunch measures what a launch costs beside the server's own time:
// prepare, start, and stop of a program that ends by itself.
func BenchmarkLaunch(b *testing.B) {
	for _, noCgroup := range []bool{false, true} {
		b.Run(map[bool]string{false: "cgroup", true: "descent"}[noCgroup], func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var prepare, start, stop time.Duration
			for b.Loop() {
				spec := Spec{
					Args: []string{"/bin/true"}, Directory: "/", NoCgroup: noCgroup,
					LogPath: filepath.Join(b.TempDir(), "log"), StopTimeout: time.Second,
				}
				t0 := time.Now()
				p, err := Prepare(ctx, spec)
				if err != nil {
					b.Fatal(err)
				}
				t1 := time.Now()
				if err := p.Start(ctx); err != nil {
					b.Fatal(err)
				}
				t2 := time.Now()
				<-p.Done()
				t3 := time.Now()
				if err := p.Stop(ctx); err != nil {
					b.Fatal(err)
				}
				prepare, start, stop = prepare+t1.Sub(t0), start+t2.Sub(t1), stop+time.Since(t3)
			}
			for name, total := range map[string]time.Duration{"prepare": prepare, "start": start, "stop": stop} {
				b.ReportMetric(float64(total.Microseconds())/float64(b.N)/1000, name+"-ms")
			}
		})
	}
}

// BenchmarkProcesses measures the listing of a launch's processes.
func BenchmarkProcesses(b *testing.B) {
	p := start(b, helperSpec(b, "family"))
	awaitAll(b, p, "up", 5)
	for b.Loop() {
		if _, err := p.Processes(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLineLatency measures how old a line is when the tuner has it.
func BenchmarkLineLatency(b *testing.B) {
	spec := helperSpec(b, "block")
	spec.Args = []string{"/bin/sh", "-c", `while read -r line; do echo "$line"; done < "$0"`, fifo(b)}
	p := start(b, spec)
	in, err := os.OpenFile(spec.Args[3], os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	for b.Loop() {
		if _, err := fmt.Fprintln(in, "x"); err != nil {
			b.Fatal(err)
		}
		if _, err := p.NextLine(testContext(b)); err != nil {
			b.Fatal(err)
		}
	}
}

func fifo(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkSplitter measures the cutting of output into lines.
func BenchmarkSplitter(b *testing.B) {
	text := []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", 650))
	b.SetBytes(int64(len(text)))
	lines := 0
	s := &splitter{emit: func(Line) { lines++ }}
	for b.Loop() {
		s.write(text)
	}
	if lines == 0 || bytes.Count(text, []byte("\n")) == 0 {
		b.Fatal("no lines: " + strconv.Itoa(lines))
	}
}
