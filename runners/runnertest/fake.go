package runnertest

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// fake is a server with every fault that a test wants, at an exact moment. Its
// times count from its start.
type fake struct {
	port                                int
	portAfter, modelsAfter, healthAfter time.Duration
	firstCompletion                     time.Duration
	dieAfter                            time.Duration
	exit                                int
	model, host, listen                 string
	say, sayRaw, sayEnv, sayLater       lines
	every                               time.Duration
	workers                             int
	scrub, setsid, ignoreTerm, spin     bool
	noHealth, noUsage, short, refuse    bool
	cached                              int
	dieOnRequest                        int
	lastWords                           string
	hangOnRequest, failFrom             int
	maxOutput                           int
	workerName, infoPage                string
	clobber, readOn                     bool

	started  time.Time
	requests atomic.Int64
}

// lines is a flag that may be given several times.
type lines []string

func (l *lines) String() string { return strings.Join(*l, "\n") }

func (l *lines) Set(line string) error {
	*l = append(*l, line)
	return nil
}

// Dispatch runs what a test binary was started for, when it was started as one of
// the fakes, and returns its exit status. A TestMain calls it first.
func Dispatch(args []string) (status int, ok bool) {
	if len(args) < 2 {
		return 0, false
	}
	run, ok := map[string]func([]string) int{
		"fake": fakeServer, "fake-worker": fakeWorker, "fake-command": fakeCommand,
	}[args[1]]
	if !ok {
		return 0, false
	}
	return run(args[2:]), true
}

func fakeServer(args []string) int {
	f := &fake{started: time.Now()}
	flags := flag.NewFlagSet("fake", flag.ExitOnError)
	flags.IntVar(&f.port, "port", 0, "")
	flags.DurationVar(&f.portAfter, "port-after", 0, "")
	flags.DurationVar(&f.modelsAfter, "models-after", 0, "")
	flags.DurationVar(&f.healthAfter, "health-after", 0, "")
	flags.DurationVar(&f.firstCompletion, "first-completion", 0, "")
	flags.DurationVar(&f.dieAfter, "die-after", 0, "")
	flags.IntVar(&f.exit, "exit", 1, "")
	flags.StringVar(&f.model, "model", "tiny", "")
	flags.StringVar(&f.host, "host", "127.0.0.1", "")
	flags.StringVar(&f.listen, "listen", "", "where it really listens; empty: --host")
	flags.Var(&f.say, "say", "line printed at start")
	flags.Var(&f.sayRaw, "say-raw", "line printed at start, with escapes as in Go")
	flags.Var(&f.sayEnv, "say-env", "variable printed at start")
	flags.Var(&f.sayLater, "say-later", "line printed every -every, in turn, the last one over and over")
	flags.DurationVar(&f.every, "every", 0, "")
	flags.IntVar(&f.workers, "workers", 0, "")
	flags.BoolVar(&f.scrub, "scrub", false, "workers get an empty environment")
	flags.BoolVar(&f.setsid, "setsid", false, "workers in sessions of their own")
	flags.BoolVar(&f.ignoreTerm, "ignore-term", false, "")
	flags.BoolVar(&f.spin, "spin", false, "burn CPU")
	flags.BoolVar(&f.noHealth, "no-health", false, "without a health page")
	flags.BoolVar(&f.noUsage, "no-usage", false, "")
	flags.BoolVar(&f.short, "short", false, "three quarters of the tokens asked for")
	flags.BoolVar(&f.refuse, "refuse", false, "answer completions with status 500")
	flags.IntVar(&f.cached, "cached", 0, "percent of prompt tokens said to come from the cache")
	flags.IntVar(&f.dieOnRequest, "die-on-request", 0, "")
	flags.IntVar(&f.hangOnRequest, "hang-on-request", 0, "")
	flags.IntVar(&f.failFrom, "fail-from", 0, "")
	flags.StringVar(&f.lastWords, "last-words", "", "")
	flags.IntVar(&f.maxOutput, "max-output", 0, "answer requests for more tokens with status 400")
	flags.StringVar(&f.workerName, "worker-name", "fake-worker", "first word of the command line of workers")
	flags.BoolVar(&f.clobber, "clobber", false, "workers write over their environment, as with a title")
	flags.StringVar(&f.infoPage, "info", "", "body of the page on which it tells of itself")
	flags.BoolVar(&f.readOn, "read", false, "read a file over and over")
	_ = flags.Parse(args) // ExitOnError
	return f.run()
}

func (f *fake) run() int {
	if f.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Fprintf(os.Stderr, "ready at %d\n", f.started.Add(f.healthAfter).UnixNano())
	for _, line := range f.sayRaw {
		if raw, err := strconv.Unquote(`"` + line + `"`); err == nil {
			fmt.Fprintln(os.Stderr, raw)
		}
	}
	for _, line := range f.say {
		fmt.Fprintln(os.Stderr, line)
	}
	for _, name := range f.sayEnv {
		fmt.Fprintln(os.Stderr, name+"="+os.Getenv(name))
	}
	for range f.workers {
		if err := f.fork(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if f.every > 0 {
		go f.chatter()
	}
	if f.spin {
		go func() {
			for n := 0; ; n++ {
				_ = n
			}
		}()
	}
	if f.readOn {
		go func() {
			for {
				_, _ = os.ReadFile("/proc/self/exe")
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	if f.dieAfter > 0 {
		go func() {
			time.Sleep(f.dieAfter)
			f.die()
		}()
	}
	f.until(f.portAfter)
	if f.listen == "" {
		f.listen = f.host
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(f.listen, fmt.Sprint(f.port)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	mux := http.NewServeMux()
	if !f.noHealth {
		mux.HandleFunc("GET /health", f.health)
	}
	mux.HandleFunc("GET /v1/models", f.models)
	mux.HandleFunc("POST /v1/completions", f.completions)
	mux.HandleFunc("POST /flush_cache", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /get_server_info", f.info)
	fmt.Fprintln(os.Stderr, http.Serve(listener, mux))
	return 1
}

func (f *fake) until(moment time.Duration) { time.Sleep(moment - time.Since(f.started)) }

func (f *fake) die() {
	fmt.Fprintf(os.Stderr, "dead at %d\n", time.Now().UnixNano())
	if f.lastWords != "" {
		fmt.Fprintln(os.Stderr, f.lastWords)
	}
	if f.exit < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.Signal(-f.exit))
		select {}
	}
	os.Exit(f.exit)
}

func (f *fake) chatter() {
	for i := 0; ; i++ {
		time.Sleep(f.every)
		fmt.Fprintln(os.Stderr, f.sayLater[min(i, len(f.sayLater)-1)])
	}
}

func (f *fake) fork() error {
	worker := exec.Command("/proc/self/exe", "fake-worker", fmt.Sprint(f.ignoreTerm), fmt.Sprint(f.clobber))
	worker.Args[0] = f.workerName
	if f.scrub {
		worker.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	worker.SysProcAttr = &syscall.SysProcAttr{Setsid: f.setsid}
	ready, err := worker.StdoutPipe()
	if err != nil {
		return err
	}
	if err := worker.Start(); err != nil {
		return err
	}
	_, err = ready.Read(make([]byte, 1))
	return err
}

func fakeWorker(args []string) int {
	if args[0] == "true" {
		signal.Ignore(syscall.SIGTERM)
	}
	if args[1] == "true" {
		if err := clobberEnvironment(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Print("r")
	time.Sleep(time.Hour) // a select without cases is a deadlock to the runtime
	return 0
}

// clobberEnvironment writes zero bytes over the environment that /proc shows, as
// py-setproctitle does to make room for a title.
func clobberEnvironment() error {
	raw, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	// Field 50, env_start (proc(5)); the second may hold blanks.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	start, err := strconv.ParseInt(fields[50-3], 10, 64)
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	_, err = memory.WriteAt(make([]byte, len(raw)), start)
	return err
}

func (f *fake) health(w http.ResponseWriter, _ *http.Request) {
	if time.Since(f.started) < f.healthAfter {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (f *fake) models(w http.ResponseWriter, _ *http.Request) {
	if time.Since(f.started) < f.modelsAfter {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, `{"object":"list","data":[{"id":%q}]}`, f.model)
}

func (f *fake) info(w http.ResponseWriter, _ *http.Request) {
	if f.infoPage != "" {
		fmt.Fprint(w, f.infoPage)
		return
	}
	fmt.Fprint(w, `{"version":"0.5.18","internal_states":[{"max_running_requests":48,"avg_spec_accept_length":2.5}],
		"simulated":{"gpu":"Test GPU","count":8,"driver":"580.1","cuda":"13.0","nccl":"2.28.9"}}`)
}

func (f *fake) completions(w http.ResponseWriter, r *http.Request) {
	number := f.requests.Add(1)
	if number == 1 {
		time.Sleep(f.firstCompletion)
	}
	if int(number) == f.dieOnRequest {
		f.die()
	}
	if int(number) == f.hangOnRequest {
		<-r.Context().Done()
		return
	}
	var request struct {
		MaxTokens int    `json:"max_tokens"`
		Prompt    string `json:"prompt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || f.refuse || f.failFrom > 0 && int(number) >= f.failFrom {
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusInternalServerError)
		return
	}
	if f.maxOutput > 0 && request.MaxTokens > f.maxOutput {
		http.Error(w, `{"error":{"message":"the context has no room for so many tokens"}}`, http.StatusBadRequest)
		return
	}
	tokens := request.MaxTokens
	if f.short {
		tokens = tokens * 3 / 4
	}
	flusher := w.(http.Flusher)
	for range tokens {
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"x \"}]}\n\n")
		flusher.Flush()
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n")
	if !f.noUsage {
		const prompt = 100
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n",
			prompt, tokens, prompt*f.cached/100)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// fakeCommand prints its arguments in turn and exits with the status in front:
// "fake-command 0 line line ...". A line "sleep:5s" sleeps, "env:NAME" prints a
// variable, "err:text" goes to stderr.
func fakeCommand(args []string) int {
	var status int
	_, _ = fmt.Sscan(args[0], &status)
	for _, arg := range args[1:] {
		word, rest, _ := strings.Cut(arg, ":")
		switch word {
		case "sleep":
			d, _ := time.ParseDuration(rest)
			time.Sleep(d)
		case "env":
			fmt.Println(os.Getenv(rest))
		case "err":
			fmt.Fprintln(os.Stderr, rest)
		default:
			fmt.Println(arg)
		}
	}
	return status
}
