package local

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"gonum.org/v1/gonum/stat"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// kindCommand is the kind of a job without a server: each round runs the command
// to its end and reads metrics from what it prints.
const kindCommand = "command"

// The environment of a running command is read back this early, for the first
// time, and this often after that. Most commands of tests end sooner, those that
// measure GPUs never do.
const firstProof, nextProof = 50 * time.Millisecond, 2 * time.Second

// command carries out a job of kind "command".
func (t *trial) command(ctx context.Context) error {
	t.enter(runners.Preparing)
	reader, err := newOutputReader(t.job.Command.Patterns)
	if err != nil {
		return fail(servers.ReasonArgumentRefused, "%v", err)
	}
	if t.kind, err = servers.Get("custom"); err != nil {
		return err
	}
	t.circumstances = t.circumstancesOf()
	if err := t.plan(placeholders{host: loopback}, nil); err != nil {
		return err
	}
	if err := t.lookAtGPUs(ctx); err != nil {
		return err
	}
	t.result.Proof = t.prove(nil)
	t.result.Points = []runners.PointResult{{}}
	point := &t.result.Points[0]
	rounds := newSeries(t.job.Workload.Rounds)
	for number := 1; rounds.wants(); number++ {
		metrics, err := t.commandRound(ctx, reader, number)
		if err != nil {
			return err
		}
		rounds.add(metrics)
		point.Rounds = append(point.Rounds, runners.RoundResult{Metrics: metrics})
		point.Metrics = meanMetrics(point.Rounds)
		if t.observer.round(runners.Round{Number: number, Metrics: metrics}) == runners.Prune {
			return errPruned
		}
	}
	return nil
}

// meanMetrics averages the metrics that every round has.
func meanMetrics(rounds []runners.RoundResult) runners.Metrics {
	mean := runners.Metrics{}
	for name := range rounds[0].Metrics {
		var values []float64
		for _, round := range rounds {
			if value, ok := round.Metrics[name]; ok {
				values = append(values, value)
			}
		}
		if len(values) == len(rounds) {
			mean[name] = stat.Mean(values, nil)
		}
	}
	return mean
}

// commandRound runs the command once.
func (t *trial) commandRound(ctx context.Context, reader *outputReader, number int) (runners.Metrics, error) {
	ctx, cancel := limited(ctx, t.job.Timeouts.Round, symptom(servers.ReasonRoundTimeout,
		"round %d of the command took longer than %s", number, t.job.Timeouts.Round))
	defer cancel()
	if number == 1 {
		t.enter(runners.Launching)
	}
	t.spec.LogPath = filepath.Join(filepath.Dir(t.result.LogPath), fmt.Sprintf("round-%d.log", number))
	t.result.LogPath = t.spec.LogPath
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	if number == 1 {
		t.enter(runners.Measuring)
	}
	if err := t.awaitCommand(ctx); err != nil {
		return nil, err
	}
	// What the command left running in the background must not disturb the next
	// round.
	if err := t.stopProcess(ctx); err != nil {
		return nil, err
	}
	exit, _ := t.process.Exit()
	if exit.Code != 0 || exit.Lost {
		return nil, t.commandFailure(exit)
	}
	metrics, failed := reader.read(t.log.stdout)
	if failed != nil {
		failed.message += t.lastLines()
		return nil, failed
	}
	return metrics, nil
}

// awaitCommand waits for the end of the command, and meanwhile reads the
// environment of its processes back.
func (t *trial) awaitCommand(ctx context.Context) error {
	proof := time.NewTimer(firstProof)
	defer proof.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.process.Done():
			return nil
		case <-proof.C:
			proof.Reset(nextProof)
			members, err := t.process.Processes()
			if err != nil || len(members) == 0 {
				continue // the next look, or none: then the proof stays unknown
			}
			t.result.Proof = t.prove(members)
			if err := mismatchFailure(t.result.Proof); err != nil {
				return err
			}
		}
	}
}

// commandFailure is the failure of a command that ended with another status
// than 0. Its class is that of the file's map; the log may only give the reason
// a better name.
func (t *trial) commandFailure(exit supervise.Exit) error {
	cause := servers.CauseConfiguration
	if class, mapped := t.job.Command.Exit[exit.Code]; mapped {
		cause = causeOf(class)
	} else if exit.Signal != 0 || exit.Lost {
		cause = servers.CauseCrash
	}
	f := fail(servers.ReasonCommandFailed, "the command %s%s", exitText(exit), t.lastLines()).because(cause)
	if explanation, ok := t.log.explain(runners.Measuring, t.circumstances); ok &&
		explanation.Cause.Policy().Class == cause.Policy().Class {
		f.reason = explanation.Reason
		f.message = excerpt(explanation.Line) + "\n(" + f.message + ")"
	}
	return f
}

// causeOf is a cause that has the class.
func causeOf(class runners.Class) servers.Cause {
	switch class {
	case runners.ClassTransient:
		return servers.CauseTransient
	case runners.ClassEnvironment:
		return servers.CauseHost
	default:
		return servers.CauseConfiguration
	}
}
