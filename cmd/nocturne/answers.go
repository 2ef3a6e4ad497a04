package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

// table starts a table in the house style: no borders, a header, blanks.
func (a *app) table(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(a.stdout)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.AppendHeader(table.Row(header))
	return t
}

func (a *app) campaigns() *cobra.Command {
	return &cobra.Command{
		Use:   "campaigns",
		Short: "List campaigns, newest first",
		Args:  exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withStore(command.Context(), func(s store.Store) error {
				campaigns, err := s.Campaigns(command.Context(), store.CampaignFilter{})
				if err != nil {
					return err
				}
				answer := output.CampaignsOf(campaigns)
				if a.json {
					return a.document(answer)
				}
				t := a.table("campaign", "run", "state", "claim", "gain", "hardware", "model", "begun")
				for _, c := range answer.Campaigns {
					claim, gain := "-", "-"
					if c.Claim != nil {
						claim = *c.Claim
					}
					if c.Speedup != nil {
						gain = screen.Ratio(*c.Speedup)
					}
					t.AppendRow(table.Row{c.Campaign, c.Run, c.State, claim, gain, c.Hardware, c.Model, c.Created.Local().Format("2006-01-02 15:04")})
				}
				if len(answer.Campaigns) == 0 {
					a.printf("no campaigns yet; `nocturne demo` runs one on a simulated server\n")
					return nil
				}
				t.Render()
				return nil
			})
		},
	}
}

func (a *app) trials() *cobra.Command {
	return &cobra.Command{
		Use:   "trials CAMPAIGN",
		Short: "A row for each trial",
		Args:  exactly(1, "one campaign"),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withStore(command.Context(), func(s store.Store) error {
				campaign, err := find(command.Context(), s, args[0])
				if err != nil {
					return err
				}
				answer, err := output.TrialsOf(command.Context(), s, campaign)
				if err != nil {
					return err
				}
				if a.json {
					return a.document(answer)
				}
				a.trialTable(campaign, answer)
				return nil
			})
		},
	}
}

func (a *app) trialTable(campaign store.Campaign, answer output.Trials) {
	head := campaign.Objective.Metric
	if unit := screen.Unit(head); unit != "" {
		head += " (" + unit + ")"
	}
	t := a.table("trial", "role", "state", head, "load", "measure", "proof", "settings")
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight}, {Number: 6, Align: text.AlignRight}})
	var baseline store.Configuration
	for _, trial := range answer.Trials {
		if trial.Role == store.RoleBaseline {
			baseline = trial.Configuration
		}
		value, settings := "-", screen.Settings(trial.Configuration.Values, baseline.Values)
		if trial.Value != nil {
			value = screen.Number(*trial.Value)
		}
		if trial.Failure != nil {
			settings = trial.Failure.Reason + "  [" + settings + "]"
		}
		if trial.RepeatOf != nil {
			settings = fmt.Sprintf("again trial %d", *trial.RepeatOf)
		}
		t.AppendRow(table.Row{trial.Trial, trial.Role, trial.State, value, secondsText(trial.LoadingS), secondsText(trial.MeasuringS), proofText(trial), settings})
	}
	t.Render()
}

func secondsText(s *float64) string {
	if s == nil {
		return "-"
	}
	return screen.Seconds(*s)
}

// proofText sums up what was proved: all settings applied, or which are not.
func proofText(trial output.Trial) string {
	var doubtful []string
	for _, proof := range trial.Proof {
		if proof.Status != "applied" {
			doubtful = append(doubtful, proof.Knob+" "+string(proof.Status))
		}
	}
	switch {
	case len(trial.Proof) == 0:
		return "-"
	case len(doubtful) == 0:
		return "applied"
	}
	return strings.Join(doubtful, ", ")
}

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show CAMPAIGN",
		Short: "Verdict, best, baseline, importance, failures and time of a campaign",
		Args:  exactly(1, "one campaign"),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withStore(command.Context(), func(s store.Store) error {
				campaign, err := find(command.Context(), s, args[0])
				if err != nil {
					return err
				}
				answer, err := output.ShowOf(command.Context(), s, campaign)
				if err != nil {
					return err
				}
				if a.json {
					return a.document(answer)
				}
				a.showText(answer)
				return nil
			})
		},
	}
}

func (a *app) showText(show output.Show) {
	metric := show.Objective.Metric
	a.printf("%s run %d: %s", show.Campaign, show.Run, show.State)
	if show.Cause != nil {
		a.printf(" (%s)", screen.FirstLine(*show.Cause))
	}
	a.printf("\n")
	if show.Hardware != nil {
		a.printf("%s, model %s\n", show.Hardware.Name, show.Model)
	}
	for _, stack := range show.Stacks {
		a.printf("driver %s, CUDA %s, NCCL %s, server %s %s\n", orDash(stack.Driver), orDash(stack.CUDA), orDash(stack.NCCL), orDash(stack.Server), stack.ServerVersion)
	}
	a.printf("\n")
	if show.Verdict != nil {
		for _, line := range screen.VerdictLines(*show.Verdict, show.Best, metric) {
			a.printf("%s\n", line)
		}
	} else {
		a.printf("no verdict yet\n")
	}
	for _, reference := range []struct {
		name     string
		measured *output.Measured
	}{{"baseline", show.Baseline}, {"current", show.Current}} {
		if m := reference.measured; m != nil && m.Value != nil {
			a.printf("  %-9s %s over %d launches\n", reference.name, screen.Measure(*m.Value, metric), m.Launches)
		}
	}
	for _, limit := range show.Limits {
		a.printf("  limit %s: best %s, %s\n", limit.Metric, numberOrDash(limit.Best), metText(limit.Met))
	}
	a.printf("\ntrials: %s\n", counts(show.Trials))
	if len(show.Failures) > 0 {
		a.printf("failures: %s\n", counts(show.Failures))
	}
	a.importance(show.Importance)
	a.printf("time: %s in all; loading %s, measuring %s, overhead %s\n", screen.Seconds(show.Time.TotalS),
		screen.Seconds(show.Time.LoadingS), screen.Seconds(show.Time.MeasuringS), screen.Seconds(show.Time.OverheadS))
}

// importantShare is the share of variance below which a knob is not shown.
const importantShare = 0.03

func (a *app) importance(importance []output.Importance) {
	var parts []string
	for _, knob := range importance {
		if knob.Share >= importantShare && len(parts) < 6 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", strings.TrimPrefix(knob.Knob, "flag."), knob.Share*100))
		}
	}
	if len(parts) > 0 {
		a.printf("variation explained by each knob alone: %s\n", strings.Join(parts, ", "))
	}
}

func (a *app) compare() *cobra.Command {
	var by, from, to string
	command := &cobra.Command{
		Use:     "compare [A B]",
		Short:   "The same configurations in two campaigns, or before and after a driver change",
		Long:    "Lists what differs between the hosts and stacks of two campaigns, then pairs the\nconfigurations that both measured. With --by driver the latest concluded campaigns\nof this machine under two driver versions are compared.",
		Example: "  nocturne compare k25@1 k25@2\n  nocturne compare --by driver --from 570.1 --to 580.2",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 2) == (by != "") || len(args) == 1 {
				return usage(errors.New("compare takes two campaigns, or --by driver with --from and --to"))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return a.withStore(command.Context(), func(s store.Store) error {
				left, right, err := a.sides(command, s, args, by, from, to)
				if err != nil {
					return err
				}
				answer, err := output.CompareOf(command.Context(), s, left, right)
				if err != nil {
					return err
				}
				if a.json {
					return a.document(answer)
				}
				a.compareText(answer)
				return nil
			})
		},
	}
	command.Flags().StringVar(&by, "by", "", "what the sides differ in: driver")
	command.Flags().StringVar(&from, "from", "", "driver version of side A")
	command.Flags().StringVar(&to, "to", "", "driver version of side B")
	return command
}

// sides finds the two campaigns of a comparison.
func (a *app) sides(command *cobra.Command, s store.Store, args []string, by, from, to string) (left, right store.Campaign, err error) {
	ctx := command.Context()
	if len(args) == 2 {
		if left, err = find(ctx, s, args[0]); err != nil {
			return left, right, err
		}
		right, err = find(ctx, s, args[1])
		return left, right, err
	}
	if by != "driver" || from == "" || to == "" {
		return left, right, usage(errors.New("want --by driver with both --from and --to"))
	}
	for _, side := range []struct {
		driver string
		into   *store.Campaign
	}{{from, &left}, {to, &right}} {
		known, err := s.Best(ctx, store.BestFilter{Driver: side.driver, Unconfirmed: true})
		if err != nil {
			return left, right, err
		}
		var latest time.Time
		for _, conclusion := range known {
			if conclusion.Time.After(latest) {
				latest = conclusion.Time
				if *side.into, err = s.Campaign(ctx, conclusion.CampaignID); err != nil {
					return left, right, err
				}
			}
		}
		if side.into.ID == "" {
			return left, right, usage(fmt.Errorf("no campaign has ended under driver %s", side.driver))
		}
	}
	return left, right, nil
}

func (a *app) compareText(answer output.Compare) {
	a.printf("A  %s run %d   driver %s, NCCL %s\n", answer.A.Campaign, answer.A.Run, orDash(answer.A.Stack.Driver), orDash(answer.A.Stack.NCCL))
	a.printf("B  %s run %d   driver %s, NCCL %s\n\n", answer.B.Campaign, answer.B.Run, orDash(answer.B.Stack.Driver), orDash(answer.B.Stack.NCCL))
	if len(answer.Differences) == 0 {
		a.printf("no recorded difference between the hosts and stacks\n")
	}
	for _, difference := range answer.Differences {
		a.printf("differs: %-15s %s -> %s\n", difference.Field, orDash(difference.A), orDash(difference.B))
	}
	for _, reason := range answer.Reasons {
		a.printf("%s\n", reason)
	}
	a.printf("attribution: %s\n\n", answer.Attribution)
	if len(answer.Pairs) == 0 {
		a.printf("no configuration was measured on both sides\n")
		return
	}
	t := a.table("A", "B", "B over A", "interval", "verdict", "settings")
	for _, pair := range answer.Pairs {
		interval := "-"
		if pair.Interval != nil {
			interval = screen.Ratio(pair.Interval[0]) + " to " + screen.Ratio(pair.Interval[1])
		}
		t.AppendRow(table.Row{numberOrDash(pair.A.Value), numberOrDash(pair.B.Value), screen.Ratio(pair.Ratio), interval, pair.Verdict, screen.Settings(pair.Configuration.Values, nil)})
	}
	t.Render()
}
