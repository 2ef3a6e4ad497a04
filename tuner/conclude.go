package tuner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/verdict"
)

// conclude draws the verdict from the fresh launches, stores it with the
// best-known configuration, and ends the campaign.
func (r *run) conclude(ctx context.Context) error {
	decided := r.decideClaim()
	if again := r.measuredAgain(ctx); len(again) > 0 {
		decided.Reason += fmt.Sprintf("; measured a second time, because the host was disturbed the first time: %s", numbered(again))
	}
	best, conclusion := r.best(decided)
	object := r.verdictObject(decided)
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if conclusion != nil {
		if _, err := patiently(ctx, func() error { return r.tuner.Store.Conclude(ctx, r.lease.current(), *conclusion) }); err != nil {
			return err
		}
	}
	verdictOnly := store.CampaignChange{Verdict: text}
	if _, err := patiently(ctx, func() error { return r.tuner.Store.UpdateCampaign(ctx, r.lease.current(), verdictOnly) }); err != nil {
		return err
	}
	r.record.Verdict = text
	r.emit(ctx, output.EventVerdict, output.VerdictReached{Verdict: object, Best: best})
	return concluded{exit: exitOf(decided.Claim)}
}

// numbered names trials.
func numbered(trials []int) string {
	words := make([]string, len(trials))
	for i, number := range trials {
		words[i] = strconv.Itoa(number)
	}
	if len(words) == 1 {
		return "trial " + words[0]
	}
	return "trials " + strings.Join(words, ", ")
}

// decideClaim draws the conclusion, and says why where there is nothing to draw
// it from.
func (r *run) decideClaim() verdict.Conclusion {
	decided := verdict.Decide(r.evidence())
	switch {
	case len(r.referenceTrials()) == 0:
		decided.Claim, decided.Reason = verdict.None, "no reference gave a valid measurement"
	case r.searched() == 0:
		decided.Claim, decided.Reason = verdict.Unconfirmed, "the time ended before anything but the references was measured"
	case len(r.ranking()) == 0:
		decided.Claim, decided.Reason = verdict.None, "no candidate gave a valid measurement"
	case len(r.standing()) == 0:
		decided.Claim, decided.Reason = verdict.None, "no finalist held up in fresh launches"
	}
	for _, finalist := range r.ranking() {
		if launch := r.fell(finalist); launch != nil {
			decided.Reason += fmt.Sprintf("; trial %d did not hold up: its fresh launch %d %s", finalist.Number, launch.Number, r.fallText(launch))
		}
	}
	return decided
}

func (r *run) fallText(launch *store.Trial) string {
	if launch.Failure != nil {
		return "ended with " + launch.Failure.Reason
	}
	return "broke a limit"
}

func exitOf(claim verdict.Claim) int {
	switch claim {
	case verdict.Improved:
		return ExitImproved
	case verdict.Unconfirmed:
		return ExitUnconfirmed
	}
	return ExitNoGain
}

// evidence is every fresh launch of the confirmation. Only these are in it:
// the launches that chose a finalist overstate it.
func (r *run) evidence() verdict.Evidence {
	evidence := verdict.Evidence{Minimize: r.campaign.Objective.Minimize(), MinimalEffect: r.campaign.MinimalEffect}
	// Both references are asked for, also when one could not be measured: a gain
	// over the baseline is no answer to the question after the gain over current.
	if r.hasCurrent() {
		evidence.References = append(evidence.References, string(store.RoleCurrent))
	}
	evidence.References = append(evidence.References, string(store.RoleBaseline))
	for _, arm := range r.arms() {
		name := armKey(arm)
		if arm.Role != store.RoleBaseline && arm.Role != store.RoleCurrent {
			evidence.Candidates = append(evidence.Candidates, name)
		}
		block := 0
		for _, trial := range r.byRole(store.RoleConfirm) {
			if trial.RepeatOf != arm.Number {
				continue
			}
			if r.eligible(trial) || (trial.Value != nil && trial.State == store.TrialComplete && !isCandidate(arm.Role)) {
				evidence.Launches = append(evidence.Launches, verdict.Launch{Arm: name, Block: block, Value: *trial.Value})
			}
			block++
		}
	}
	return evidence
}

// armKey names an arm: the role of a reference, the number of a finalist.
func armKey(trial *store.Trial) string {
	if trial.Role == store.RoleBaseline || trial.Role == store.RoleCurrent {
		return string(trial.Role)
	}
	return strconv.Itoa(trial.Number)
}

// simplestFirst orders trials by how many knobs leave their default, then by
// their place in the ranking.
func (r *run) simplestFirst(trials []*store.Trial) []*store.Trial {
	ordered := slices.Clone(trials)
	slices.SortStableFunc(ordered, func(a, b *store.Trial) int {
		return cmp.Compare(r.departures(a), r.departures(b))
	})
	return ordered
}

// compare orders measured trials, better ones first. Of exactly equal ones that
// nearest the default comes first, since a setting that changes nothing is none
// to recommend; then the earlier one.
func (r *run) compare(a, b *store.Trial) int {
	switch {
	case *a.Value == *b.Value:
		return cmp.Or(cmp.Compare(r.departures(a), r.departures(b)), cmp.Compare(a.Number, b.Number))
	case r.better(*a.Value, *b.Value):
		return -1
	}
	return 1
}

// departures counts the knobs that are not at the baseline's value.
func (r *run) departures(trial *store.Trial) int {
	count := 0
	for id, value := range trial.Configuration.Values {
		if base, ok := r.campaign.Baseline[id]; !ok || base != value {
			count++
		}
	}
	return count
}

// best is the configuration that the campaign recommends: the winner when it
// improved, the best observed one when nothing could be confirmed, else the
// reference, which nothing was shown to beat.
func (r *run) best(decided verdict.Conclusion) (*output.Measured, *store.Conclusion) {
	arm, confirmed := decided.Winner, true
	switch {
	case decided.Claim == verdict.Unconfirmed || len(decided.Arms) == 0:
		return r.bestUnconfirmed(decided)
	case decided.Claim != verdict.Improved:
		arm = decided.Against
	}
	trial := r.armTrial(arm)
	if trial == nil {
		return r.bestUnconfirmed(decided)
	}
	summary := decided.Arms[arm]
	speedup := 1.0
	if decided.Claim == verdict.Improved {
		speedup = decided.Comparisons[0].Speedup
	}
	conclusion := r.conclusion(trial, decided.Claim)
	conclusion.Value, conclusion.Interval, conclusion.Speedup = summary.Value, summary.Interval, &speedup
	conclusion.Launches, conclusion.Confirmed = summary.Launches, confirmed
	return &output.Measured{Configuration: trial.Configuration, Value: &summary.Value, Interval: summary.Interval, Launches: summary.Launches}, &conclusion
}

// bestUnconfirmed answers from single launches, and says so.
func (r *run) bestUnconfirmed(decided verdict.Conclusion) (*output.Measured, *store.Conclusion) {
	candidates := append(r.standing(), r.referenceTrials()...)
	if len(candidates) == 0 {
		return nil, nil
	}
	trial := slices.MinFunc(candidates, r.compare)
	conclusion := r.conclusion(trial, verdict.Unconfirmed)
	conclusion.Claim = string(decided.Claim)
	conclusion.Value, conclusion.Launches = *trial.Value, 1
	if baseline := r.baselineValue(); baseline != nil {
		conclusion.Speedup = r.ratio(*trial.Value, *baseline)
	}
	return &output.Measured{Configuration: trial.Configuration, Value: trial.Value, Launches: 1}, &conclusion
}

func (r *run) armTrial(name string) *store.Trial {
	for _, arm := range r.arms() {
		if armKey(arm) == name {
			return arm
		}
	}
	return nil
}

func (r *run) conclusion(trial *store.Trial, claim verdict.Claim) store.Conclusion {
	var stack runners.Stack
	if len(trial.Stack) > 0 {
		// A stack that cannot be read leaves its fields empty; the text is kept.
		_ = json.Unmarshal(trial.Stack, &stack)
	}
	return store.Conclusion{
		CampaignID: r.record.ID, Campaign: r.record.Name, Run: r.record.Run,
		HardwareKey: r.record.HardwareKey, Instance: r.record.Instance, Hardware: r.record.Hardware,
		StackKey: trial.StackKey, Stack: trial.Stack, Driver: stack.Driver,
		Model: r.record.Model, ModelKey: r.record.ModelKey, Workload: r.record.Workload, WorkloadKey: r.record.WorkloadKey,
		Objective: r.record.Objective, Configuration: trial.Configuration, Claim: string(claim), Time: time.Now().UTC(),
	}
}

func (r *run) verdictObject(decided verdict.Conclusion) output.Verdict {
	object := output.Verdict{
		Claim: string(decided.Claim), Reason: decided.Reason, Confidence: verdict.Confidence,
		Comparisons: []output.Comparison{}, MinimalDetectable: decided.MinimalDetectable, LaunchNoise: decided.LaunchNoise,
		TiedWith: []string{},
	}
	if decided.Against != "" {
		object.Against = &decided.Against
	}
	for _, comparison := range decided.Comparisons {
		object.Comparisons = append(object.Comparisons, output.Comparison(comparison))
	}
	if len(decided.Comparisons) > 0 {
		object.Speedup, object.Interval = &decided.Comparisons[0].Speedup, decided.Comparisons[0].Interval
	}
	if winner := r.armTrial(decided.Winner); decided.Winner != "" && winner != nil {
		object.Candidate = &winner.Configuration
	}
	for _, name := range decided.TiedWith {
		if trial := r.armTrial(name); trial != nil {
			object.TiedWith = append(object.TiedWith, trial.Configuration.Hash)
		}
	}
	return object
}
