package main

import (
	"os"

	"github.com/spf13/cobra"

	"nocturne/runners/sim"
)

// sim lists the simulated server in the help. mainStatus runs it before the
// command line is built, unless a global flag stands in front of it.
func (a *app) sim() *cobra.Command {
	return &cobra.Command{
		Use:                "sim",
		Short:              "The simulated server alone",
		Long:               "Runs the simulated server: SGLang's flags and APIs, and --sim-... settings; see\n`nocturne sim --help`.",
		DisableFlagParsing: true,
		RunE: func(command *cobra.Command, args []string) error {
			if status := sim.Main(command.Context(), args, os.Environ(), a.stdout, a.stderr); status != 0 {
				return &statusError{status: status}
			}
			return nil
		},
	}
}
