package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"nocturne/tuner/output"
	"nocturne/tuner/reference"
	"nocturne/tuner/spec"
)

func (a *app) fingerprint() *cobra.Command {
	return &cobra.Command{
		Use:   "fingerprint",
		Short: "This machine's hardware and stack, with what could not be read",
		Args:  exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			host, err := a.host()
			if err != nil {
				return err
			}
			found, err := host.Fingerprint(command.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.document(output.FingerprintOf(found))
			}
			a.printf("%s\n  key      %s\n  instance %s\n  CPU      %s, %d sockets, %d NUMA nodes\n", found.Hardware.Name, found.Hardware.Key,
				found.Hardware.Instance, found.Hardware.CPU, found.Hardware.Sockets, found.Hardware.NUMANodes)
			a.printf("  stack    driver %s, CUDA %s, kernel %s\n", orDash(found.Stack.Driver), orDash(found.Stack.CUDA), orDash(found.Stack.Kernel))
			for _, name := range slices.Sorted(maps.Keys(found.Settings)) {
				a.printf("  %-28s %s\n", name, found.Settings[name])
			}
			for _, what := range found.Unreadable {
				a.printf("  not readable: %s\n", what)
			}
			return nil
		},
	}
}

func (a *app) init() *cobra.Command {
	var kind, file string
	command := &cobra.Command{
		Use:     "init",
		Short:   "Write a short campaign file for what this machine has",
		Example: "  nocturne init --kind vllm --file night.yaml",
		Args:    exactly(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			host, err := a.host()
			if err != nil {
				return err
			}
			found, err := host.Fingerprint(command.Context())
			if err != nil {
				return err
			}
			text, err := spec.Example(kind, found.Hardware)
			if err != nil {
				return usage(err)
			}
			if file == "-" {
				a.printf("%s", text)
				return nil
			}
			return a.writeNew(file, text)
		},
	}
	command.Flags().StringVar(&kind, "kind", "sglang", "server kind: sglang, vllm, llamacpp, custom or command")
	command.Flags().StringVar(&file, "file", "campaign.yaml", "file to write; - for stdout")
	return command
}

// writeNew writes a file that must not exist yet.
func (a *app) writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return usage(fmt.Errorf("%w; name another file with --file", err))
	}
	_, err = file.Write(text)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	a.printf("wrote %s; edit the command and the model, then: nocturne validate %s\n", path, path)
	return nil
}

// simHelp documents the simulated server; main runs it before the command line
// is built.
func (a *app) simHelp() *cobra.Command {
	return &cobra.Command{
		Use:                "sim",
		Short:              "The simulated server alone",
		Long:               "Runs the simulated server: SGLang's flags and APIs, and --sim-... settings; see\n`nocturne sim --help`.",
		DisableFlagParsing: true,
	}
}

// reference writes the generated reference.
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
