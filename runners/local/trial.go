package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// trial carries one job out. Its methods run in one goroutine; what runs beside
// it (the log, the watch over the process) is in other types.
type trial struct {
	host     *Host
	job      runners.Job
	observer *observer
	kind     *servers.Kind

	// Filled by prepare.
	spec          supervise.Spec
	address       string // of the server
	pages         *pages
	releasePort   func() error
	mask          *strings.Replacer
	circumstances servers.Circumstances
	memoryBefore  []int64 // of the GPUs of the job, MiB
	dataset       *load.Dataset

	// Filled by launch.
	process *supervise.Process
	forget  func() // takes the launch out of the journal
	log     *logWatch
	// background holds what still runs beside the trial; stop waits for it.
	background sync.WaitGroup
	// hostMemoryOut tells that the kernel killed a process of the launch for want
	// of memory.
	hostMemoryOut bool

	// Filled by verify.
	model  string
	client *load.Client
	table  *load.CounterTable
	// told is what the server's pages said, also what it said not to have.
	told      map[string]string
	pagesRead bool
	drafts    *runners.Proof // whether the first completion was speculated; nil where it need not be

	stage   runners.Stage
	started time.Time // of the stage
	result  runners.Result
	// serving is time in which the server worked for us outside of warm-up and
	// measuring.
	serving time.Duration
}

func newTrial(host *Host, job runners.Job, observed runners.Observer) *trial {
	return &trial{
		host: host, job: job, observer: &observer{observed: observed},
		mask: masker(nil), releasePort: func() error { return nil },
		result: runners.Result{Started: time.Now(), Effective: map[string]string{}},
	}
}

// run carries the job out.
func (t *trial) run(ctx context.Context) runners.Result {
	carryOut := t.serve
	if t.job.Kind == kindCommand {
		carryOut = t.command
	}
	err := carryOut(ctx)
	atStage := t.stage
	stopErr := t.stop(ctx)
	t.conclude(ctx, err, stopErr, atStage)
	return t.result
}

// serve is the life of a server up to its stop.
func (t *trial) serve(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if err := t.launch(ctx); err != nil {
		return err
	}
	alive, stopWatching := t.watch(ctx)
	defer stopWatching()
	for _, step := range []func(context.Context) error{t.load, t.verify, t.warm, t.measure} {
		if err := step(alive); err != nil {
			return err
		}
	}
	return nil
}

// enter begins a stage and closes the books of the one before.
func (t *trial) enter(stage runners.Stage) {
	t.leave()
	t.stage, t.started = stage, time.Now()
	t.observer.stage(stage)
}

func (t *trial) leave() {
	if t.stage == "" {
		return
	}
	spent := map[runners.Stage]*time.Duration{
		runners.Launching: &t.result.Launching, runners.Loading: &t.result.Loading,
		runners.Verifying: &t.result.Verifying, runners.Warming: &t.result.Warming,
		runners.Measuring: &t.result.Measuring, runners.Stopping: &t.result.Stopping,
	}[t.stage]
	if spent != nil {
		*spent += time.Since(t.started)
	}
}

// prepare finds out all that can be known without a launch.
func (t *trial) prepare(ctx context.Context) error {
	t.enter(runners.Preparing)
	kind, err := servers.Get(t.job.Kind)
	if err != nil {
		return fail(servers.ReasonArgumentRefused, "%v", err)
	}
	version, _ := servers.ParseVersion(t.job.ServerVersion)
	kind, _ = kind.At(version)
	t.kind = kind
	t.circumstances = t.circumstancesOf()
	for _, finding := range kind.Check(t.job.Args, t.job.Env) {
		if finding.Severity == servers.Refuse {
			return fail(servers.ReasonArgumentRefused, "%s (rule %s of %s)", finding.Message, finding.Rule, kind.Title)
		}
		t.result.Warnings = append(t.result.Warnings, finding.Message)
	}
	host, port, release, err := reservePort(&t.job)
	if err != nil {
		return err
	}
	t.releasePort = release
	t.address = address(host, port)
	if err := t.plan(placeholders{port: portText(port), host: host}, kind.LaunchEnvironment(t.job.Timeouts.Loading)); err != nil {
		return err
	}
	t.pages = newPages(t.address, authorization(t.spec))
	if t.dataset, err = load.OpenDataset(t.job.Workload); err != nil {
		return fail(servers.ReasonWorkload, "%v", err)
	}
	return t.lookAtGPUs(ctx)
}

// circumstancesOf says what about the job changes the meaning of log lines.
func (t *trial) circumstancesOf() servers.Circumstances {
	circumstances := servers.Circumstances{servers.NCCLUntouched: true}
	for _, name := range t.job.Prove {
		if _, set := t.job.Env[name]; !set || !strings.HasPrefix(name, "NCCL_") {
			continue
		}
		circumstances[servers.NCCLUntouched] = false
		circumstances[servers.Sets(name)] = true
	}
	if t.kind != nil {
		circumstances[servers.WithDraftModel] = servers.Command{Args: t.job.Args}.Has(t.kind.DraftFlags...)
	}
	return circumstances
}

// transportTuned tells whether the trial sets a variable that decides how GPUs
// reach each other.
func (t *trial) transportTuned() bool {
	return slices.ContainsFunc(t.job.Prove, func(name string) bool {
		variable, known := nccl.Lookup(name)
		_, set := t.job.Env[name]
		return set && known && (variable.Area == nccl.Transport || variable.Area == nccl.Memory)
	})
}

// plan builds what the supervisor is to run.
func (t *trial) plan(fill placeholders, launch map[string]string) error {
	directory, err := t.directory()
	if err != nil {
		return fail(servers.ReasonLaunchFailed, "trial directory: %v", err)
	}
	if err := checkDisk(directory); err != nil {
		return err
	}
	fill.trialDir, fill.program = directory, t.host.program
	env, secrets, err := environment(t.host.environ, &t.job, launch)
	if err != nil {
		return fail(servers.ReasonSecretMissing, "%v", err)
	}
	t.job.Env = fill.fillMap(t.job.Env)
	env = fill.fillMap(env)
	if err := checkConfFiles(t.host.confFiles(env), t.job.Prove, env); err != nil {
		return err
	}
	t.result.LogPath = filepath.Join(directory, "server.log")
	t.spec = supervise.Spec{
		Args: fill.fill(t.job.Args), Env: env, Directory: t.job.Directory,
		LogPath: t.result.LogPath, StopTimeout: t.job.Timeouts.Stopping,
	}
	t.mask = masker(append(secrets, apiKey(t.spec)))
	return nil
}

// directory makes the directory of the trial's files.
func (t *trial) directory() (string, error) {
	if t.job.LogDirectory == "" {
		return os.MkdirTemp("", "nocturne-trial-")
	}
	directory, err := filepath.Abs(filepath.Join(t.job.LogDirectory, fmt.Sprintf("trial-%d.%d", t.job.Trial, t.job.Attempt)))
	if err != nil {
		return "", err
	}
	return directory, os.MkdirAll(directory, 0o700) // servers log prompts and keys
}

// checkDisk makes sure that the log of the launch finds room.
func checkDisk(directory string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(directory, &stat); err != nil {
		return fail(servers.ReasonLaunchFailed, "free space of %s: %v", directory, err)
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < supervise.DefaultLogLimit {
		return fail(servers.ReasonNoSpace, "%s has %d MiB left, the log of a launch may need %d MiB",
			directory, free>>20, supervise.DefaultLogLimit>>20)
	}
	return nil
}

// launch starts the server, once the launch is on record.
func (t *trial) launch(ctx context.Context) error {
	t.enter(runners.Launching)
	ctx, cancel := limited(ctx, t.job.Timeouts.Launching, fail(servers.ReasonLaunchFailed,
		"the server was not started within %s", t.job.Timeouts.Launching))
	defer cancel()
	return t.start(ctx)
}

// start prepares a supervisor, puts the launch on record and starts the program.
func (t *trial) start(ctx context.Context) error {
	process, err := supervise.Prepare(ctx, t.spec)
	if err != nil {
		return orCause(ctx, fail(servers.ReasonLaunchFailed, "%v", err))
	}
	t.process = process
	launch := process.Launch()
	launch.Host, launch.Address = Name, t.address
	if t.forget, err = t.host.record(launch); err != nil {
		return fail(servers.ReasonNotRecorded, "%v", err)
	}
	if err := t.observer.launched(launch); err != nil {
		return fail(servers.ReasonNotRecorded, "%v", err)
	}
	if err := t.releasePort(); err != nil {
		return fail(servers.ReasonLaunchFailed, "release the port: %v", err)
	}
	t.log = newLogWatch(t.kind, t.observer.phase)
	if t.job.Kind == kindCommand {
		t.log.keepStdout()
	}
	t.background.Go(func() { t.log.read(process) }) // ends with the launch
	if err := process.Start(ctx); err != nil {
		if notFound := (*supervise.StartError)(nil); errors.As(err, &notFound) && notFound.Errno != 0 {
			return orCause(ctx, fail(servers.ReasonNotExecutable, "%v", err))
		}
		return orCause(ctx, fail(servers.ReasonLaunchFailed, "%v", err))
	}
	return nil
}

// limited bounds a context; a limit of zero is none. The cause of the end is
// why.
func limited(ctx context.Context, limit time.Duration, why *failure) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, why)
}

// orCause returns why the context ended, if it did, else the error.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// conclude turns what happened into the result.
func (t *trial) conclude(ctx context.Context, err, stopErr error, stage runners.Stage) {
	t.leave()
	t.stage = ""
	r := &t.result
	r.Ended = time.Now()
	total := r.Ended.Sub(r.Started)
	r.Overhead = max(total-r.Loading-r.Warming-r.Measuring-t.serving, 0)
	if t.process != nil {
		r.Warnings = append(r.Warnings, t.process.Warnings()...)
	}
	if t.log != nil {
		r.Warnings = append(r.Warnings, t.log.remarks(stage, t.circumstances)...)
		t.takeFacts(t.log.known())
	}
	for i, warning := range r.Warnings {
		r.Warnings[i] = t.mask.Replace(warning)
	}
	switch {
	case stopErr != nil:
		t.settle(t.explain(stopErr, runners.Stopping), runners.Stopping)
	case ctx.Err() != nil && err != nil:
		r.Outcome = runners.Interrupted
	case errors.Is(err, errPruned):
		r.Outcome = runners.Pruned
	case err != nil:
		t.settle(t.explain(err, stage), stage)
	default:
		r.Outcome = runners.Complete
		t.checkTags(stage)
	}
}

// settle records a failure.
func (t *trial) settle(f *failure, stage runners.Stage) {
	t.result.Failure, t.result.Outcome = f.record(stage)
	t.result.Failure.Message = t.mask.Replace(t.result.Failure.Message)
}

// checkTags makes a complete trial invalid when the log says that the server
// ran without something that was asked of it.
func (t *trial) checkTags(stage runners.Stage) {
	if t.log == nil {
		return
	}
	if tagged, ok := t.log.tagged(stage, t.circumstances); ok {
		f := &failure{reason: tagged.Reason, cause: tagged.Cause, message: "the server went on, but said: " + excerpt(tagged.Line)}
		t.settle(f, stage)
		t.result.Outcome = runners.Invalid
	}
}

// takeFacts keeps what the log says about the stack and what runs.
func (t *trial) takeFacts(facts map[string]string) {
	stack := &t.result.Stack
	for name, field := range map[string]*string{"nccl": &stack.NCCL, "cuda": &stack.CUDA, "server_version": &stack.ServerVersion} {
		if *field == "" {
			*field = facts[name]
		}
		delete(facts, name)
	}
	// What a page of the server says counts more than what its log says.
	pages := t.result.Effective
	t.result.Effective = facts
	maps.Copy(t.result.Effective, pages)
}
