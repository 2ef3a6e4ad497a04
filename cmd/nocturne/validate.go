package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"nocturne/nccl"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
	"nocturne/tuner/plan"
	"nocturne/tuner/screen"
	"nocturne/tuner/spec"
)

func (a *app) validate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a campaign file; print its knobs, the size of its space and the plan",
		Long:  "Checks a campaign file and starts nothing. All faults are printed at once, as\nfile:line:column. Exit status: 0 good, 2 at fault.",
		Args:  exactly(1, "one campaign file"),
		RunE: func(command *cobra.Command, args []string) error {
			campaign, err := a.campaignFile(args[0], spec.Options{})
			if err != nil {
				return err
			}
			made, err := a.plan(command.Context(), campaign)
			if err != nil {
				return usage(err)
			}
			answer, err := output.ValidateOf(command.Context(), campaign, made)
			if err != nil {
				return err
			}
			if a.json {
				return a.document(answer)
			}
			a.validateText(answer)
			return nil
		},
	}
}

// plan says what fits, with durations of earlier launches when there are any.
func (a *app) plan(ctx context.Context, campaign *spec.Campaign) (plan.Plan, error) {
	host, err := a.host()
	if err != nil {
		return plan.Plan{}, err
	}
	fingerprint, err := host.Fingerprint(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	opened, _, err := a.store(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	now := time.Now()
	made, err := plan.Make(plan.Input{
		Budget: campaign.Budget, Confirm: campaign.Confirm, HasCurrent: campaign.Current != nil,
		Estimate: tuner.EarlierEstimate(ctx, opened, campaign, fingerprint.Hardware), Started: now, Now: now,
	})
	return made, errors.Join(err, opened.Close())
}

func (a *app) validateText(answer output.Validate) {
	about := ""
	if !answer.Exact {
		about = "about "
	}
	a.printf("campaign %s: %s %s\n\n", answer.Campaign, answer.Objective.Direction, answer.Objective.Metric)
	t := a.table("knob", "kind", "baseline", "values", "matters when")
	for _, knob := range answer.Knobs {
		levels := make([]string, len(knob.Values))
		for i, value := range knob.Values {
			levels[i] = value.String()
		}
		t.AppendRow(table.Row{knob.Knob, knob.Kind, knob.Default.String(), screen.Clip(strings.Join(levels, " "), 60), knob.When})
	}
	t.Render()
	a.printf("\n%s%s distinct configurations; sampler %s\n", about, fmt.Sprintf("%.0f", answer.Configurations), answer.Sampler)
	a.printf("baseline %s\n", answer.Baseline.Hash)
	for _, line := range screen.ConfigurationLines("  ", answer.Baseline) {
		a.printf("%s\n", line)
	}
	limits := make([]string, 0, len(answer.TimeoutsS))
	for _, name := range slices.Sorted(maps.Keys(answer.TimeoutsS)) {
		limits = append(limits, name+" "+screen.Seconds(answer.TimeoutsS[name]))
	}
	a.printf("timeouts %s\n\n", strings.Join(limits, ", "))
	for _, line := range screen.PlanLines(answer.Plan) {
		a.printf("%s\n", line)
	}
}

// settings reads --set K=V pairs as a configuration of the campaign.
func settings(campaign *spec.Campaign, pairs []string) (search.Values, error) {
	values, err := campaign.ParseSettings(pairs)
	if err != nil {
		return nil, usage(err)
	}
	return values, nil
}

func (a *app) render() *cobra.Command {
	var pairs []string
	command := &cobra.Command{
		Use:     "render FILE",
		Short:   "The exact arguments, variables and removed variables of a configuration",
		Long:    "Prints what a configuration launches, one argument a line, and launches nothing.\nWithout --set it is the baseline.",
		Example: "  nocturne render night.yaml --set NCCL_PROTO=LL --set speculative.steps=2",
		Args:    exactly(1, "one campaign file"),
		RunE: func(command *cobra.Command, args []string) error {
			campaign, err := a.campaignFile(args[0], spec.Options{})
			if err != nil {
				return err
			}
			values, err := settings(campaign, pairs)
			if err != nil {
				return err
			}
			answer, err := output.RenderOf(campaign, values, nccl.Context{})
			if err != nil {
				return err
			}
			if a.json {
				return a.document(answer)
			}
			a.renderText(answer)
			return nil
		},
	}
	command.Flags().StringArrayVar(&pairs, "set", nil, "value of a knob, K=V; repeatable")
	return command
}

func (a *app) renderText(answer output.Render) {
	a.printf("# configuration %s\n", answer.Configuration.Hash)
	if answer.Configuration.EquivalentTo != nil {
		a.printf("# NCCL makes it the same as %s\n", *answer.Configuration.EquivalentTo)
	}
	a.printf("# arguments, one a line\n")
	for _, argument := range answer.Args {
		a.printf("%s\n", argument)
	}
	a.printf("# environment, beside a short allowlist of inherited variables\n")
	for _, name := range slices.Sorted(maps.Keys(answer.Env)) {
		a.printf("%s=%s\n", name, answer.Env[name])
	}
	for _, name := range answer.Secrets {
		a.printf("%s=(secret, read at launch)\n", name)
	}
	a.printf("# removed\n")
	for _, name := range answer.Removed {
		a.printf("%s\n", name)
	}
}

func (a *app) try() *cobra.Command {
	var pairs []string
	command := &cobra.Command{
		Use:   "try FILE",
		Short: "Launch, verify and measure one configuration",
		Long:  "Launches one configuration (the baseline without --set), verifies and measures it.\nNothing is claimed from a single launch. Exit status: 0 measured, 1 not.",
		Args:  exactly(1, "one campaign file"),
		RunE: func(command *cobra.Command, args []string) error {
			campaign, err := a.campaignFile(args[0], spec.Options{})
			if err != nil {
				return err
			}
			values, err := settings(campaign, pairs)
			if err != nil {
				return err
			}
			return a.withTuner(command.Context(), func(t *tuner.Tuner) error {
				trial, record, err := t.Try(command.Context(), campaign, values)
				if err != nil {
					return startError(err)
				}
				return a.tried(trial, record)
			})
		},
	}
	command.Flags().StringArrayVar(&pairs, "set", nil, "value of a knob, K=V; repeatable")
	return command
}

func (a *app) tried(trial store.Trial, record store.Campaign) error {
	object := output.TrialOf(trial)
	if a.json {
		if err := a.document(output.Trials{Schema: output.Schema, CampaignID: record.ID, Campaign: record.Name, Run: record.Run, Trials: []output.Trial{object}}); err != nil {
			return err
		}
	} else {
		a.triedText(object, record)
	}
	switch {
	case trial.State == store.TrialComplete:
		return nil
	case !trial.State.Ended():
		return &statusError{status: exitInterrupted}
	}
	return &statusError{status: exitFailed}
}

func (a *app) triedText(trial output.Trial, record store.Campaign) {
	for _, line := range screen.ConfigurationLines("", trial.Configuration) {
		a.printf("%s\n", line)
	}
	if trial.Failure != nil {
		a.printf("\n%s: %s (%s)\n%s\n", trial.State, trial.Failure.Reason, trial.Failure.Class, trial.Failure.Message)
	}
	for _, point := range trial.Points {
		a.printf("\nconcurrency %d, %d rounds\n", point.Concurrency, len(point.Rounds))
		for _, name := range slices.Sorted(maps.Keys(point.Metrics)) {
			a.printf("  %-34s %s\n", name, screen.Measure(point.Metrics[name], name))
		}
	}
	for _, proof := range trial.Proof {
		a.printf("proof %-28s %s %s\n", proof.Knob, proof.Status, proof.Detail)
	}
	a.printf("\nloading %s, measuring %s; log %s; kept as %s@%d\n", secondsText(trial.LoadingS), secondsText(trial.MeasuringS), orDash(trial.LogPath), record.Name, record.Run)
}
