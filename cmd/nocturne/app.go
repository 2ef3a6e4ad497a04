package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"nocturne/runners"
	"nocturne/runners/local"
	"nocturne/tuner/output"
	"nocturne/tuner/screen"
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
	var err error
	if _, _, err = root.Find(args); err != nil {
		err = usage(fmt.Errorf("%w; `nocturne --help` lists the commands", err))
	} else {
		err = root.ExecuteContext(ctx)
	}
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
them, and says in the morning which one is fastest, and how sure that is.

CAMPAIGN is a name (its latest run), NAME@RUN, or the beginning of an id.`,
		SilenceUsage: true, SilenceErrors: true, Version: version(),
		PersistentPreRunE: func(*cobra.Command, []string) error {
			_, err := a.log()
			return err
		},
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&a.database, "db", os.Getenv("NOCTURNE_DB"), "store: sqlite:PATH or postgres://... (also NOCTURNE_DB)")
	root.PersistentFlags().Lookup("db").DefValue = "" // the variable's value may hold a password, and help is shown
	flags.BoolVar(&a.json, "json", false, "machine-readable output")
	flags.StringVar(&a.logLevel, "log-level", "warn", "debug, info, warn or error; logs go to stderr")
	flags.BoolVar(&a.noColor, "no-color", os.Getenv("NO_COLOR") != "", "no colours, also on a terminal (also NO_COLOR)")
	root.AddGroup(&cobra.Group{ID: "campaign", Title: "Campaigns:"}, &cobra.Group{ID: "answer", Title: "Answers:"}, &cobra.Group{ID: "tool", Title: "Tools:"})
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{"campaign", []*cobra.Command{a.demo(), a.init(), a.validate(), a.render(), a.try(), a.tune(), a.resume()}},
		{"answer", []*cobra.Command{a.campaigns(), a.show(), a.trials(), a.best(), a.compare()}},
		{"tool", []*cobra.Command{a.export(), a.importCommand(), a.bench(), a.sim(), a.fingerprint(), a.db(), a.reference()}},
	} {
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	return root
}

// flagError adds what was probably meant to an error about a flag.
func flagError(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	hint := ""
	if errors.As(err, &unknown) {
		least := 1 + len(unknown.GetSpecifiedName())/3
		consider := func(flag *pflag.Flag) {
			if edits := levenshtein.ComputeDistance(unknown.GetSpecifiedName(), flag.Name); edits <= least {
				least, hint = edits-1, fmt.Sprintf("; did you mean --%s?", flag.Name)
			}
		}
		command.Flags().VisitAll(consider)
		command.InheritedFlags().VisitAll(consider)
	}
	return usage(fmt.Errorf("%w%s; see `%s --help`", err, hint, command.CommandPath()))
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
	if err != nil || level == zerolog.NoLevel {
		return zerolog.Nop(), usage(fmt.Errorf("--log-level %q: want debug, info, warn or error", a.logLevel))
	}
	writer := zerolog.ConsoleWriter{Out: a.stderr, NoColor: a.noColor || !isTerminal(a.stderr), TimeFormat: time.RFC3339}
	return zerolog.New(writer).Level(level).With().Timestamp().Logger(), nil
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// page is where answers for a person go.
func (a *app) page() *screen.Page {
	width := 0
	if file, ok := a.stdout.(*os.File); ok && isTerminal(a.stdout) {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
			width = columns
		}
	}
	return screen.NewPage(a.stdout, width)
}

// host is the machine that trials run on.
func (a *app) host() (runners.Host, error) { return local.New(a.hostOptions) }

// machine is the fingerprint of this machine.
func (a *app) machine(ctx context.Context) (runners.Fingerprint, error) {
	host, err := a.host()
	if err != nil {
		return runners.Fingerprint{}, err
	}
	return host.Fingerprint(ctx)
}

// campaignFile reads and checks a campaign file, and prints its warnings.
func (a *app) campaignFile(path string, options spec.Options) (*spec.Campaign, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(fmt.Errorf("campaign file: %w", err))
	}
	campaign, warnings, err := spec.Parse(path, text, options)
	for _, warning := range warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", warning)
	}
	var faults spec.Faults
	if errors.As(err, &faults) {
		fmt.Fprintln(a.stderr, faults)
		return nil, usage(fmt.Errorf("%s: %s; nothing was started", path, plural(len(faults), "fault")))
	}
	if err != nil {
		return nil, usage(err)
	}
	return campaign, nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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

// answer prints a document, or what a person reads in its place.
func (a *app) answer(document any, text func(*screen.Page)) error {
	if a.json {
		return a.document(document)
	}
	text(a.page())
	return nil
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }
