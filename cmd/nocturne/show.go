package main

import (
	"context"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) show() *cobra.Command {
	return a.about("show", "Verdict, best, baseline, importance, failures and time of a campaign",
		func(ctx context.Context, s store.Store, campaign store.Campaign) error {
			answer, err := output.ShowOf(ctx, s, campaign)
			if err != nil {
				return err
			}
			return a.answer(answer, func(p *screen.Page) { p.Show(answer) })
		})
}
