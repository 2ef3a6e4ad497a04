package tuner

import (
	"context"
	"encoding/json"
	"strings"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/spec"
)

// baselineStack is the stack that the baseline was measured on.
func (r *run) baselineStack() (runners.Stack, bool) {
	for _, trial := range r.byRole(store.RoleBaseline) {
		var stack runners.Stack
		if trial.State == store.TrialComplete && len(trial.Stack) > 0 && json.Unmarshal(trial.Stack, &stack) == nil {
			return stack, true
		}
	}
	return runners.Stack{}, false
}

// changedStack compares the stack of a measured trial with the baseline's: a
// server that was upgraded between two launches cannot be compared with itself.
// What one of them did not tell is no difference.
func (r *run) changedStack(trial *store.Trial) []spec.Change {
	baseline, known := r.baselineStack()
	var stack runners.Stack
	if !known || trial.State != store.TrialComplete || len(trial.Stack) == 0 || json.Unmarshal(trial.Stack, &stack) != nil {
		return nil
	}
	return stackDifferences(baseline, stack)
}

func stackDifferences(before, after runners.Stack) []spec.Change {
	var changes []spec.Change
	for _, field := range []struct{ path, old, new string }{
		{"stack.driver", before.Driver, after.Driver},
		{"stack.cuda", before.CUDA, after.CUDA},
		{"stack.nccl", before.NCCL, after.NCCL},
		{"stack.server", before.Server, after.Server},
		{"stack.server_version", before.ServerVersion, after.ServerVersion},
		{"stack.kernel", before.Kernel, after.Kernel},
	} {
		if field.old != "" && field.new != "" && field.old != field.new {
			changes = append(changes, spec.Change{Path: field.path, Old: field.old, New: field.new})
		}
	}
	return changes
}

// withdraw keeps a measured trial as void, since it was measured on another
// stack than the baseline, and pauses the campaign.
func (r *run) withdraw(ctx context.Context, trial *store.Trial, attempt int, changes []spec.Change) error {
	message := (&ChangedError{Campaign: r.record, Changes: changes}).Error()
	trial.State, trial.Value, trial.StandardError = store.TrialVoid, nil, nil
	trial.Failure = &runners.Failure{Class: runners.ClassEnvironment, Reason: reasonStackChanged, Message: strings.ReplaceAll(message, "\n", " ")}
	if err := r.finish(ctx, trial, attempt); err != nil {
		return err
	}
	return paused{cause: message}
}
