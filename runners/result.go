package runners

import "time"

// Metrics are the numbers of a round or of a load point, by the names that
// `vllm bench serve` uses: output_throughput (tokens/s), mean_ttft_ms,
// p99_tpot_ms ... A metric that could not be measured is absent; values are
// finite.
type Metrics map[string]float64

// Outcome is how a job ended.
type Outcome string

// Outcomes of a job.
const (
	Complete    Outcome = "complete"    // measured
	Pruned      Outcome = "pruned"      // stopped early by the observer
	Failed      Outcome = "failed"      // see Failure
	Invalid     Outcome = "invalid"     // measured, but must not count; see Failure
	Interrupted Outcome = "interrupted" // the context was cancelled
)

// Class says whose fault a failure is, which decides what follows from it.
type Class string

// Failure classes.
const (
	// Infeasible: the configuration's fault. Learned, never retried.
	ClassInfeasible Class = "infeasible"
	// Transient: bad luck. Retried with a bound, taught to nobody.
	ClassTransient Class = "transient"
	// Environment: nothing would work on this host. The campaign pauses.
	ClassEnvironment Class = "environment"
)

// Failure is why a job has no number that counts.
type Failure struct {
	Class Class `json:"class"`
	// Reason is a code from the list in docs/reference: "out_of_memory",
	// "exited_early", "env_not_applied" ...
	Reason string `json:"reason"`
	// Message explains it to a person, with the log lines that show it.
	Message string `json:"message"`
	Stage   Stage  `json:"stage,omitempty"`
	// Retries is how often the trial is worth another attempt after failures of
	// this reason, and Then the class that the failure has once they are used up:
	// a crash is bad luck once and the configuration's fault the second time.
	Retries int   `json:"retries,omitempty"`
	Then    Class `json:"then,omitempty"`
}

// Result is what came out of a job.
type Result struct {
	Outcome Outcome
	Failure *Failure
	Points  []PointResult
	Proof   []Proof
	// Stack holds what the running server told of itself; zero fields were not
	// readable.
	Stack Stack
	// Simulated is set when the server declared itself a simulation.
	Simulated *Simulated
	// Effective holds read-back facts worth keeping: acceptance, arguments.
	Effective map[string]string
	// Warnings are things that people should know and that changed nothing.
	Warnings []string

	Started, Ended time.Time
	// Durations by the monotonic clock.
	Launching, Loading, Verifying, Warming, Measuring, Stopping time.Duration
	// Overhead is the tuner's own time: everything but the server's start, the
	// warm-up and the measuring.
	Overhead time.Duration
	LogPath  string
}

// PointResult is what was measured at one load point.
type PointResult struct {
	Concurrency int `json:"concurrency"`
	// RequestRate is that of an open loop, requests/s.
	RequestRate float64 `json:"request_rate,omitempty"`
	// Metrics over all rounds: rates and latencies of the pooled requests.
	Metrics Metrics       `json:"metrics"`
	Rounds  []RoundResult `json:"rounds"`
	// Histograms of latencies in microseconds by metric (ttft, tpot, itl, e2el),
	// encoded by HdrHistogram (V2 compressed, base64), so that they can be
	// merged later.
	Histograms map[string]string `json:"histograms,omitempty"`
}

// RoundResult is what one round yielded.
type RoundResult struct {
	Metrics Metrics `json:"metrics"`
}

// ProofStatus says whether a setting was seen to be in force.
type ProofStatus string

// Proof states.
const (
	ProofApplied  ProofStatus = "applied"  // read back from every process that could be read
	ProofMismatch ProofStatus = "mismatch" // some process has another value
	ProofUnknown  ProofStatus = "unknown"  // could not be read; not the same as applied
)

// Evidence is how near to the effect a setting was seen.
type Evidence string

// Evidence, from the farthest to the nearest.
const (
	EvidenceRequested   Evidence = "requested"   // it was asked for, and seen nowhere
	EvidenceEnvironment Evidence = "environment" // in the environment of the processes that compute
	EvidenceServer      Evidence = "server"      // the running server tells it, or shows its effect
	EvidenceNCCL        Evidence = "nccl_log"    // NCCL's own log says that it was read
)

// Proof is what was asked of one setting and what was seen of it.
type Proof struct {
	Knob      string      `json:"knob"`
	Requested *string     `json:"requested"` // null: absent
	Observed  *string     `json:"observed"`  // null: absent or not readable, see Status
	Status    ProofStatus `json:"status"`
	// Evidence is where Observed was seen; empty in records of older versions.
	Evidence Evidence `json:"evidence,omitempty"`
	Detail   string   `json:"detail,omitempty"`
}
