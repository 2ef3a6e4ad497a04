package local

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/runners/servers"
)

// warm sends requests whose numbers are thrown away: kernels are compiled and
// pools grow with the first ones.
func (t *trial) warm(ctx context.Context) error {
	t.enter(runners.Warming)
	if t.job.Workload.Warmup < 1 {
		return nil
	}
	ctx, cancel := limited(ctx, t.job.Timeouts.Warming, symptom(servers.ReasonWarmingTimeout,
		"the warm-up took longer than %s", t.job.Timeouts.Warming))
	defer cancel()
	spec := load.SpecFor(t.job.Workload, widest(t.job.Workload.Points), t.dataset.Prompts(0, load.WarmupRound))
	outcome, err := t.client.Round(ctx, spec)
	if err != nil {
		return orCause(ctx, err)
	}
	for _, failed := range outcome.Verdict.Failures {
		if failed.Reason == load.ReasonRequestsFailed {
			return t.diedOr(ctx, symptom(servers.ReasonWarmingFailed, "%s", failed.Message))
		}
	}
	return nil
}

// widest is the load point with the highest concurrency.
func widest(points []runners.LoadPoint) runners.LoadPoint {
	return slices.MaxFunc(points, func(a, b runners.LoadPoint) int { return a.Concurrency - b.Concurrency })
}

// measure runs the rounds of every load point.
func (t *trial) measure(ctx context.Context) error {
	t.enter(runners.Measuring)
	for i, point := range t.job.Workload.Points {
		t.result.Effective["cache_flush"] = t.pages.flush(ctx, t.kind.Flush)
		if err := t.measurePoint(ctx, i, point); err != nil {
			return err
		}
		t.readInfo(ctx)
		t.fillAcceptance(&t.result.Points[i])
	}
	return nil
}

// measurePoint runs the rounds of one load point. What was measured is kept
// also when it ends early.
func (t *trial) measurePoint(ctx context.Context, index int, point runners.LoadPoint) error {
	t.result.Points = append(t.result.Points, runners.PointResult{Concurrency: point.Concurrency})
	var outcomes []load.RoundOutcome
	defer func() {
		if len(outcomes) > 0 {
			t.pool(&t.result.Points[index], outcomes)
		}
	}()
	series := newSeries(t.job.Workload.Rounds)
	for number := 1; series.wants(); number++ {
		outcome, err := t.round(ctx, index, point, number)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, outcome)
		if failed := t.verdict(outcome.Verdict); failed != nil {
			return t.diedOr(ctx, failed)
		}
		series.add(outcome.Metrics)
		decision := t.observer.round(runners.Round{Point: index, Number: number, Metrics: outcome.Metrics})
		if decision == runners.Prune {
			return errPruned
		}
	}
	return nil
}

func (t *trial) round(ctx context.Context, index int, point runners.LoadPoint, number int) (load.RoundOutcome, error) {
	ctx, cancel := limited(ctx, t.job.Timeouts.Round, symptom(servers.ReasonRoundTimeout,
		"round %d at concurrency %d took longer than %s", number, point.Concurrency, t.job.Timeouts.Round))
	defer cancel()
	spec := load.SpecFor(t.job.Workload, point, t.dataset.Prompts(index, number))
	spec.ServingScale = t.job.ServingScale
	spec.Counters = t.table
	outcome, err := t.client.Round(ctx, spec)
	if err != nil {
		return outcome, orCause(ctx, fail(servers.ReasonTunerError, "%v", err))
	}
	return outcome, nil
}

// verdict turns what the load generator found into a failure of the trial.
func (t *trial) verdict(verdict load.Verdict) error {
	if verdict.Outcome == runners.Complete {
		return nil
	}
	worst := verdict.Failures[0]
	f := fail(worst.Reason, "%s", worst.Message)
	f.log = worst.Reason == load.ReasonRequestsFailed
	return f
}

// pool joins the rounds of a load point.
func (t *trial) pool(point *runners.PointResult, outcomes []load.RoundOutcome) {
	pooled := load.Pool(outcomes...)
	point.Metrics, point.Histograms = pooled.Metrics, pooled.Histograms
	for _, outcome := range outcomes {
		point.Rounds = append(point.Rounds, runners.RoundResult{Metrics: outcome.Metrics})
		for _, note := range outcome.Notes {
			if !slices.Contains(t.result.Warnings, note) {
				t.result.Warnings = append(t.result.Warnings, note)
			}
		}
	}
	if pooled.Counters == nil {
		return
	}
	if rates := pooled.Counters.PositionRates(); len(rates) > 0 {
		words := make([]string, len(rates))
		for i, rate := range rates {
			words[i] = strconv.FormatFloat(rate, 'f', 3, 64)
		}
		t.result.Effective[fmt.Sprintf("acceptance_by_position@%d", point.Concurrency)] = strings.Join(words, " ")
	}
}

// fillAcceptance takes the acceptance length from the server's own page where
// neither counters nor responses told it. The page counts since the last flush,
// so it is that of this load point.
func (t *trial) fillAcceptance(point *runners.PointResult) {
	if _, known := point.Metrics[load.MetricAcceptanceLength]; known || t.result.Effective["cache_flush"] != flushed {
		return
	}
	if length, err := strconv.ParseFloat(t.result.Effective["avg_spec_accept_length"], 64); err == nil && length > 0 {
		point.Metrics[load.MetricAcceptanceLength] = length
	}
}
