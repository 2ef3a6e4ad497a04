package tuner

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/knowledge"
	"nocturne/tuner/plan"
)

func (r *run) trialByID(id string) *store.Trial {
	for i := range r.trials {
		if r.trials[i].ID == id {
			return &r.trials[i]
		}
	}
	return nil
}

func (r *run) byRole(role store.Role) []*store.Trial {
	var found []*store.Trial
	for i := range r.trials {
		if r.trials[i].Role == role {
			found = append(found, &r.trials[i])
		}
	}
	return found
}

func (r *run) countEnded() int {
	count := 0
	for _, trial := range r.trials {
		if trial.State.Ended() {
			count++
		}
	}
	return count
}

// isCandidate reports whether trials of the role are part of the search: they use
// up its budget, and may win.
func isCandidate(role store.Role) bool {
	return role == store.RoleSearch || role == store.RoleHint || role == store.RoleIncumbent
}

// searched counts the search trials that used up budget: a trial that was lost
// or withdrawn did not.
func (r *run) searched() int {
	count := 0
	for _, trial := range r.trials {
		if isCandidate(trial.Role) && trial.State != store.TrialLost && trial.State != store.TrialVoid {
			count++
		}
	}
	return count
}

// eligible reports whether a trial may win: measured, and within the limits.
func (r *run) eligible(trial *store.Trial) bool {
	return trial.State == store.TrialComplete && trial.Value != nil && limitsMet(r.campaign.Objective, trial.Points)
}

// better compares two objective values.
func (r *run) better(a, b float64) bool {
	if r.campaign.Objective.Minimize() {
		return a < b
	}
	return a > b
}

// ratio of a to b, above 1 when a is better.
func (r *run) ratio(a, b float64) *float64 {
	if r.campaign.Objective.Minimize() {
		a, b = b, a
	}
	if b == 0 {
		return nil
	}
	value := a / b
	return &value
}

// ranking lists the trials that may win, best first: one for each
// configuration, references left out.
func (r *run) ranking() []*store.Trial {
	var found []*store.Trial
	for i := range r.trials {
		trial := &r.trials[i]
		if isCandidate(trial.Role) && r.eligible(trial) {
			found = append(found, trial)
		}
	}
	slices.SortFunc(found, r.compare)
	return found
}

// estimate is how long a launch takes: by this campaign's launches, else by
// the latest campaign of the same model on the same hardware, else by what is
// usual for a model server.
func (r *run) estimate(ctx context.Context) plan.Estimate {
	if median, count := medianLaunch(r.trials); count > 0 {
		return plan.Estimate{Launch: median, Source: "median of this campaign's launches"}
	}
	return EarlierEstimate(ctx, r.tuner.Store, r.campaign, r.hardware)
}

// medianLaunch is the median duration of the launches that were measured.
func medianLaunch(trials []store.Trial) (time.Duration, int) {
	var seconds []float64
	for _, trial := range trials {
		if trial.State == store.TrialComplete && trial.LoadingS != nil && trial.MeasuringS != nil && trial.OverheadS != nil {
			seconds = append(seconds, *trial.LoadingS+*trial.MeasuringS+*trial.OverheadS)
		}
	}
	if len(seconds) == 0 {
		return 0, 0
	}
	slices.Sort(seconds)
	return time.Duration(seconds[len(seconds)/2] * float64(time.Second)), len(seconds)
}

// learnFacts rebuilds the campaign's space with the NCCL version and the links
// that the first measured launch told: configurations that this NCCL makes
// equal are then one.
func (r *run) learnFacts(_ context.Context) error {
	facts, told := knowledge.Facts(r.hardwareOnRecord(), r.trials)
	if !told {
		return nil
	}
	campaign, err := r.campaign.WithFacts(facts)
	if err != nil {
		return err
	}
	r.campaign = campaign
	return nil
}

// hardwareOnRecord is the machine as the latest launch told it.
func (r *run) hardwareOnRecord() runners.Hardware {
	var hardware runners.Hardware
	if json.Unmarshal(r.record.Hardware, &hardware) != nil {
		return r.hardware
	}
	return hardware
}
