package main

import (
	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) trials() *cobra.Command {
	return about(a, "trials", "A row for each trial", output.TrialsOf,
		func(p *screen.Page, answer output.Trials, campaign store.Campaign) {
			p.Trials(answer, campaign.Objective.Metric, campaign.Objective.Minimize())
		})
}
