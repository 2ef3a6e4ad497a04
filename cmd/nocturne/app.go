package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/store"
	"nocturne/store/open"
	"nocturne/tuner/output"
	"nocturne/tuner/spec"
)

// app is what all commands share.
type app struct {
	stdout, stderr io.Writer
	hostOptions    local.Options

	database string
	json     bool
	logLevel string
	noColor  bool
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	status, show := exitStatus(err)
	if show {
		fmt.Fprintf(a.stderr, "nocturne: %v\n", err)
	}
	return status
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "nocturne",
		Short: "Tune LLM inference servers overnight",
		Long: `Nocturne relaunches an inference server under different settings, measures each of
them, and says in the morning which one is fastest, and how sure that is.`,
		SilenceUsage: true, SilenceErrors: true, Version: version(),
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	flags := root.PersistentFlags()
	flags.StringVar(&a.database, "db", os.Getenv("NOCTURNE_DB"), "store: sqlite:PATH or postgres://... (also NOCTURNE_DB)")
	flags.BoolVar(&a.json, "json", false, "machine-readable output")
	flags.StringVar(&a.logLevel, "log-level", "warn", "debug, info, warn or error; logs go to stderr")
	flags.BoolVar(&a.noColor, "no-color", false, "no colours, also on a terminal")
	root.AddGroup(&cobra.Group{ID: "campaign", Title: "Campaigns:"}, &cobra.Group{ID: "answer", Title: "Answers:"}, &cobra.Group{ID: "tool", Title: "Tools:"})
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{"campaign", []*cobra.Command{a.demo(), a.init(), a.validate(), a.render(), a.try(), a.tune(), a.resume()}},
		{"answer", []*cobra.Command{a.campaigns(), a.show(), a.trials(), a.best(), a.compare()}},
		{"tool", []*cobra.Command{a.export(), a.importCommand(), a.bench(), a.simHelp(), a.fingerprint(), a.dbCommand(), a.reference()}},
	} {
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	return root
}

// exactly is a check of the number of arguments with the usage status.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != n {
			return usage(fmt.Errorf("%s takes %s, got %d arguments; see `%s --help`", command.CommandPath(), what, len(args), command.CommandPath()))
		}
		return nil
	}
}

func (a *app) log() (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(a.logLevel)
	if err != nil {
		return zerolog.Nop(), usage(fmt.Errorf("--log-level %q: want debug, info, warn or error", a.logLevel))
	}
	writer := zerolog.ConsoleWriter{Out: a.stderr, NoColor: a.noColor || !isTerminal(a.stderr), TimeFormat: time.RFC3339}
	return zerolog.New(writer).Level(level).With().Timestamp().Logger(), nil
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// store opens the store and brings its schema up to date.
func (a *app) store(ctx context.Context) (store.Store, store.Status, error) {
	url, err := a.databaseURL()
	if err != nil {
		return nil, store.Status{}, err
	}
	opened, err := open.Store(ctx, url)
	if err != nil {
		return nil, store.Status{}, err
	}
	if err := opened.Migrate(ctx); err != nil {
		return nil, store.Status{}, errors.Join(err, opened.Close())
	}
	status, err := opened.Status(ctx)
	if err != nil {
		return nil, store.Status{}, errors.Join(err, opened.Close())
	}
	return opened, status, nil
}

// withStore runs an answering command on the store.
func (a *app) withStore(ctx context.Context, do func(store.Store) error) error {
	opened, _, err := a.store(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(opened), opened.Close())
}

// host is the machine that trials run on.
func (a *app) host() (runners.Host, error) { return local.New(a.hostOptions) }

// campaignFile reads and checks a campaign file, and prints its warnings.
func (a *app) campaignFile(path string, options spec.Options) (*spec.Campaign, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(err)
	}
	campaign, warnings, err := spec.Parse(path, text, options)
	for _, warning := range warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", warning)
	}
	if err != nil {
		return nil, usage(err)
	}
	return campaign, nil
}

// find looks a campaign up for an answering command.
func find(ctx context.Context, s store.Store, reference string) (store.Campaign, error) {
	campaign, err := s.Campaign(ctx, reference)
	if errors.Is(err, store.ErrNotFound) {
		return campaign, usage(fmt.Errorf("no campaign %q in this store; `nocturne campaigns` lists them", reference))
	}
	return campaign, err
}

// document prints a machine-readable answer.
func (a *app) document(document any) error {
	text, err := output.WriteJSON(document)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }

// dataDirectory holds server logs: beside the default store, also when another
// store is named.
func dataDirectory() (string, error) {
	url, err := open.Default()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimPrefix(url, "sqlite:")), nil
}
