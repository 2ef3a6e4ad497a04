// Package overhead measures what the tuner itself costs: whole campaigns on
// real processes that load in no time and are measured in no time, so that
// nearly all that is left is the tuner.
package overhead

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/runners/sim"
	"nocturne/runners/supervise"
	"nocturne/store"
	"nocturne/store/open"
	"nocturne/tuner"
	"nocturne/tuner/spec"
)

// TestMain lets the test binary be the supervisor and the simulated server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Command:
			os.Exit(supervise.Main(os.Args[2:]))
		case "sim":
			os.Exit(sim.Main(context.Background(), os.Args[2:], os.Environ(), os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// server answers one request of one token with next to no work.
const server = `
campaign: server
server:
  kind: sglang
  command: ["${nocturne}", sim, --model-path=/models/m, --tp=1, "--port=${port}", --max-running-requests=48,
    --sim-load-time=1ms, --sim-load-scale=1000, --sim-serving-scale=1000]
simulation: {serving_scale: 1000}
workload: {dataset: random, input_tokens: 1, output_tokens: 1, requests: 1, warmup: 0, rounds: 1}
objective: {maximize: output_throughput}
` + space

// command is a program that ends at once.
const command = `
campaign: command
server: {kind: command, command: [echo, '{"score": 1}']}
workload: {rounds: 1}
objective: {maximize: score}
` + space

// The knobs do nothing: what they cost is proposing them, passing them on and
// reading them back.
const space = `
space:
  env:
    KNOB_A: {int: [1, 20], default: 1}
    KNOB_B: {choices: [unset, a, b, c]}
seed: 1
budget: {trials: 20}
`

// launches of one campaign: baseline, search, confirmation.
const launches = 1 + 20 + 4

func BenchmarkServerTrial(b *testing.B)  { benchmark(b, server) }
func BenchmarkCommandTrial(b *testing.B) { benchmark(b, command) }

// benchmark runs campaigns and reports milliseconds for each trial: of the wall
// clock, of the server's own time within that, of the runner beside the server,
// of the store, and of all of the tuner together.
func benchmark(b *testing.B, file string) {
	host := &timedHost{Host: newHost(b)}
	saved := &timedStore{Store: newStore(b)}
	campaign, _, err := spec.Parse(filepath.Join(b.TempDir(), "campaign.yaml"), []byte(file), spec.Options{})
	if err != nil {
		b.Fatal(err)
	}
	logs := b.TempDir()
	var wall time.Duration
	campaigns := 0
	for b.Loop() {
		t := &tuner.Tuner{Store: saved, Host: host, Log: zerolog.Nop(), LogDirectory: logs, StoreLocation: "benchmark"}
		began := time.Now()
		outcome, err := t.Run(b.Context(), campaign, tuner.Options{NewRun: true})
		wall += time.Since(began)
		if err != nil || outcome.State != store.CampaignComplete {
			b.Fatalf("campaign ended as %s: %s: %v", outcome.State, outcome.Cause, err)
		}
		campaigns++
	}
	if host.trials != campaigns*launches {
		b.Fatalf("%d campaigns had %d launches, expected %d each", campaigns, host.trials, launches)
	}
	report := func(name string, total time.Duration) {
		b.ReportMetric(float64(total.Microseconds())/1000/float64(host.trials), "ms-"+name+"/trial")
	}
	report("wall", wall)
	report("server", host.server)
	report("runner", host.total-host.server)
	report("store", time.Duration(saved.spent.Load()))
	report("tuner", wall-host.server)
	b.ReportMetric(0, "ns/op") // a campaign of some length says nothing
}

func newHost(b *testing.B) *local.Host {
	host, err := local.New(local.Options{LockDirectory: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	return host
}

func newStore(b *testing.B) store.Store {
	opened, err := open.Store(b.Context(), fmt.Sprintf("sqlite:%s/benchmark.db", b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = opened.Close() })
	if err := opened.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	return opened
}

// timedHost sums up what the trials took.
type timedHost struct {
	runners.Host
	trials        int
	total, server time.Duration
}

func (h *timedHost) Run(ctx context.Context, job runners.Job, observer runners.Observer) runners.Result {
	began := time.Now()
	result := h.Host.Run(ctx, job, observer)
	h.trials++
	h.total += time.Since(began)
	h.server += result.Ended.Sub(result.Started) - result.Overhead
	return result
}

// timedStore sums up what the changes took.
type timedStore struct {
	store.Store
	spent atomic.Int64 // nanoseconds
}

func (s *timedStore) since(began time.Time) { s.spent.Add(int64(time.Since(began))) }

func (s *timedStore) AddTrial(ctx context.Context, lease store.Lease, trial store.Trial) (store.Trial, error) {
	defer s.since(time.Now())
	return s.Store.AddTrial(ctx, lease, trial)
}

func (s *timedStore) ClaimTrial(ctx context.Context, lease store.Lease, host string) (store.Trial, store.Attempt, error) {
	defer s.since(time.Now())
	return s.Store.ClaimTrial(ctx, lease, host)
}

func (s *timedStore) RecordLaunch(ctx context.Context, lease store.Lease, id string, attempt int, launch runners.Launch) error {
	defer s.since(time.Now())
	return s.Store.RecordLaunch(ctx, lease, id, attempt, launch)
}

func (s *timedStore) RecordStage(ctx context.Context, lease store.Lease, id string, attempt int, stage runners.Stage) error {
	defer s.since(time.Now())
	return s.Store.RecordStage(ctx, lease, id, attempt, stage)
}

func (s *timedStore) FinishTrial(ctx context.Context, lease store.Lease, trial store.Trial, attempt int) error {
	defer s.since(time.Now())
	return s.Store.FinishTrial(ctx, lease, trial, attempt)
}

func (s *timedStore) AppendEvent(ctx context.Context, id, name string, at time.Time, payload json.RawMessage) (store.Event, error) {
	defer s.since(time.Now())
	return s.Store.AppendEvent(ctx, id, name, at, payload)
}
