// Command nocturne tunes LLM inference servers overnight.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nocturne/runners/local"
	"nocturne/runners/sim"
	"nocturne/runners/supervise"
)

func main() { os.Exit(mainStatus(local.Options{})) }

// mainStatus is main with an exit status, on a host with these options: tests
// run the program with locks of their own.
func mainStatus(host local.Options) int {
	// The supervisor and the simulated server are processes of their own that
	// share the binary. They must not pay for the command line's start.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Command:
			return supervise.Main(os.Args[2:])
		case "sim":
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return sim.Main(ctx, os.Args[2:], os.Environ(), os.Stdout, os.Stderr)
		}
	}
	app := &app{stdout: os.Stdout, stderr: os.Stderr, hostOptions: host}
	ctx, stop := interruptible()
	defer stop()
	return app.run(ctx, os.Args[1:])
}

// interruptible ends its context at the first interrupt, so that a campaign
// cleans up, and the process at the second. SIGHUP is no interrupt: a campaign
// outlives the terminal that began it.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	signal.Ignore(syscall.SIGHUP)
	// A reader of the progress that went away (`| head`) is no reason to stop a
	// night. Caught, not ignored: ignoring would be inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case received := <-signals:
			cancel(fmt.Errorf("interrupted by %s: %w", received, context.Canceled))
			fmt.Fprintln(os.Stderr, "\nstopping and cleaning up; interrupt again to stop at once")
		}
		select {
		case <-done:
		case <-signals:
			os.Exit(exitInterrupted) // the supervisor stops the server when this process is gone
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// statusError carries an exit status other than 1. A nil cause prints nothing.
type statusError struct {
	status int
	cause  error
}

func (e *statusError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.cause.Error()
}

func (e *statusError) Unwrap() error { return e.cause }

// usage marks an error as the caller's: exit status 2.
func usage(err error) error { return &statusError{status: exitUsage, cause: err} }

// exitStatus is the one place that turns an error into an exit status.
func exitStatus(err error) (status int, show bool) {
	var carried *statusError
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &carried):
		return carried.status, carried.cause != nil
	case errors.Is(err, context.Canceled):
		return exitInterrupted, true
	default:
		return exitFailed, true
	}
}
