package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault names, as --sim-faults takes them.
const (
	faultCrashAtStart   = "crash-at-start"
	faultExitAfter      = "exit-after"
	faultLostLaunch     = "lost-launch"
	faultHangAtInit     = "hang-at-init"
	faultSlowLoad       = "slow-load"
	faultReadyEarly     = "ready-early"
	faultScrubEnv       = "scrub-env"
	faultEscape         = "escape"
	faultEndlessStop    = "endless-stop"
	faultBindIPv6       = "bind-ipv6"
	faultWrongModel     = "wrong-model"
	faultBypass         = "bypass-nccl"
	faultWrongAnswers   = "wrong-answers"
	faultAcceptance     = "acceptance"
	faultErrorInStream  = "error-in-stream"
	faultNoUsage        = "no-usage"
	faultShortOutput    = "short-output"
	faultHTTP500        = "http-500"
	faultPrefixCache    = "prefix-cache"
	faultThermal        = "thermal"
	faultSteady         = "steady"
	faultCrashUnderLoad = "crash-under-load"
	faultHangUnderLoad  = "hang-under-load"
	faultDeadWorker     = "dead-worker"
	faultLogFlood       = "log-flood"
)

// argumentKind is what a fault takes after its equals sign.
type argumentKind string

const (
	takesNothing  argumentKind = ""
	takesNumber   argumentKind = "number"
	takesShare    argumentKind = "share"    // 0 to 1
	takesDuration argumentKind = "duration" // unscaled
	takesText     argumentKind = "text"
	takesSteady   argumentKind = "first/gap/tokens"
)

// fault is one way to misbehave that can be switched on.
type fault struct {
	name     string
	argument argumentKind
	standard string // the argument when none is given
	summary  string
}

// faultTable lists every fault; docs/simulator.md repeats it.
var faultTable = []fault{
	{faultCrashAtStart, takesText, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
		"dies while weights load, with this line as the last of a traceback"},
	{faultExitAfter, takesDuration, "40s", "exits with status 1 and without a word after that time"},
	{faultLostLaunch, takesNumber, "1", "only the launch with this number (by --sim-state) dies under load, with a remote NCCL error"},
	{faultHangAtInit, takesNothing, "", "stops for ever in the first collective, processes alive"},
	{faultSlowLoad, takesNumber, "1.6", "loads so many times slower, with a progress line every minute"},
	{faultReadyEarly, takesNothing, "", "port open at 2 s, model list at 3 s, health after 20 s, first completion 9 s, later ones fast"},
	{faultScrubEnv, takesNothing, "", "workers start with an environment without NCCL_, SGLANG_ and CUDA_ variables, and behave so"},
	{faultEscape, takesNumber, "2", "so many children in sessions of their own that ignore the terminate signal and outlive the server"},
	{faultEndlessStop, takesNothing, "", "the server ignores the terminate signal"},
	{faultBindIPv6, takesNothing, "", "listens on ::1 only, whatever --host says"},
	{faultWrongModel, takesText, "some/other-model", "reports this model instead of its own"},
	{faultBypass, takesNothing, "", "all-reduces bypass NCCL, so that its variables change nothing (as --sim-bypass-nccl)"},
	{faultWrongAnswers, takesNumber, "7", "serves so many times faster, with answers that differ from those of a healthy server"},
	{faultAcceptance, takesShare, "0.19", "drafted tokens are accepted at this rate, as with a head wired to the wrong layers"},
	{faultErrorInStream, takesShare, "0.1", "this share of streams ends in an error object under HTTP 200"},
	{faultNoUsage, takesNothing, "", "answers carry no usage"},
	{faultShortOutput, takesShare, "0.711", "answers stop at this share of the length asked for"},
	{faultHTTP500, takesShare, "0.4", "this share of requests fails with HTTP 500"},
	{faultPrefixCache, takesShare, "0.93", "this share of every prompt is found in the prefix cache"},
	{faultThermal, takesShare, "0.15", "slows down towards this loss within the first minutes of serving"},
	{faultSteady, takesSteady, "50ms/8ms/4", "first chunk after the first time, then chunks with that gap and that many tokens"},
	{faultCrashUnderLoad, takesNumber, "3", "the scheduler dies after so many requests"},
	{faultHangUnderLoad, takesNumber, "3", "no token leaves after so many requests, while /health stays 200"},
	{faultDeadWorker, takesNumber, "3", "a worker is killed after so many requests"},
	{faultLogFlood, takesNumber, "2000", "so many log lines a second"},
}

// faults maps the name of each fault that is on to its argument.
type faults map[string]string

// parseFaults reads "name,name=argument,...".
func parseFaults(text string) (faults, error) {
	on := faults{}
	for _, entry := range tokens(text, ",") {
		name, argument, given := strings.Cut(entry, "=")
		at := slices.IndexFunc(faultTable, func(f fault) bool { return f.name == name })
		if at < 0 {
			var known []string
			for _, f := range faultTable {
				known = append(known, f.name)
			}
			return nil, fmt.Errorf("--sim-faults: %q is not a fault: expected some of %s", name, strings.Join(known, ", "))
		}
		entry := faultTable[at]
		if !given {
			argument = entry.standard
		}
		if err := entry.argument.check(argument, given); err != nil {
			return nil, fmt.Errorf("--sim-faults: %s: %w", name, err)
		}
		on[name] = argument
	}
	return on, nil
}

func (k argumentKind) check(text string, given bool) error {
	var err error
	switch k {
	case takesNothing:
		if given {
			err = fmt.Errorf("takes no argument, got %q", text)
		}
	case takesNumber, takesShare:
		var value float64
		if value, err = strconv.ParseFloat(text, 64); err != nil || value < 0 || k == takesShare && value > 1 {
			err = fmt.Errorf("%q is not a %s", text, k)
		}
	case takesDuration:
		_, err = time.ParseDuration(text)
	case takesSteady:
		_, err = parseSteady(text)
	}
	return err
}

func (f faults) has(name string) bool {
	_, on := f[name]
	return on
}

// number returns the argument of a fault that takes a number or a share.
func (f faults) number(name string) (float64, bool) {
	text, on := f[name]
	if !on {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil
}

func (f faults) duration(name string) (time.Duration, bool) {
	text, on := f[name]
	if !on {
		return 0, false
	}
	value, err := time.ParseDuration(text)
	return value, err == nil
}

// steady is serving without a model: fixed times and tokens a chunk.
type steady struct {
	first, gap time.Duration
	tokens     int
}

func parseSteady(text string) (steady, error) {
	var s steady
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return s, fmt.Errorf("%q is not of the form 50ms/8ms/4", text)
	}
	var err error
	if s.first, err = time.ParseDuration(parts[0]); err != nil {
		return s, err
	}
	if s.gap, err = time.ParseDuration(parts[1]); err != nil {
		return s, err
	}
	if s.tokens, err = strconv.Atoi(parts[2]); err != nil || s.tokens < 1 {
		return s, fmt.Errorf("%q is not a number of tokens", parts[2])
	}
	return s, nil
}
