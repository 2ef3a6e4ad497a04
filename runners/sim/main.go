package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitKilled is what a shell reports for SIGKILL, with which SGLang ends itself
	// after a fatal error.
	exitKilled = 137
)

// Main is the simulated server, or one of its workers. It returns the exit status
// when the server was told to stop (by the context or the terminate signal) or
// died. args are the arguments after "sim"; environ is the whole environment, as
// os.Environ returns it.
//
// Workers are started by executing the running program again with "sim
// --worker" as its first arguments: that program must call Main for them.
func Main(ctx context.Context, args []string, environ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == workerFlag {
		return worker(args[1:])
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(stdout, help())
		return exitOK
	}
	o, err := parseOptions(args)
	var usage *UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "usage: launch_server.py [-h] --model-path MODEL_PATH [--tp-size TP_SIZE] ...\nlaunch_server.py: error: %s\n", usage.Message)
		return exitUsage
	}
	p := newProcess(o, environmentMap(environ), stdout, stderr)
	return p.run(ctx)
}

// process is one life of the server.
type process struct {
	options *options
	launch  *launch
	log     *logger
	workers *workers
	server  *server
	engine  *engine
	begin   time.Time
	host    string // as NCCL prints it
	// ncclFiles are the logs that NCCL_DEBUG_FILE asked for.
	ncclFiles map[string]*os.File
	// loadFactor is the noise of the load time.
	loadFactor float64

	death chan failure // capacity 1: why the server cannot go on
	wait  sync.WaitGroup
}

func newProcess(o *options, env map[string]string, stdout, stderr io.Writer) *process {
	p := &process{options: o, begin: time.Now(), death: make(chan failure, 1), ncclFiles: map[string]*os.File{}, host: "localhost"}
	if name, err := os.Hostname(); err == nil {
		p.host = name
	}
	p.launch = plan(o, env)
	p.log = &logger{stdout: stdout, stderr: stderr, interval: o.number("decode_log_interval"), scale: o.servingScale}
	return p
}

// run starts everything and waits for an end.
func (p *process) run(ctx context.Context) int {
	ctx, cancel := p.stopContext(ctx)
	defer cancel()
	counter, err := countLaunch(p.options.stateFile)
	if err != nil {
		p.log.raw("%v", err)
		return exitFailed
	}
	p.announce()
	if p.launch.stage == failsAtArguments {
		p.traceback(p.launch.reason)
		return exitFailed
	}
	if p.workers, err = startWorkers(p.options.workers, p.launch.workerEnv); err != nil {
		p.log.raw("%v", err)
		return exitFailed
	}
	defer p.closeLogs()
	defer p.wait.Wait()
	defer p.workers.stop()
	defer cancel()
	if err := p.escape(); err != nil {
		p.log.raw("%v", err)
		return exitFailed
	}
	p.workers.watch(ctx, &p.wait, p.workerDied)
	noise := newNoise(p.options, counter, p.launch.identity())
	p.loadFactor = noise.load()
	if p.launch.performance != nil {
		p.engine = newEngine(p.launch.performance, noise, p.log, p.die)
		p.engine.wrong, p.engine.launch = p.launch.outcome == Wrong, counter+1
		p.server = newServer(p.launch, p.engine, p.log)
		defer p.server.http.Close()
	}
	return p.serve(ctx)
}

// escape starts the children of the fault of that name.
func (p *process) escape() error {
	count, on := p.options.faults.number(faultEscape)
	if !on {
		return nil
	}
	return p.workers.escape(int(count), p.launch.workerEnv)
}

func (p *process) closeLogs() {
	for _, file := range p.ncclFiles {
		_ = file.Close() // a log; nothing was promised
	}
}

// stopContext ends with the caller's context or the terminate signal, unless the
// fault "endless-stop" is on.
func (p *process) stopContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.options.faults.has(faultEndlessStop) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		return context.WithCancel(context.WithoutCancel(ctx))
	}
	return signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
}

// serve loads, serves, and returns the exit status.
func (p *process) serve(ctx context.Context) int {
	if flood, on := p.options.faults.number(faultLogFlood); on {
		p.wait.Go(func() { p.flood(ctx, flood) })
	}
	loaded := make(chan int, 1)
	p.wait.Go(func() { loaded <- p.load(ctx) })
	for {
		select {
		case status := <-loaded:
			if status != stillRunning {
				return status
			}
			loaded = nil
		case why := <-p.death:
			return p.collapse(why)
		case <-ctx.Done():
			return p.shutdown()
		}
	}
}

// shutdownTime is how long requests in flight may take after a terminate signal.
const shutdownTime = 100 * time.Millisecond

func (p *process) shutdown() int {
	p.log.server("Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
	if p.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if p.server.http.Shutdown(ctx) != nil {
			_ = p.server.http.Close()
		}
	}
	return exitOK
}

// die is called once a scheduler cannot go on.
func (p *process) die(why failure) {
	if why.worker >= 0 {
		p.workers.kill(why.worker)
		return
	}
	select {
	case p.death <- why:
	default:
	}
}

func (p *process) workerDied(rank, pid int, status string) {
	p.die(failure{worker: -1, lines: []string{
		fmt.Sprintf("Subprocess scheduler_%d (pid=%d) crashed with exit code %s. Triggering SIGQUIT for cleanup...", rank, pid, status),
	}})
}

// collapse ends the server as a fatal error in a scheduler does.
func (p *process) collapse(why failure) int {
	for i, line := range why.lines {
		if i == 0 {
			p.log.rank(0, "%s", line)
		} else {
			p.log.raw("%s", line)
		}
	}
	p.log.server("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
	return exitKilled
}

// traceback prints an error as Python does.
func (p *process) traceback(text string) {
	p.log.raw("Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/sglang/launch_server.py\", line 24, in <module>\n    run_server(server_args)\n%s", text)
}

// announce prints the arguments and what the server makes of them.
func (p *process) announce() {
	var fields []string
	for _, f := range serverFlags {
		value := p.options.values[f.destination()]
		switch shown := f.typed(value).(type) {
		case string:
			value = quote(shown)
		case bool:
			value = strings.ToUpper(fmt.Sprint(shown)[:1]) + fmt.Sprint(shown)[1:]
		case nil:
			value = "None"
		}
		fields = append(fields, f.destination()+"="+value)
	}
	for _, note := range p.options.notes {
		p.log.server("%s", note)
	}
	p.log.server("server_args=ServerArgs(%s)", strings.Join(fields, ", "))
}

func (p *process) flood(ctx context.Context, perSecond float64) {
	const every = 20 * time.Millisecond
	line := "DEBUG: " + strings.Repeat("x", 120)
	for sleep(ctx, every) {
		for range int(max(1, perSecond*every.Seconds())) {
			p.log.rank(0, "%s", line)
		}
	}
}

// open starts HTTP.
func (p *process) open(ctx context.Context) error {
	if err := p.server.listen(ctx); err != nil {
		return err
	}
	p.wait.Go(func() { p.engine.run(ctx) })
	p.wait.Go(func() {
		if err := p.server.http.Serve(p.server.listener); !errors.Is(err, http.ErrServerClosed) {
			p.die(failure{worker: -1, lines: []string{"HTTP server failed: " + err.Error()}})
		}
	})
	return nil
}

func help() string {
	var b strings.Builder
	b.WriteString("A simulated SGLang server on a simulated machine; docs/simulator.md describes it.\n\nServer arguments:\n")
	for _, f := range serverFlags {
		fmt.Fprintf(&b, "  %s\n", strings.Join(f.names, ", "))
	}
	b.WriteString("\nSimulation:\n")
	for _, f := range simulationFlags {
		fmt.Fprintf(&b, "  %-22s default %s\n", f.names[0], f.standard)
	}
	b.WriteString("\nFaults, for --sim-faults name[=argument],...:\n")
	for _, f := range faultTable {
		fmt.Fprintf(&b, "  %-18s %s\n", f.name, f.summary)
	}
	return b.String()
}
