package main

import (
	"github.com/spf13/cobra"

	"nocturne/examples"
	"nocturne/tuner"
	"nocturne/tuner/spec"
)

func (a *app) demo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "A whole night in under a minute, on the built-in simulated server",
		Long: `Runs a whole campaign on simulated servers: real processes that load, serve and are
stopped, on an 8-GPU machine that does not exist. The results are kept like those of
any campaign, marked as simulated.
` + campaignExits,
		Args: exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			directory, err := dataDirectory()
			if err != nil {
				return err
			}
			campaign, _, err := spec.ParseStored("demo.yaml", directory, examples.Demo, spec.Options{})
			if err != nil {
				return err
			}
			return a.runCampaign(command.Context(), campaign, tuner.Options{NewRun: true})
		},
	}
}
