package tuner_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"nocturne/runners"
)

// fakeHost carries trials out in no time: the objective is a function of the
// launch, with seeded noise from launch to launch.
type fakeHost struct {
	mutex    sync.Mutex
	launches []runners.Job
	recovers []runners.Launch
	locked   bool
	// instance is the machine; empty is box:test.
	instance string
	// hardware is its kind; the zero value is one without GPUs.
	hardware runners.Hardware

	// version is what the installed server says of itself.
	version string

	// measure gives the result of a launch; nil measures value.
	measure func(number int, job runners.Job) runners.Result
	// value is the noise-free objective of a launch.
	value func(job runners.Job) float64
	noise float64
	// before runs when a launch begins, with its number from 1.
	before func(number int)
}

func (h *fakeHost) Name() string { return "local" }

func (h *fakeHost) Fingerprint(context.Context) (runners.Fingerprint, error) {
	hardware := h.hardware
	hardware.Key, hardware.Name = cmp.Or(hardware.Key, "hw1:test"), cmp.Or(hardware.Name, "test machine")
	hardware.Instance = cmp.Or(h.instance, "box:test")
	if hardware.GPUs == nil {
		hardware.GPUs = []runners.GPU{}
	}
	return runners.Fingerprint{Hardware: hardware, Stack: runners.Stack{Driver: "1.0", Kernel: "6.1"}}, nil
}

func (h *fakeHost) ServerVersion(context.Context, runners.Job) string { return h.version }

func (h *fakeHost) Lock(context.Context, runners.GPUSelection, string) (func(), error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.locked {
		return nil, &runners.LockedError{Host: "local", Resource: "host"}
	}
	h.locked = true
	return func() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		h.locked = false
	}, nil
}

func (h *fakeHost) Recover(_ context.Context, launch runners.Launch) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.recovers = append(h.recovers, launch)
	return nil
}

func (h *fakeHost) Run(ctx context.Context, job runners.Job, observer runners.Observer) runners.Result {
	h.mutex.Lock()
	h.launches = append(h.launches, job)
	number := len(h.launches)
	h.mutex.Unlock()
	started := time.Now()
	launch := runners.Launch{Host: "local", SupervisorPID: number, Marker: fmt.Sprintf("%s-%d", job.TrialID, job.Attempt), Started: started}
	if err := observer.Launched(launch); err != nil {
		return runners.Result{Outcome: runners.Failed, Started: started, Ended: time.Now(),
			Failure: &runners.Failure{Class: runners.ClassEnvironment, Reason: "launch_not_recorded", Message: err.Error()}}
	}
	if h.before != nil {
		h.before(number)
	}
	if ctx.Err() != nil {
		return runners.Result{Outcome: runners.Interrupted, Started: started, Ended: time.Now()}
	}
	observer.Stage(runners.Measuring)
	if h.measure != nil {
		result := h.measure(number, job)
		result.Started, result.Ended = started, time.Now()
		if result.Outcome != "" {
			return result
		}
	}
	random := rand.New(rand.NewPCG(uint64(number), 7))
	value := h.value(job) * (1 + h.noise*random.NormFloat64())
	point := runners.PointResult{Concurrency: 1, Metrics: runners.Metrics{"score": value}}
	outcome := runners.Complete
	for round := 1; round <= max(job.Workload.Rounds.Fixed, 1); round++ {
		metrics := runners.Metrics{"score": value}
		point.Rounds = append(point.Rounds, runners.RoundResult{Metrics: metrics})
		if observer.Round(runners.Round{Number: round, Metrics: metrics}) == runners.Prune {
			outcome = runners.Pruned
			break
		}
	}
	return runners.Result{
		Outcome: outcome, Started: started, Ended: time.Now(), Loading: time.Millisecond, Measuring: time.Millisecond,
		Points: []runners.PointResult{point},
	}
}

func (h *fakeHost) count() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.launches)
}

// flagValue is the value of a flag in a job, or the fallback.
func flagValue(job runners.Job, flag, fallback string) string {
	for i, arg := range job.Args {
		if arg == flag && i+1 < len(job.Args) {
			return job.Args[i+1]
		}
	}
	return fallback
}

// bowl is an objective over the flags of the test campaign with its best at
// a=3, b=fast: 100 there, 60 at the defaults.
func bowl(job runners.Job) float64 {
	value := 60.0
	switch flagValue(job, "--a", "1") {
	case "2":
		value += 12
	case "3":
		value += 25
	case "4":
		value += 8
	}
	if flagValue(job, "--b", "slow") == "fast" {
		value += 15
	}
	return value
}

func hashOf(job runners.Job) uint64 {
	sum := fnv.New64a()
	for _, arg := range job.Args {
		fmt.Fprintln(sum, arg)
	}
	return sum.Sum64()
}
