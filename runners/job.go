package runners

import "time"

// Job is one trial for a Host: a launch, what to expect of it, and a workload.
type Job struct {
	CampaignID string
	Campaign   string
	TrialID    string
	Trial      int
	Attempt    int

	// Kind is the server kind (sglang, vllm, trtllm, llamacpp, custom) or
	// "command" for a job without a server.
	Kind string
	// ServerVersion is the installed version where it is known, by which the
	// differences between versions of the kind are chosen before the server tells.
	ServerVersion string
	// Args is the argument vector. The placeholders ${port}, ${host},
	// ${trial_dir} and ${nocturne} (the tuner's own program) are filled by the
	// host; one argument stays one argument. A server that names no ${port} is
	// given none and cannot be reached.
	Args []string
	// Env is the environment that the file and the knobs ask for. The host adds
	// its short allowlist of inherited variables below it.
	Env map[string]string
	// Inherit names further variables to take over from the host's environment.
	Inherit []string
	// Secrets are variables whose values are read at launch and kept nowhere.
	Secrets []Secret
	// Prove names the variables and the flags ("--x") that the knobs set or remove.
	// Variables are read back from every process of the tree: one that is in Env must
	// have that value, one that is not must be absent. Flags are compared with what
	// the running server tells of itself.
	Prove []string
	// Directory is the working directory of the server; empty means that of the
	// tuner.
	Directory string
	GPUs      GPUSelection

	// Model is the id that the server must report when it is ready; empty means
	// that any single model will do.
	Model    string
	Timeouts Timeouts
	Workload Workload
	Command  CommandOutput
	// ServingScale is above 1 only for the simulated server: one second of its
	// serving stands for this many seconds, and metrics are reported unscaled.
	ServingScale float64
	// LogDirectory is where the host keeps the server's log.
	LogDirectory string
}

// Secret is a variable whose value comes from the environment or a file of
// the host at launch.
type Secret struct {
	Name     string `json:"name"`
	FromEnv  string `json:"from_env,omitempty"`
	FromFile string `json:"from_file,omitempty"`
}

// GPUSelection says which GPUs a job uses: all of the host, or some by index.
type GPUSelection struct {
	All     bool  `json:"all"`
	Indices []int `json:"indices,omitempty"`
}

// Timeouts are hard limits, one for each stage.
type Timeouts struct {
	Launching time.Duration // until the process and its port exist
	Loading   time.Duration // until the readiness gate passes
	Stalled   time.Duration // without any sign of progress while loading
	Verifying time.Duration
	Warming   time.Duration
	Round     time.Duration // one round at one load point
	Stopping  time.Duration // from terminate to kill
}

// Workload is what the load generator sends.
type Workload struct {
	Name    string `json:"name"`
	Dataset string `json:"dataset"` // random | prompts | shared-prefix
	// File holds the prompts of dataset "prompts": JSON lines with a "prompt"
	// field each, or the ShareGPT shape.
	File        string `json:"file,omitempty"`
	FileDigest  string `json:"file_digest,omitempty"` // sha256 of the file
	InputTokens int    `json:"input_tokens,omitempty"`
	// PrefixTokens is the length of each of the Prefixes that the prompts of dataset
	// "shared-prefix" share; InputTokens follow it.
	PrefixTokens int `json:"prefix_tokens,omitempty"`
	Prefixes     int `json:"prefixes,omitempty"`
	OutputTokens int `json:"output_tokens"`
	Requests     int `json:"requests"` // for each round
	// Warmup is the number of requests sent and discarded before the first round.
	Warmup   int    `json:"warmup"`
	Endpoint string `json:"endpoint"` // completions | chat | generate
	// IgnoreEOS forces the output length.
	IgnoreEOS   bool        `json:"ignore_eos"`
	Temperature float64     `json:"temperature"`
	Points      []LoadPoint `json:"points"`
	// Burstiness is the shape of the gamma distribution of the times between the
	// requests of an open loop; 0 stands for 1, a Poisson process.
	Burstiness float64 `json:"burstiness,omitempty"`
	// Window ends the sending of a round after so long; 0: when all is sent.
	Window time.Duration `json:"window,omitempty"`
	// Goodput is the service level that a request must keep to count as good.
	Goodput Goodput `json:"goodput,omitzero"`
	Rounds  Rounds  `json:"rounds"`
	// Seed derives the prompts: unique for each (campaign, load point, round),
	// equal across the trials of a campaign.
	Seed uint64 `json:"-"`
}

// LoadPoint is a load measured within one launch.
type LoadPoint struct {
	// Concurrency is the number of requests kept in flight; with a rate the most of
	// them, and 0 for no bound.
	Concurrency int `json:"concurrency"`
	// RequestRate, in requests/s, sends requests at times of their own.
	RequestRate float64 `json:"request_rate,omitempty"`
}

// Goodput is a service level; 0 sets no limit.
type Goodput struct {
	TTFT time.Duration `json:"ttft,omitempty"`
	TPOT time.Duration `json:"tpot,omitempty"`
	E2EL time.Duration `json:"e2el,omitempty"`
}

// Rounds says how many rounds are measured at each load point.
type Rounds struct {
	// Fixed is the number of rounds; 0 means automatic.
	Fixed int `json:"fixed,omitempty"`
	// Automatic rounds go on from Min to at most Max until the standard error of
	// the mean of Metric over rounds is at most Precision of the mean.
	Min       int     `json:"min,omitempty"`
	Max       int     `json:"max,omitempty"`
	Precision float64 `json:"precision,omitempty"`
	Metric    string  `json:"metric,omitempty"`
}

// CommandOutput says how a job of kind "command" reports.
type CommandOutput struct {
	// Patterns extracts metrics from stdout; empty means that the last line of
	// stdout is a JSON object of numbers.
	Patterns []MetricPattern
	// Exit maps a non-zero exit status to a failure class; others are Infeasible.
	Exit map[int]Class
}

// MetricPattern finds one metric in the output of a command. The last match
// counts; the first group, or the group named "value", is the number.
type MetricPattern struct {
	Metric string `json:"metric"`
	Regex  string `json:"regex"`
	Unit   string `json:"unit,omitempty"`
}
