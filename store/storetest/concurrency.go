package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"nocturne/store"
	"nocturne/store/open"
)

const (
	workers            = 8
	asksByGoroutine    = 200
	asksByProcess      = 25
	workerInstructions = "NOCTURNE_STORETEST_WORKER"
)

// instructions are what a worker does: it adds trials and appends as many
// events, and then claims trials until none is pending. With Endless it adds for
// ever, and writes the number of each trial once its calls have returned.
type instructions struct {
	URL     string
	Lease   store.Lease
	Worker  int
	Adds    int
	Endless bool
}

// outcome is what a worker got.
type outcome struct {
	Added, Claimed []int
	Events         []int64
}

func work(ctx context.Context, s store.Store, task instructions) (outcome, error) {
	var got outcome
	for i := 0; i < task.Adds || task.Endless; i++ {
		configuration := configurationOf(fmt.Sprintf("%d-%d", task.Worker, i))
		trial, err := s.AddTrial(ctx, task.Lease, store.Trial{Role: store.RoleSearch, Configuration: configuration})
		if err != nil {
			return got, err
		}
		got.Added = append(got.Added, trial.Number)
		event, err := s.AppendEvent(ctx, task.Lease.CampaignID, "added", time.Time{}, nil)
		if err != nil {
			return got, err
		}
		got.Events = append(got.Events, event.Seq)
		if task.Endless {
			fmt.Println(trial.Number)
		}
	}
	for {
		trial, _, err := s.ClaimTrial(ctx, task.Lease, "local")
		if errors.Is(err, store.ErrNotFound) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got.Claimed = append(got.Claimed, trial.Number)
	}
}

// Worker does what testConcurrentProcesses starts a process for, and ends the
// process; it returns in every other one. TestMain calls it first.
func Worker() {
	text := os.Getenv(workerInstructions)
	if text == "" {
		return
	}
	got, err := workInProcess(text)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(got)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func workInProcess(text string) (got outcome, err error) {
	var task instructions
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return got, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s, err := open.Store(ctx, task.URL)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Migrate(ctx); err != nil {
		return got, err
	}
	return work(ctx, s, task)
}

func testConcurrentGoroutines(t *testing.T, place Place) {
	s := New(t, place)
	_, lease := create(t, s, campaignOf("night"))
	outcomes := make([]outcome, workers)
	var group errgroup.Group
	for i := range workers {
		group.Go(func() (err error) {
			outcomes[i], err = work(limit(t), s, instructions{Lease: lease, Worker: i, Adds: asksByGoroutine})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	checkOutcomes(t, outcomes, workers*asksByGoroutine)
}

// workerProcess is this test binary, which TestMain makes a worker.
func workerProcess(ctx context.Context, text []byte) *exec.Cmd {
	process := exec.CommandContext(ctx, os.Args[0])
	process.Env = append(os.Environ(), workerInstructions+"="+string(text))
	return process
}

// runWorkers has each of several processes do a task.
func runWorkers(t *testing.T, tasks []instructions) []outcome {
	t.Helper()
	outcomes := make([]outcome, len(tasks))
	group, ctx := errgroup.WithContext(limit(t))
	for i, task := range tasks {
		text, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() error {
			output, err := workerProcess(ctx, text).Output()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				return fmt.Errorf("worker %d: %w: %s", i, err, exit.Stderr)
			}
			return errors.Join(err, json.Unmarshal(output, &outcomes[i]))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

func testConcurrentProcesses(t *testing.T, place Place) {
	url := place(t)
	s := openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, lease := create(t, s, campaignOf("night"))
	tasks := make([]instructions, workers)
	for i := range tasks {
		tasks[i] = instructions{URL: url, Lease: lease, Worker: i, Adds: asksByProcess}
	}
	checkOutcomes(t, runWorkers(t, tasks), workers*asksByProcess)

	add(t, s, lease, "the only queued point", store.RoleSearch)
	for i := range tasks {
		tasks[i].Adds = 0
	}
	var claimed []int
	for _, got := range runWorkers(t, tasks) {
		claimed = append(claimed, got.Claimed...)
	}
	if want := []int{workers*asksByProcess + 1}; !slices.Equal(claimed, want) {
		t.Errorf("the only queued trial was handed out as %v, want %v", claimed, want)
	}
}

// checkOutcomes makes sure that the workers together got 1 to total once each.
func checkOutcomes(t *testing.T, outcomes []outcome, total int) {
	t.Helper()
	var added, claimed, events []int
	for _, got := range outcomes {
		added, claimed = append(added, got.Added...), append(claimed, got.Claimed...)
		for _, seq := range got.Events {
			events = append(events, int(seq))
		}
	}
	for name, numbers := range map[string][]int{"added": added, "claimed": claimed, "events": events} {
		slices.Sort(numbers)
		if len(numbers) != total || numbers[0] != 1 || numbers[total-1] != total || len(slices.Compact(numbers)) != total {
			t.Errorf("%s: %d numbers from %v to %v, want 1 to %d once each", name, len(numbers), numbers[:1], numbers[len(numbers)-1:], total)
		}
	}
}

// testConcurrentRuns creates campaigns of one name at the same time.
func testConcurrentRuns(t *testing.T, place Place) {
	url := place(t)
	if err := openAt(t, url).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := make([]int, workers)
	var group errgroup.Group
	for i := range workers {
		s := openAt(t, url)
		group.Go(func() error {
			campaign, err := s.CreateCampaign(limit(t), campaignOf("night"))
			runs[i] = campaign.Run
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(runs)
	for i, run := range runs {
		if run != i+1 {
			t.Fatalf("runs %v, want 1 to %d", runs, workers)
		}
	}
}

// testKill kills a process in the middle of its changes: what it was told is
// done is there, and the database is sound.
func testKill(t *testing.T, place Place) {
	url := place(t)
	s := openAt(t, url)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	campaign, lease := create(t, s, campaignOf("night"))
	text, err := json.Marshal(instructions{URL: url, Lease: lease, Endless: true})
	if err != nil {
		t.Fatal(err)
	}
	process := workerProcess(limit(t), text)
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if told++; told == 20 {
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := process.Wait(); err == nil || told < 20 {
		t.Fatalf("the worker ended after %d trials: %v", told, err)
	}
	trials, err := s.Trials(t.Context(), campaign.ID, store.TrialFilter{})
	if err != nil || len(trials) < told || trials[len(trials)-1].Number != len(trials) {
		t.Errorf("%d trials are stored, %v; the worker was told of %d", len(trials), err, told)
	}
	events, err := s.Events(t.Context(), campaign.ID, 0, 0)
	if err != nil || len(events) < told || events[len(events)-1].Seq != int64(len(events)) {
		t.Errorf("%d events are stored, %v; the worker was told of %d", len(events), err, told)
	}
	add(t, s, lease, "after", store.RoleSearch)
}
