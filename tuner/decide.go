package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/plan"
)

// Phases of a campaign.
const (
	phaseWaiting  = "waiting"
	phaseBaseline = "baseline"
	phaseCurrent  = "current"
	phaseSearch   = "search"
	phaseConfirm  = "confirm"
)

// step is what a campaign does next: wait, add a trial, run the next pending
// one (all of them zero), or conclude.
type step struct {
	add      *proposal
	until    *time.Time
	conclude bool

	enter    string // phase, for people
	launches int    // planned in that phase
	why      string
}

// proposal is a trial to be queued.
type proposal struct {
	role     store.Role
	values   search.Values
	reason   string
	expected *store.Expected
	repeatOf int
}

// decide is a function of the stored trials, the clock and the file: after a
// restart it comes to the same step.
func (r *run) decide(ctx context.Context) (step, error) {
	if r.hasPending() {
		return r.whenOpen(ctx, step{}, 1)
	}
	if next, ok, err := r.decideReferences(); err != nil || ok {
		return r.ifOpen(ctx, next, err, 1)
	}
	next, ok, err := r.decideSearch(ctx)
	if err != nil || ok {
		return next, err
	}
	return r.decideConfirm(ctx)
}

func (r *run) hasPending() bool {
	for _, trial := range r.trials {
		if trial.State == store.TrialPending {
			return true
		}
	}
	return false
}

// decideReferences: the baseline is always trial 1, what production runs is
// next. Without a baseline nothing can be claimed.
func (r *run) decideReferences() (step, bool, error) {
	baseline := r.byRole(store.RoleBaseline)
	if len(baseline) == 0 {
		return step{add: &proposal{role: store.RoleBaseline, values: r.campaign.Baseline, reason: "every knob at its default: what all others are compared with"},
			enter: phaseBaseline, launches: 1}, true, nil
	}
	if first := baseline[0]; first.State.Ended() && first.State != store.TrialComplete {
		return step{}, false, failed{cause: "the baseline gave no valid measurement, so nothing can be compared with it: " + failureText(first)}
	}
	if r.hasCurrent() && len(r.byRole(store.RoleCurrent)) == 0 {
		return step{add: &proposal{role: store.RoleCurrent, values: r.campaign.Current, reason: "what production runs today"},
			enter: phaseCurrent, launches: 1}, true, nil
	}
	return step{}, false, nil
}

func failureText(trial *store.Trial) string {
	if trial.Failure == nil {
		return string(trial.State)
	}
	return fmt.Sprintf("%s (%s): %s", trial.Failure.Reason, trial.Failure.Class, trial.Failure.Message)
}

// decideSearch asks the sampler while there are trials and time left. ok is
// false when the search is over.
func (r *run) decideSearch(ctx context.Context) (next step, ok bool, err error) {
	left := r.searchTrials() - r.searched()
	if left <= 0 || len(r.byRole(store.RoleConfirm)) > 0 {
		return step{}, false, nil
	}
	// The confirmation's time is kept free in the last night only.
	needed := 1 + r.confirmLaunches()
	if r.laterNight() {
		needed = 1
	}
	opening, err := r.opening(ctx, needed)
	if err != nil {
		return step{}, false, err
	}
	switch opening.kind {
	case openLater:
		return opening.wait(), true, nil
	case openNever:
		return step{}, false, nil
	}
	proposed, err := r.ask(ctx, left)
	if errors.Is(err, search.ErrExhausted) {
		r.warn(ctx, fmt.Sprintf("search space exhausted after %d configurations; going on to the confirmation", r.searched()))
		return step{}, false, nil
	}
	if err != nil || r.settled(ctx, proposed.Expected) {
		return step{}, false, err
	}
	return step{
		add:   &proposal{role: r.roleOf(proposed.Values), values: proposed.Values, reason: proposed.Reason, expected: expectedOf(proposed.Expected)},
		enter: phaseSearch, launches: left,
	}, true, nil
}

// settled tells once that the search has nothing left to gain, and reports
// whether it ends with that.
func (r *run) settled(ctx context.Context, expected *search.Expected) bool {
	if expected == nil || !expected.Settled {
		return false
	}
	then := "the search uses its trials all the same (search: {stop: settled} would end it here)"
	if r.campaign.StopSettled {
		then = "going on to the confirmation"
	}
	if r.first("settled") {
		r.warn(ctx, "nothing left to gain beyond the noise; "+then)
	}
	return r.campaign.StopSettled
}

// roleOf is the role of a proposed configuration.
func (r *run) roleOf(values search.Values) store.Role {
	key := r.campaign.Space.Key(values)
	for _, hint := range r.campaign.Hints {
		if complete, err := r.campaign.Space.Complete(hint); err == nil && r.campaign.Space.Key(complete) == key {
			return store.RoleHint
		}
	}
	for _, start := range r.elsewhere.starts {
		if r.campaign.Space.Key(start.Values) == key {
			return start.Role
		}
	}
	return store.RoleSearch
}

// has reports whether a trial of the same launch is on record.
func (r *run) has(hash string) bool {
	return slices.ContainsFunc(r.trials, func(trial store.Trial) bool { return trial.Configuration.Hash == hash })
}

// decideConfirm relaunches the finalists and the references in blocks, each
// block in rotated order, and concludes when all blocks are done.
func (r *run) decideConfirm(ctx context.Context) (step, error) {
	arms := r.arms()
	_, relaunches := r.confirmation()
	if len(arms) > len(r.referenceTrials()) {
		for block := range relaunches {
			for position := range arms {
				arm := arms[(position+block)%len(arms)]
				if r.relaunched(arm) > block {
					continue
				}
				next := step{add: &proposal{
					role: store.RoleConfirm, values: arm.Configuration.Values, repeatOf: arm.Number,
					reason: fmt.Sprintf("fresh launch %d of %d of trial %d (%s)", block+1, relaunches, arm.Number, armName(arm)),
				}, enter: phaseConfirm, launches: relaunches * len(arms)}
				opening, err := r.opening(ctx, 1)
				if err != nil || opening.kind == openNever {
					return step{conclude: true}, nil //nolint:nilerr // the time is over: conclude with what there is
				}
				if opening.kind == openLater {
					return opening.wait(), nil
				}
				return next, nil
			}
		}
	}
	return step{conclude: true}, nil
}

// relaunched counts the confirmation launches of an arm, whatever came of them.
func (r *run) relaunched(arm *store.Trial) int {
	count := 0
	for _, trial := range r.byRole(store.RoleConfirm) {
		if trial.RepeatOf == arm.Number {
			count++
		}
	}
	return count
}

// confirmation is the number of finalists and of relaunches. It is chosen for
// the budget, so it does not change while the search goes on.
func (r *run) confirmation() (finalists, relaunches int) {
	references := 1
	if r.hasCurrent() {
		references = 2
	}
	return plan.Confirmation(r.campaign.Confirm, r.campaign.Budget.Trials, references)
}

func (r *run) confirmLaunches() int {
	finalists, relaunches := r.confirmation()
	return (finalists + len(r.referenceTrials())) * relaunches
}

// referenceTrials are the first launches of current (when given and measured)
// and of the baseline.
func (r *run) referenceTrials() []*store.Trial {
	var references []*store.Trial
	for _, role := range []store.Role{store.RoleCurrent, store.RoleBaseline} {
		for _, trial := range r.byRole(role) {
			if trial.State == store.TrialComplete {
				references = append(references, trial)
				break
			}
		}
	}
	return references
}

// arms are the finalists, simplest first, then the references.
func (r *run) arms() []*store.Trial {
	finalists, _ := r.confirmation()
	ranking := r.standing()
	chosen := ranking[:min(finalists, len(ranking))]
	arms := append([]*store.Trial{}, r.simplestFirst(chosen)...)
	return append(arms, r.referenceTrials()...)
}

// standing is the ranking without the finalists that did not hold up: a
// configuration that crashed, gave invalid numbers or broke a limit in a fresh
// launch will do so in production. The next in the ranking takes its place, but
// no more often than there are finalists.
func (r *run) standing() []*store.Trial {
	finalists, _ := r.confirmation()
	var kept []*store.Trial
	fallen := 0
	for _, trial := range r.ranking() {
		if r.fell(trial) == nil {
			kept = append(kept, trial)
		} else {
			fallen++
		}
	}
	if fallen > finalists {
		return nil
	}
	return kept
}

// fell is the fresh launch in which a finalist did not hold up; nil if there is
// none.
func (r *run) fell(finalist *store.Trial) *store.Trial {
	for _, trial := range r.byRole(store.RoleConfirm) {
		if trial.RepeatOf != finalist.Number || !trial.State.Ended() {
			continue
		}
		// A host that was disturbed says nothing against the configuration.
		unfit := trial.Failure != nil && trial.Failure.Class == runners.ClassInfeasible
		if unfit || (trial.State == store.TrialComplete && !r.eligible(trial)) {
			return trial
		}
	}
	return nil
}

// hasCurrent reports whether production runs something else than the baseline.
func (r *run) hasCurrent() bool {
	if r.campaign.Current == nil {
		return false
	}
	current, err := r.campaign.Configuration(r.campaign.Current, r.facts())
	if err != nil {
		return true // its trial tells the error
	}
	baseline, err := r.campaign.Configuration(r.campaign.Baseline, r.facts())
	return err != nil || current.Hash != baseline.Hash
}

func armName(trial *store.Trial) string {
	switch trial.Role {
	case store.RoleBaseline:
		return "baseline"
	case store.RoleCurrent:
		return "current"
	}
	return "finalist"
}
