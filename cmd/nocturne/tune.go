package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/screen"
	"nocturne/tuner/spec"
)

const campaignExits = `
Exit status: 0 improved and confirmed, 3 concluded without a gain, 4 ended without
confirmation, 5 paused, the environment is at fault or the host is in use, 130
interrupted (resumable); 1 failed, 2 bad usage or bad file.`

func (a *app) tune() *cobra.Command {
	var newRun bool
	var host, until string
	command := &cobra.Command{
		Use:   "tune FILE",
		Short: "Run a campaign, or go on with its unfinished run",
		Long: `Runs the campaign of FILE on this machine. When the latest run of the campaign is
unfinished (the tuner was stopped, killed, or lost its host), it goes on where that
one was: no finished trial is repeated.
` + campaignExits,
		Example: "  nocturne tune examples/k25-sim.yaml\n  nocturne tune night.yaml --until 2026-12-02T07:00:00+01:00 --json",
		Args:    exactly(1, "one campaign file"),
		RunE: func(command *cobra.Command, args []string) error {
			options := spec.Options{Host: host}
			if until != "" {
				instant, err := time.Parse(time.RFC3339, until)
				if err != nil {
					return usage(fmt.Errorf("--until %q: want an instant with its zone, such as 2026-12-02T07:00:00+01:00", until))
				}
				options.Until = &instant
			}
			campaign, err := a.campaignFile(args[0], options)
			if err != nil {
				return err
			}
			return a.runCampaign(command.Context(), campaign, tuner.Options{NewRun: newRun})
		},
	}
	command.Flags().BoolVar(&newRun, "new-run", false, "begin a new run although there is one already")
	command.Flags().StringVar(&host, "host", "", "where trials run (local)")
	command.Flags().StringVar(&until, "until", "", "launch nothing after this instant (RFC 3339)")
	return command
}

// runCampaign runs a campaign with its progress on the screen and turns the
// way it ended into the exit status.
func (a *app) runCampaign(ctx context.Context, campaign *spec.Campaign, options tuner.Options) error {
	return a.withTuner(ctx, func(t *tuner.Tuner) error {
		view := a.view()
		t.Emit = view.Event
		outcome, err := t.Run(ctx, campaign, options)
		view.Close()
		if err != nil {
			return startError(err)
		}
		return a.ended(outcome)
	})
}

// ended turns the way in which a campaign ended into the exit status. What went
// wrong goes to stderr too, unless the progress that a person reads just told it.
func (a *app) ended(outcome tuner.Outcome) error {
	if outcome.ExitStatus == 0 {
		return nil
	}
	var cause error
	if outcome.Cause != "" && (a.json || !outcome.Told) {
		cause = fmt.Errorf("campaign %s run %d is %s: %s", outcome.Campaign.Name, outcome.Campaign.Run, outcome.State, outcome.Cause)
	}
	return &statusError{status: outcome.ExitStatus, cause: cause}
}

// startError: what keeps a campaign from starting is mostly the caller's to
// mend; a host or campaign that another tuner has is a matter of time.
func startError(err error) error {
	var finished *tuner.FinishedError
	var changed *tuner.ChangedError
	var elsewhere *tuner.ElsewhereError
	var unfit *tuner.UnfitError
	var locked *runners.LockedError
	var leased *store.LeasedError
	switch {
	case errors.As(err, &finished), errors.As(err, &changed), errors.As(err, &elsewhere), errors.As(err, &unfit):
		return usage(err)
	case errors.As(err, &locked), errors.As(err, &leased):
		return &statusError{status: tuner.ExitPaused, cause: err}
	}
	return err
}

// view is where progress goes: JSON lines, a live terminal, or plain lines.
func (a *app) view() screen.View {
	if a.json {
		return screen.NewLines(a.stdout)
	}
	return screen.NewProgress(a.stdout, isTerminal(a.stdout), !a.noColor)
}

func (a *app) withTuner(ctx context.Context, do func(*tuner.Tuner) error) error {
	log, err := a.log()
	if err != nil {
		return err
	}
	host, err := a.host()
	if err != nil {
		return err
	}
	data, err := dataDirectory()
	if err != nil {
		return err
	}
	opened, status, err := a.store(ctx)
	if err != nil {
		return err
	}
	for _, warning := range status.Warnings {
		fmt.Fprintf(a.stderr, "warning: store %s: %s\n", status.Location, warning)
	}
	t := &tuner.Tuner{Store: opened, Host: host, Log: log, LogDirectory: filepath.Join(data, "logs"), StoreLocation: status.Location}
	return errors.Join(do(t), opened.Close())
}
