package main

import (
	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) show() *cobra.Command {
	return about(a, "show", "Verdict, best, baseline, importance, failures and time of a campaign", output.ShowOf,
		func(p *screen.Page, answer output.Show, _ store.Campaign) { p.Show(answer) })
}
