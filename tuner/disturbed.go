package tuner

import (
	"context"
	"fmt"
	"slices"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/output"
)

// A host with other work keeps the load generator and the server waiting for a
// processor, and what is measured then is that work. Where it is so all night,
// it is part of the machine, and the noise shows it. Where it is so during a
// single launch of the few that a claim rests on, that launch is void and is
// measured again. Whether it is depends on the generator's punctuality alone,
// never on the value, so that no result is chosen.
const (
	// disturbedShare is the least delay that counts, as a share of the time that a
	// request takes. A real server's requests take seconds, so it is reached in the
	// compressed time of a simulated server sooner than elsewhere.
	disturbedShare = 0.05
	// disturbedTimes is how many times the usual delay of the campaign's launches a
	// disturbed one has at least, leastCompared how many of them tell what is usual.
	disturbedTimes, leastCompared = 2, 3
	// mostMeasuredAgain bounds the launches that a campaign repeats: where more are
	// disturbed, that is how the machine is.
	mostMeasuredAgain = 2
)

// hostDelay is by how much the host kept the load generator from its work: its
// mean lag in waking up, as a share of the mean latency of the requests that it
// sent, at the worst of the load points. The lag is in real time, the latency in
// that of the server, which is scale times as fast. False where no generator was
// at work.
func hostDelay(trial *store.Trial, scale float64) (share float64, known bool) {
	for _, point := range trial.Points {
		lag, told := point.Metrics["mean_client_lag_ms"]
		whole := point.Metrics["mean_e2el_ms"]
		if told && whole > 0 {
			share, known = max(share, lag*scale/whole), true
		}
	}
	return share, known
}

// disturbance says in words what spoilt a fresh launch; empty when nothing did,
// or nothing can be done about it.
func (r *run) disturbance(ctx context.Context, trial *store.Trial) string {
	if trial.Role != store.RoleConfirm || trial.State != store.TrialComplete {
		return ""
	}
	delay, known := hostDelay(trial, r.campaign.ServingScale)
	usual, comparable := r.usualDelay(trial)
	if !known || !comparable || delay < disturbedShare || delay < disturbedTimes*usual || len(r.measuredAgain(ctx)) >= mostMeasuredAgain {
		return ""
	}
	return fmt.Sprintf("the host was busy with other work: it held the load generator up for %.0f %% of the time of a request, where %.1f %% is usual in this campaign; %s was %.4g",
		100*delay, 100*usual, r.campaign.Objective.Metric, *trial.Value)
}

// usualDelay is the median over the campaign's other launches.
func (r *run) usualDelay(except *store.Trial) (share float64, known bool) {
	var found []float64
	for i := range r.trials {
		trial := &r.trials[i]
		if delay, told := hostDelay(trial, r.campaign.ServingScale); told && trial != except && trial.State == store.TrialComplete {
			found = append(found, delay)
		}
	}
	if len(found) < leastCompared {
		return 0, false
	}
	slices.Sort(found)
	return found[len(found)/2], true
}

// measureAgain withdraws a measured launch and queues its trial again. What was
// measured stays on record with the event.
func (r *run) measureAgain(ctx context.Context, trial *store.Trial, attempt int, why string) error {
	trial.State, trial.Value, trial.StandardError = store.TrialVoid, nil, nil
	trial.Failure = &runners.Failure{Class: runners.ClassTransient, Reason: reasonHostDisturbed, Stage: runners.Measuring, Message: why}
	told := output.TrialFinished{Trial: output.TrialOf(*trial), Retried: true}
	if err := r.requeue(ctx, trial, attempt, store.AttemptFailed); err != nil {
		return err
	}
	r.emit(ctx, output.EventTrialFinished, told)
	return nil
}

// measuredAgain lists the numbers of the trials of which an attempt was withdrawn
// because the host was disturbed.
func (r *run) measuredAgain(ctx context.Context) (numbers []int) {
	attempts, err := r.tuner.Store.Attempts(ctx, r.record.ID)
	if err != nil {
		return nil
	}
	for _, attempt := range attempts {
		if trial := r.trialByID(attempt.TrialID); trial != nil && attempt.Failure != nil && attempt.Failure.Reason == reasonHostDisturbed {
			numbers = append(numbers, trial.Number)
		}
	}
	return numbers
}
