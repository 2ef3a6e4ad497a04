package local

import (
	"cmp"
	"context"
	"errors"
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
	spec.Window = 0
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

// widest is the load point with the highest rate, then the highest concurrency.
func widest(points []runners.LoadPoint) runners.LoadPoint {
	return slices.MaxFunc(points, func(a, b runners.LoadPoint) int {
		return cmp.Or(cmp.Compare(a.RequestRate, b.RequestRate), cmp.Compare(a.Concurrency, b.Concurrency))
	})
}

// measure runs the rounds of every load point.
func (t *trial) measure(ctx context.Context) error {
	t.enter(runners.Measuring)
	source := t.newPromptSource()
	for i, point := range t.job.Workload.Points {
		t.result.Effective["cache_flush"] = t.pages.flush(ctx, t.kind.Flush)
		if err := t.measurePoint(ctx, source, i, point); err != nil {
			return err
		}
		t.readInfo(ctx)
		t.fillAcceptance(&t.result.Points[i])
	}
	return nil
}

// measurePoint runs the rounds of one load point. What was measured is kept
// also when it ends early.
func (t *trial) measurePoint(ctx context.Context, source *promptSource, index int, point runners.LoadPoint) error {
	t.result.Points = append(t.result.Points, runners.PointResult{Concurrency: point.Concurrency, RequestRate: point.RequestRate})
	var outcomes []load.RoundOutcome
	defer func() {
		if len(outcomes) > 0 {
			t.pool(&t.result.Points[index], outcomes)
		}
	}()
	series := newSeries(t.job.Workload.Rounds)
	for number := 1; series.wants(); number++ {
		outcome, err := t.round(ctx, source, index, point, number)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, outcome)
		if failed := t.verdict(outcome.Verdict); failed != nil {
			return t.diedOr(ctx, failed)
		}
		if failed := t.heated(outcomes, point); failed != nil {
			return failed
		}
		series.add(outcome.Metrics)
		decision := t.observer.round(runners.Round{Point: index, Number: number, Metrics: outcome.Metrics})
		if decision == runners.Prune {
			return errPruned
		}
	}
	if fall, found := series.trend(); found {
		t.warn(fmt.Sprintf("%s moved by %.1f %% from the first round at concurrency %d to the last: the mean is of a series that was not at rest",
			t.job.Workload.Rounds.Metric, 100*fall, point.Concurrency))
	}
	return nil
}

// warn adds a warning once.
func (t *trial) warn(warning string) {
	if !slices.Contains(t.result.Warnings, warning) {
		t.result.Warnings = append(t.result.Warnings, warning)
	}
}

// heated finds rounds that the clock of a GPU has come down in since the first of
// them: what is measured then is the cooling. A clock that falls under the power
// limit that the host sets is on record, and no fault.
func (t *trial) heated(outcomes []load.RoundOutcome, point runners.LoadPoint) error {
	first, last := outcomes[0].GPUs, outcomes[len(outcomes)-1].GPUs
	for _, now := range last {
		i := slices.IndexFunc(first, func(g load.GPUState) bool { return g.GPU == now.GPU })
		thermal := now.Throttled["sw_thermal_slowdown"] + now.Throttled["hw_thermal_slowdown"]
		if i >= 0 && thermal > 0 && now.MeanSMClock < (1-clockFall)*first[i].MeanSMClock {
			return fail(load.ReasonGPUSlowdown, "heat slowed the GPUs down over %d rounds at concurrency %d, from %.0f MHz in the first: %s",
				len(outcomes), point.Concurrency, first[i].MeanSMClock, now)
		}
	}
	return nil
}

// clockFall is the share by which a clock must fall between rounds for heat to
// count as its cause.
const clockFall = 0.03

// promptSource makes the prompts of rounds, fitted to their length where the
// server has a tokenizer page.
type promptSource struct {
	trial     *trial
	tokenizer load.Tokenizer // nil: lengths are about right
	// least and most tokens of a prompt so far, by the tokenizer.
	least, most int
}

func (t *trial) newPromptSource() *promptSource {
	tokenizer, ok := t.client.Tokenizer(t.kind.Name)
	if !ok {
		tokenizer = nil
	}
	return &promptSource{trial: t, tokenizer: tokenizer}
}

// prompts returns those of a round. A tokenizer that does not answer costs the
// exact lengths and not the trial.
func (s *promptSource) prompts(ctx context.Context, index, number int) ([]load.Prompt, error) {
	dataset := s.trial.dataset
	if s.tokenizer == nil {
		return dataset.Prompts(index, number), nil
	}
	prompts, err := dataset.Fitted(ctx, index, number, s.tokenizer)
	if err == nil {
		s.keepLengths(prompts)
		return prompts, nil
	}
	s.tokenizer = nil
	if !errors.Is(err, load.ErrNoTokenizer) {
		if ended := s.trial.diedOr(ctx, nil); ended != nil {
			return nil, ended
		}
		s.trial.warn(fmt.Sprintf("from round %d on, prompts have about %d tokens and not exactly so: %v", number, dataset.Spec().Length(), err))
	}
	return dataset.Prompts(index, number), nil
}

// keepLengths puts the length asked for and those that the prompts have on record.
func (s *promptSource) keepLengths(prompts []load.Prompt) {
	for _, prompt := range prompts {
		if prompt.Tokens == 0 {
			return // a file's own lengths
		}
		if s.least == 0 || prompt.Tokens < s.least {
			s.least = prompt.Tokens
		}
		s.most = max(s.most, prompt.Tokens)
	}
	sent := strconv.Itoa(s.least)
	if s.most > s.least {
		sent += " to " + strconv.Itoa(s.most)
	}
	s.trial.result.Effective["input_tokens"] = fmt.Sprintf("%s (asked: %d)", sent, s.trial.dataset.Spec().Length())
}

// sampler watches the job's GPUs; nil when the host has none.
func (t *trial) sampler() load.Sampler {
	if len(t.ofJob(t.memoryBefore)) == 0 {
		return nil
	}
	return load.FindSMI(t.job.GPUs.Indices)
}

func (t *trial) round(ctx context.Context, source *promptSource, index int, point runners.LoadPoint, number int) (load.RoundOutcome, error) {
	ctx, cancel := limited(ctx, t.job.Timeouts.Round, symptom(servers.ReasonRoundTimeout,
		"round %d at concurrency %d took longer than %s", number, point.Concurrency, t.job.Timeouts.Round))
	defer cancel()
	prompts, err := source.prompts(ctx, index, number)
	if err != nil {
		return load.RoundOutcome{}, err
	}
	spec := load.SpecFor(t.job.Workload, point, prompts)
	spec.InputTokens = t.dataset.Spec().Length()
	// Each round has arrivals of its own, the same in every trial.
	spec.Arrival.Seed += uint64(index)<<32 + uint64(number)
	spec.ServingScale = t.job.ServingScale
	spec.Counters, spec.Sampler = t.table, t.sampler()
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
	if verdict.Outcome == runners.Invalid && !f.cause.Policy().Invalid {
		f = f.because(servers.CauseMeasurement)
	}
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
			t.warn(note)
		}
	}
	for _, gpu := range pooled.GPUs {
		t.result.Effective[fmt.Sprintf("gpu%d@%d", gpu.GPU, point.Concurrency)] = gpu.String()
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
