package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

type compareFlags struct {
	by, from, to string
	any          bool
}

func (a *app) compare() *cobra.Command {
	var flags compareFlags
	command := &cobra.Command{
		Use:   "compare [A B]",
		Short: "The same configurations in two campaigns, or before and after a driver change",
		Long: `Lists what differs between the hosts and stacks of two campaigns, then pairs the
configurations that both measured. With --by driver the latest campaigns of this
machine under two driver versions are compared, of one model and workload.`,
		Example: "  nocturne compare k25@1 k25@2\n  nocturne compare --by driver --from 570.1 --to 580.2",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 2 && flags == compareFlags{}:
				return nil
			case len(args) == 0 && flags.by == "driver" && flags.from != "" && flags.to != "":
				return nil
			}
			return usage(errors.New("compare takes two campaigns, or --by driver with --from and --to; see `nocturne compare --help`"))
		},
		RunE: func(command *cobra.Command, args []string) error {
			return a.reading(command.Context(), func(s store.Store) error {
				left, right, err := a.sides(command.Context(), s, args, flags)
				if err != nil {
					return err
				}
				answer, err := output.CompareOf(command.Context(), s, left, right)
				if err != nil {
					return err
				}
				return a.answer(answer, func(p *screen.Page) { p.Compare(answer) })
			})
		},
	}
	f := command.Flags()
	f.StringVar(&flags.by, "by", "", "what the sides differ in: driver")
	f.StringVar(&flags.from, "from", "", "driver version of side A")
	f.StringVar(&flags.to, "to", "", "driver version of side B")
	f.BoolVar(&flags.any, "any", false, "with --by: campaigns of all machines, not only of this one")
	return command
}

// sides finds the two campaigns of a comparison.
func (a *app) sides(ctx context.Context, s store.Store, args []string, flags compareFlags) (left, right store.Campaign, err error) {
	if len(args) == 2 {
		if left, err = find(ctx, s, args[0]); err != nil {
			return left, right, err
		}
		right, err = find(ctx, s, args[1])
		return left, right, err
	}
	filter := store.BestFilter{}
	if !flags.any {
		if filter, err = a.thisMachine(ctx); err != nil {
			return left, right, err
		}
	}
	left, right, err = output.SidesByDriver(ctx, s, filter, flags.from, flags.to)
	var none *output.NoSidesError
	if errors.As(err, &none) {
		err = usage(err)
	}
	return left, right, err
}

// thisMachine selects what is known of this machine, and of simulated ones that
// ran on it.
func (a *app) thisMachine(ctx context.Context) (store.BestFilter, error) {
	found, err := a.machine(ctx)
	if err != nil {
		return store.BestFilter{}, err
	}
	return store.BestFilter{HardwareKeys: []string{found.Hardware.Key}, Instance: found.Hardware.Instance}, nil
}
