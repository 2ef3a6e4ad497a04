package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"nocturne/runners/servers"
	"nocturne/tuner/spec"
)

func (a *app) init() *cobra.Command {
	var kind, file string
	command := &cobra.Command{
		Use:     "init",
		Short:   "Write a short campaign file for what this machine has",
		Example: "  nocturne init --kind vllm --file night.yaml",
		Args:    exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			found, err := a.machine(command.Context())
			if err != nil {
				return err
			}
			text, err := spec.Example(kind, found.Hardware)
			if err != nil {
				return usage(err)
			}
			if file == "-" {
				_, err := a.stdout.Write(text)
				return err
			}
			return a.writeNew(file, text)
		},
	}
	command.Flags().StringVar(&kind, "kind", "sglang", "server kind: "+strings.Join(servers.Names(), ", ")+" or "+spec.KindCommand)
	command.Flags().StringVar(&file, "file", "campaign.yaml", "file to write; - for stdout")
	return command
}

// writeNew writes a file that must not exist yet.
func (a *app) writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s is there already and is left as it is: name another file with --file", path))
	}
	if err != nil {
		return usage(err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	a.printf("wrote %s: edit its command and model, then: nocturne validate %s\n", path, path)
	return nil
}
