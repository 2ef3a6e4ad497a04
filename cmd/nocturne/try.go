package main

import (
	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) try() *cobra.Command {
	var pairs []string
	command := &cobra.Command{
		Use:   "try FILE",
		Short: "Launch, verify and measure one configuration",
		Long: `Launches one configuration (the baseline without --set), verifies and measures it.
Nothing is claimed from a single launch. Exit status: 0 measured, 1 not, 5 the host is in
use, 130 interrupted.`,
		Example: "  nocturne try night.yaml --set NCCL_PROTO=LL",
		Args:    exactly(1, "one campaign file"),
		RunE: func(command *cobra.Command, args []string) error {
			campaign, values, err := a.configuration(args[0], pairs)
			if err != nil {
				return err
			}
			return a.withTuner(command.Context(), func(t *tuner.Tuner) error {
				stop := a.watch(t)
				trial, record, err := t.Try(command.Context(), campaign, values)
				stop()
				if err != nil {
					return startError(err)
				}
				return a.tried(trial, record, t.StoreLocation)
			})
		},
	}
	setFlag(command, &pairs)
	return command
}

// watch shows on stderr what the trial is doing, until stop is called: a load
// takes a quarter of an hour. The answer on stdout stays alone.
func (a *app) watch(t *tuner.Tuner) (stop func()) {
	view := screen.NewProgress(a.stderr, isTerminal(a.stderr), !a.noColor)
	t.Emit = func(campaign store.Campaign, event store.Event) {
		switch event.Name {
		case output.EventTrialStarted, output.EventStage, output.EventWarning:
			view.Event(campaign, event)
		}
	}
	return view.Close
}

func (a *app) tried(trial store.Trial, record store.Campaign, location string) error {
	object := output.TrialOf(trial)
	document := output.Trials{Schema: output.Schema, CampaignID: record.ID, Campaign: record.Name, Run: record.Run, Trials: []output.Trial{object}}
	if err := a.answer(document, func(p *screen.Page) { p.Tried(object, record.Name, record.Run, location) }); err != nil {
		return err
	}
	switch {
	case trial.State == store.TrialComplete:
		return nil
	case !trial.State.Ended():
		return &statusError{status: exitInterrupted}
	}
	return &statusError{status: exitFailed}
}
