package tuner

import (
	"fmt"

	"nocturne/store"
)

// limitsApart says where a trial ran under another admission limit than the
// baseline, by what both servers told: speculation takes memory and slots, and some
// servers lower a limit by themselves. The numbers count, because production would
// run under that limit as well; what a comparison then measures is partly the
// limit.
func (r *run) limitsApart(trial *store.Trial) []string {
	kind := r.campaign.ServerKind()
	if kind == nil || len(r.campaign.SpeculationKnobs()) == 0 || trial.State != store.TrialComplete || trial.Role == store.RoleBaseline {
		return nil
	}
	for _, baseline := range r.byRole(store.RoleBaseline) {
		if baseline.State != store.TrialComplete {
			continue
		}
		var found []string
		for _, apart := range kind.LimitsApart(baseline.Effective, trial.Effective) {
			found = append(found, fmt.Sprintf("the baseline (one) and this configuration (the other) are under different limits: %s; give the flag in server.command", apart))
		}
		return found
	}
	return nil
}
