package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"nocturne/tuner/reference"
)

// reference writes the generated part of the documentation.
func (a *app) reference() *cobra.Command {
	return &cobra.Command{
		Use:    "reference FOLDER",
		Short:  "Write the schemas and reference pages",
		Hidden: true,
		Args:   exactly(1, "one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := reference.Files()
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				path := filepath.Join(args[0], name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, files[name], 0o644); err != nil {
					return err
				}
			}
			a.printf("wrote %d files below %s\n", len(files), args[0])
			return nil
		},
	}
}
