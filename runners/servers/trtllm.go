package servers

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// trtllm describes TensorRT-LLM's trtllm-serve, 1.1 to the 1.4 line, with the
// PyTorch backend.
var trtllm = Kind{
	Name:  "trtllm",
	Title: "TensorRT-LLM",
	Ready: Ready{
		// A one-token chat through the engine. Versions without it have /health,
		// which up to mid 2026 only tells of an error queue.
		Paths: []string{"/health_generate", "/health"}, Status: 200, Timeout: 25 * time.Second,
	},
	Models: "/v1/models",
	Info:   []Info{{Paths: []string{"/version"}, Version: "/version"}},
	// Needs return_perf_metrics in the configuration. /metrics beside it is a queue
	// that empties when it is read, so it is left alone.
	Metrics: &Metrics{
		Path: "/prometheus/metrics",
		Sums: map[string][]string{
			"generated_tokens": {"trtllm_generation_tokens_total"},
			"draft_tokens":     {"trtllm_spec_decode_num_draft_tokens_total"},
			"accepted_tokens":  {"trtllm_spec_decode_num_accepted_tokens_total"},
		},
		Lengths: "tokens an iteration",
	},
	Installed:   VersionSource{Package: "tensorrt_llm"},
	Differences: trtllmDifferences,
	Launch: []LaunchVariable{
		readableEnvironment,
		// Open MPI picks a wrong interface on some hosts (smg#1823); on one host
		// loopback always works.
		{Name: "OMPI_MCA_btl_tcp_if_include", Value: "lo"},
		{Name: "OMPI_MCA_oob_tcp_if_include", Value: "lo"},
	},
	// --set overrides file and flags from the 1.4 line on; older versions take
	// speculation from their configuration file only.
	Speculation: &Rendering{
		Methods: map[string]Method{
			"eagle3":       {Name: "Eagle3", Draft: DraftRequired},
			"eagle":        {Name: "Eagle3", Draft: DraftRequired},
			"draft_target": {Name: "Draft_Target", Draft: DraftRequired},
			"standalone":   {Name: "Draft_Target", Draft: DraftRequired},
			"draft_model":  {Name: "Draft_Target", Draft: DraftRequired},
			"pard":         {Name: "PARD", Draft: DraftRequired},
			"mtp":          {Name: "MTP", Draft: DraftNone},
			"nextn":        {Name: "MTP", Draft: DraftNone},
			"ngram":        {Name: "NGram", Draft: DraftNone},
		},
		Fields: []Field{
			{Name: "--set", Key: "speculative_config.decoding_type", Source: SourceMethod},
			{Name: "--set", Key: "speculative_config.speculative_model", Source: SourceDraftModel},
			{Name: "--set", Key: "speculative_config.max_draft_len", Source: SourceSteps},
		},
	},
	Rules:     trtllmRules,
	Arguments: trtllmArguments,
	Limits: []Limit{
		{Flags: []string{"--max_batch_size"}, Fact: "max_batch_size", Moves: "2048, or what the cache holds"},
		{Flags: []string{"--max_num_tokens"}, Fact: "max_num_tokens", Moves: "8192, less the draft's slots"},
		{Flags: []string{"--kv_cache_free_gpu_memory_fraction"}, Fact: "kv_cache_memory_gib",
			Moves: "a share of what the weights leave free, the draft's included"},
	},
	Processes: Processes{Worker: "mpi4py.futures.server", Workers: trtllmWorkers,
		Helpers: slices.Concat(commonHelpers, []string{"orted", "prted", "prterun", "mpirun"})},
	Progress: trtllmProgress,
	Failures: withCommon(trtllmFailures...),
	prefix:   regexp.MustCompile(`^(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?\[(?:TRT-LLM|TensorRT-LLM)\](?: ?\[RANK \d+\])? ?\[([VDIWEF])[A-Z]*\](?: ?\[[\w ]+\])*\s?`),
}

// trtllmArguments: no page tells them, the log does.
var trtllmArguments = []Argument{
	{Flags: []string{"--max_batch_size"}, Fact: "max_batch_size"},
	{Flags: []string{"--max_num_tokens"}, Fact: "max_num_tokens"},
	{Flags: []string{"--set"}, Key: "speculative_config.max_draft_len", Fact: "max_draft_len", Speculation: true},
	{Flags: []string{"--tp_size", "--tensor_parallel_size"}, Fact: "tensor_parallel_size"},
}

var trtllmDifferences = []Difference{
	{"T-FILEWINS", Span{Until: "1.4.0"}, "the configuration file wins over the command line, and --set is not known: speculation must stand in the file",
		func(k *Kind) { k.Speculation = nil }},
	{"T-HEALTH", Span{Until: "1.3.0"}, "/health tells of an error queue only, not of dead workers", nil},
}

// trtllmWorkers: MPI workers even for one GPU; the front is none of them.
func trtllmWorkers(c Command) int {
	return product(c, []string{"--tp-size", "--tensor-parallel-size"}, []string{"--pp-size", "--pipeline-parallel-size"})
}

var trtllmRules = []Rule{
	{"T1", Refuse, "acceptance_length_threshold switches speculation off for good once acceptance is low: later rounds would measure something else",
		func(c Command) bool {
			for _, arg := range c.Args {
				if strings.Contains(arg, "acceptance_length_threshold") || strings.Contains(arg, "acceptance_window") {
					return true
				}
			}
			return false
		}},
	{"T2", Warn, "TensorRT-LLM has no page that empties the prefix cache: set kv_cache_config.enable_block_reuse to false, or prompts of one round may be found again in the next",
		func(c Command) bool {
			return !slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "enable_block_reuse") })
		}},
}

var trtllmProgress = []Progress{
	progress("T-LOADP", PhaseWeights, unknownPercent, `Loading weights(?: concurrently| serially)?: +(?P<percent>\d+)%`),
	progress("T-VERSION", PhaseStarting, unknownPercent, `TensorRT[- ]LLM version: (?P<server_version>\S+)`),
	progress("T-ARGS", PhaseStarting, unknownPercent, `LLM Args: .*\btensor_parallel_size=(?P<tensor_parallel_size>\d+)`+
		`(?:.*?\bmax_draft_len=(?P<max_draft_len>\d+))?(?:.*?\bmax_batch_size=(?P<max_batch_size>\d+))?(?:.*?\bmax_num_tokens=(?P<max_num_tokens>\d+))?`),
	progress("T-LOADS", PhaseWeights, unknownPercent, `Loading safetensors weights in parallel: +(?P<percent>\d+)%`),
	progress("T-LOAD1", PhaseWeights, 100, `Model init total -- ([\d.]+)s`),
	progress("T-KV", PhaseKVCache, unknownPercent, `Allocated (?P<kv_cache_memory_gib>[\d.]+) GiB for max tokens in paged KV cache \((?P<kv_cache_tokens>\d+)\)`),
	progress("T-TUNE", PhaseAutotune, 100, `Cache size after warmup is (\d+)`),
	progress("T-GRAPH0", PhaseGraphCapture, 0, `Creating CUDA graph instances for (\d+) batch sizes`),
	progress("T-GRAPHP", PhaseGraphCapture, unknownPercent, `Run generation[- ]only CUDA graph warmup.*batch size=(\d+), draft_len=(\d+)`),
	progress("T-READY", PhaseServing, 100, `Application startup complete`),
}

var trtllmFailures = []Signature{
	signature("T-WDEAD", ReasonCrashed, CauseConsequence, CauseConsequence, `Executor worker died during initialization|Failed to initialize executor on rank (\d+)`).fatal(),
	signature("T-CRASH", ReasonCrashed, CauseConsequence, CauseConsequence, `Executor loop crashed on this rank; hard-killing all (\d+) ranks`).fatal(),
	signature("T-ASSERT", ReasonCrashed, CauseConsequence, CauseConsequence, `(?:^|\]\s?)Assertion failed`),
	signature("T-SEGV", ReasonCrashed, CauseCrash, CauseCrash, `Segfault encountered`).fatal(),
	signature("T-MPI", "mpi_bootstrap", CauseTransient, "", `Open MPI failed to TCP connect`),
	signature("T-ABORT", ReasonCrashed, CauseConsequence, CauseConsequence, `MPI_ABORT was invoked`).fatal(),
	signature("T-NOGRAPH", ReasonNotAsRequested, CauseTag, CauseTag, `[Ss]kipping CUDA graph warmup.*not enough KV cache space`),
}
