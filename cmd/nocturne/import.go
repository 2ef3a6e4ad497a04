package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
)

func (a *app) importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import [FILE ...]",
		Short: "Add exported campaigns to this store",
		Long:  "Reads campaigns that `nocturne export` wrote, from files or stdin. A campaign that\nis here already is left as it is.",
		RunE: func(command *cobra.Command, args []string) error {
			return a.writing(command.Context(), func(s store.Store) error {
				answer := output.Moved{Schema: output.Schema}
				if len(args) == 0 {
					if err := importFrom(command.Context(), s, "stdin", command.InOrStdin(), &answer); err != nil {
						return err
					}
				}
				for _, path := range args {
					if err := importFile(command.Context(), s, path, &answer); err != nil {
						return err
					}
				}
				return a.answer(answer, func(p *screen.Page) { p.Moved(answer) })
			})
		},
	}
}

func importFile(ctx context.Context, s store.Store, path string, answer *output.Moved) error {
	file, err := os.Open(path)
	if err != nil {
		return usage(err)
	}
	return errors.Join(importFrom(ctx, s, path, file, answer), file.Close())
}

func importFrom(ctx context.Context, s store.Store, name string, from io.Reader, answer *output.Moved) error {
	decoder := json.NewDecoder(bufio.NewReader(from))
	for number := 1; ; number++ {
		var archive store.Archive
		err := decoder.Decode(&archive)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return usage(fmt.Errorf("%s: campaign %d is not what `nocturne export` writes: %w", name, number, err))
		}
		added, err := s.Import(ctx, archive)
		if err != nil {
			return fmt.Errorf("%s: campaign %d (%q): %w", name, number, archive.Campaign.Name, err)
		}
		answer.Count(added)
	}
}
