package main

import (
	"github.com/spf13/cobra"

	"nocturne/nccl"
	"nocturne/search"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
	"nocturne/tuner/spec"
)

func (a *app) render() *cobra.Command {
	var pairs []string
	command := &cobra.Command{
		Use:     "render FILE",
		Short:   "The exact arguments, variables and removed variables of a configuration",
		Long:    "Prints what a configuration launches, one argument a line, and launches nothing.\nWithout --set it is the baseline.",
		Example: "  nocturne render night.yaml --set NCCL_PROTO=LL --set speculative.steps=2",
		Args:    exactly(1, "one campaign file"),
		RunE: func(_ *cobra.Command, args []string) error {
			campaign, values, err := a.configuration(args[0], pairs)
			if err != nil {
				return err
			}
			answer, err := output.RenderOf(campaign, values, nccl.Context{})
			if err != nil {
				return err
			}
			return a.answer(answer, func(p *screen.Page) { p.Render(answer) })
		},
	}
	setFlag(command, &pairs)
	return command
}

func setFlag(command *cobra.Command, pairs *[]string) {
	command.Flags().StringArrayVar(pairs, "set", nil, "value of a knob, K=V; repeatable; unset means absent")
}

// configuration reads a campaign file and --set K=V pairs as one of its
// configurations.
func (a *app) configuration(path string, pairs []string) (*spec.Campaign, search.Values, error) {
	campaign, err := a.campaignFile(path, spec.Options{})
	if err != nil {
		return nil, nil, err
	}
	values, err := campaign.ParseSettings(pairs)
	if err != nil {
		return nil, nil, usage(err)
	}
	return campaign, values, nil
}
