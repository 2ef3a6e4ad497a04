package main

import (
	"github.com/spf13/cobra"

	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) fingerprint() *cobra.Command {
	return &cobra.Command{
		Use:   "fingerprint",
		Short: "This machine's hardware and stack, with what could not be read",
		Args:  exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			found, err := a.machine(command.Context())
			if err != nil {
				return err
			}
			answer := output.FingerprintOf(found)
			return a.answer(answer, func(p *screen.Page) { p.Fingerprint(answer) })
		},
	}
}
