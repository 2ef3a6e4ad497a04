package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/paste"
)

// exitNothingKnown is the exit status of `best` without an answer.
const exitNothingKnown = 4

type bestFlags struct {
	format                                      string
	hardware, model, workload, driver, campaign string
	any, unconfirmed                            bool
}

func (a *app) best() *cobra.Command {
	var flags bestFlags
	command := &cobra.Command{
		Use:   "best",
		Short: "The best-known configuration of this machine, or of another one",
		Long: `Answers from concluded campaigns of this machine; --any asks all of them. With
--format the one answer is printed ready to paste.

Exit status: 0 an answer, 4 nothing is known, 2 several answers where one was needed.`,
		Example: "  nocturne best\n  nocturne best --campaign k25-sim --format env\n  nocturne best --any --model Kimi --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			if flags.format != "" && !paste.Known(flags.format) {
				return usage(fmt.Errorf("--format %q: want one of %s", flags.format, strings.Join(paste.Formats(), ", ")))
			}
			err := a.reading(command.Context(), func(s store.Store) error { return a.answerBest(command.Context(), s, flags) })
			var missing *missingStoreError
			if errors.As(err, &missing) && missing.standard && flags.campaign == "" {
				return a.printBest(output.BestOf(nil), flags)
			}
			return err
		},
	}
	f := command.Flags()
	f.StringVar(&flags.format, "format", "", "print one answer as "+strings.Join(paste.Formats(), "|"))
	f.StringVar(&flags.hardware, "hardware", "", "hardware key, or part of its name")
	f.StringVar(&flags.model, "model", "", "model label, or part of it")
	f.StringVar(&flags.workload, "workload", "", "workload name or key")
	f.StringVar(&flags.driver, "driver", "", "driver version")
	f.StringVar(&flags.campaign, "campaign", "", "one campaign")
	f.BoolVar(&flags.any, "any", false, "all machines, not only this one")
	f.BoolVar(&flags.unconfirmed, "unconfirmed", false, "also what no fresh launches confirmed")
	return command
}

func (a *app) answerBest(ctx context.Context, s store.Store, flags bestFlags) error {
	filter := store.BestFilter{Model: flags.model, Workload: flags.workload, Driver: flags.driver, Unconfirmed: flags.unconfirmed}
	switch {
	case flags.campaign != "":
		campaign, err := find(ctx, s, flags.campaign)
		if err != nil {
			return err
		}
		filter.CampaignID = campaign.ID
	case !flags.any && flags.hardware == "":
		machine, err := a.thisMachine(ctx)
		if err != nil {
			return err
		}
		filter.HardwareKeys, filter.Instance = machine.HardwareKeys, machine.Instance
	}
	conclusions, err := s.Best(ctx, filter)
	if err != nil {
		return err
	}
	answer := output.BestOf(conclusions)
	if flags.hardware != "" {
		answer = ofHardware(answer, flags.hardware)
	}
	return a.printBest(answer, flags)
}

func ofHardware(answer output.Best, wanted string) output.Best {
	kept := []output.BestKnown{}
	for _, known := range answer.Best {
		if known.Hardware.Key == wanted || strings.Contains(strings.ToLower(known.Hardware.Name), strings.ToLower(wanted)) {
			kept = append(kept, known)
		}
	}
	answer.Best = kept
	return answer
}

func (a *app) printBest(answer output.Best, flags bestFlags) error {
	if len(answer.Best) == 0 {
		if a.json {
			if err := a.document(answer); err != nil {
				return err
			}
		}
		return &statusError{status: exitNothingKnown, cause: errors.New("nothing is known that fits; `--unconfirmed` includes campaigns that ended early, `--any` all machines")}
	}
	if flags.format == "json" || (flags.format == "" && a.json) {
		return a.document(answer)
	}
	if flags.format != "" {
		if count := distinctSubjects(answer); count > 1 {
			return usage(fmt.Errorf("%d answers fit and one is needed; choose with --campaign, --model, --workload or --hardware", count))
		}
		text, err := paste.Write(answer.Best[0], flags.format)
		if err != nil {
			return err
		}
		a.printf("%s", text)
		return nil
	}
	a.page().Best(answer)
	return nil
}

// distinctSubjects counts what the answers are about: machine, model and
// workload. Answers about the same subject are ranked, the first is the best.
func distinctSubjects(answer output.Best) int {
	subjects := map[string]bool{}
	for _, known := range answer.Best {
		subjects[known.Hardware.Key+known.Model+known.Workload.Key+known.Objective.Metric] = true
	}
	return len(subjects)
}
