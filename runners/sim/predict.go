package sim

import (
	"errors"
	"strings"
	"time"
)

// Outcome is how a launch ends.
type Outcome string

// Outcomes of a launch.
const (
	Healthy Outcome = "healthy"
	Crash   Outcome = "crash" // at the start, or under the first load
	Hang    Outcome = "hang"  // in the first collective
	Wrong   Outcome = "wrong" // serves, fast, with wrong answers
)

// The workload that published figures are taken to be measured with.
const (
	referencePrompt = 64
	referenceOutput = 512
)

// Workload is a closed loop of equal requests.
type Workload struct {
	PromptTokens, OutputTokens, Concurrency int
}

// Prediction is what a launch does when there is no noise.
type Prediction struct {
	Outcome Outcome
	// Reason says what goes wrong, in the words of the log; empty when healthy.
	Reason string
	// OutputThroughput is the rate in tokens/s at concurrency 1 for prompts of 64
	// tokens and answers of 512. It is 0 unless the outcome is Healthy or Wrong.
	OutputThroughput float64
	// AcceptanceLength is the mean number of tokens a cycle yields; 1 without
	// speculation.
	AcceptanceLength float64
	// AcceptanceRate is the share of drafted positions that are accepted.
	AcceptanceRate float64
	// Step is a whole decode cycle, Verify the target model's pass in it, both for
	// one sequence.
	Step, Verify time.Duration
	// FirstToken is the time of a prompt of 64 tokens to its first token.
	FirstToken time.Duration
	Load       time.Duration // until ready, unscaled
	Memory     Memory

	performance *performance
}

// Throughput returns the output rate in tokens/s at a concurrency, for the
// reference prompts and answers.
func (p Prediction) Throughput(concurrency int) float64 {
	return p.ThroughputOf(Workload{referencePrompt, referenceOutput, concurrency})
}

// ThroughputOf returns the output rate in tokens/s of a workload; 0 when the
// launch serves nothing.
func (p Prediction) ThroughputOf(w Workload) float64 {
	if p.performance == nil || p.Outcome == Crash || p.Outcome == Hang {
		return 0
	}
	return p.performance.throughput(w)
}

// Predict returns what `nocturne sim` does with these arguments and this
// environment, without noise and without faults that depend on requests. The
// error is a *UsageError for arguments that the server refuses.
func Predict(args []string, env map[string]string) (Prediction, error) {
	o, err := parseOptions(args)
	if err != nil {
		return Prediction{}, err
	}
	l := plan(o, env)
	p := Prediction{Outcome: l.outcome, Reason: l.reason, Load: l.loadTime(), performance: l.performance}
	if l.performance != nil {
		p.Memory = l.performance.memory
		p.AcceptanceLength = l.performance.acceptanceLength()
		if n := len(l.performance.accept); n > 0 {
			p.AcceptanceRate = (p.AcceptanceLength - 1) / float64(n)
		}
		p.Step = milliseconds(l.performance.stepTime(1))
		p.Verify = milliseconds(l.performance.verifyTime(1))
		p.FirstToken = milliseconds(l.performance.prefillTime(referencePrompt, 0))
	}
	p.OutputThroughput = p.Throughput(1)
	return p, nil
}

// launch is what follows from arguments and environment before anything runs.
type launch struct {
	options     *options
	workerEnv   map[string]string // as the workers see it
	comm        *communicator
	performance *performance
	outcome     Outcome
	reason      string
	// stage is where a crash or a hang happens.
	stage failureStage
}

// failureStage is when a launch goes wrong.
type failureStage int

const (
	failsNever       failureStage = iota
	failsAtArguments              // over its own arguments
	failsAtInit                   // in the first collective
	failsAtLoad                   // before the KV cache
	failsAtGraphs
	failsAtRequests
)

// plan decides how a launch goes.
func plan(o *options, env map[string]string) *launch {
	l := &launch{options: o, outcome: Healthy}
	l.workerEnv = workerEnvironment(o, env)
	if o.refusal != "" {
		l.fail(Crash, failsAtArguments, o.refusal)
		return l
	}
	var err error
	l.comm, err = newCommunicator(l.workerEnv, o.nccl, o.machine, o.ranks())
	var memory *errMemory
	switch {
	case o.ranks() < 2:
	case isHang(err):
		l.fail(Hang, failsAtInit, err.Error())
		return l
	case errors.As(err, &memory):
		l.fail(Crash, failsAtInit, outOfMemoryInNCCL)
		return l
	case err != nil:
		l.fail(Crash, failsAtInit, err.Error())
		return l
	}
	l.performance = newPerformance(o, l.comm)
	if speed, ok := o.faults.number(faultWrongAnswers); ok {
		l.performance.speed /= speed
	}
	switch {
	case l.performance.noRoom():
		l.fail(Crash, failsAtLoad, "Not enough memory. Please try to increase --mem-fraction-static.")
	case l.performance.failsAtCapture():
		l.fail(Crash, failsAtGraphs, "Capture cuda graph failed: CUDA out of memory.")
	case l.performance.failsUnderLoad(1):
		l.fail(Crash, failsAtRequests, "CUDA out of memory.")
	case l.comm.unsafe && !l.performance.bypass || o.faults.has(faultWrongAnswers):
		l.outcome, l.reason = Wrong, "answers differ from those of a healthy server"
	}
	return l
}

// outOfMemoryInNCCL is the reason of a launch whose buffers cannot be allocated.
const outOfMemoryInNCCL = "Cuda failure 2 'out of memory'"

// identity digests what makes two launches the same configuration: not ports,
// nor logging, nor the simulation's own settings.
func (l *launch) identity() uint64 {
	var parts []string
	for _, f := range serverFlags {
		switch name := f.destination(); name {
		case "host", "port", "nccl_port", "dist_init_addr", "log_level":
		default:
			parts = append(parts, name, l.options.values[name])
		}
	}
	for _, pair := range environmentList(l.workerEnv) {
		if strings.HasPrefix(pair, "NCCL_") && !strings.HasPrefix(pair, "NCCL_DEBUG") {
			parts = append(parts, pair)
		}
	}
	return hashOf(parts...)
}

func (l *launch) fail(outcome Outcome, stage failureStage, reason string) {
	l.outcome, l.stage, l.reason = outcome, stage, reason
}

// Load times in unscaled time.
const (
	draftLoad    = 40 * time.Second
	perGraph     = 350 * time.Millisecond // each captured batch size
	capturedStep = 8                      // batch sizes lie this far apart
)

// loadTime is the time until the server is ready.
func (l *launch) loadTime() time.Duration {
	total := l.options.loadTime
	if l.options.speculation.steps > 0 {
		total += draftLoad
	}
	total += time.Duration(l.options.graphBatch()/capturedStep) * perGraph
	if factor, ok := l.options.faults.number(faultSlowLoad); ok {
		total = time.Duration(float64(total) * factor)
	}
	return total
}
