package servers

import (
	"regexp"
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
	Info: []Info{
		{Path: "/version", Version: "version"},
	},
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
	Rules:    trtllmRules,
	Progress: trtllmProgress,
	Failures: withCommon(trtllmFailures...),
	prefix:   regexp.MustCompile(`^(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?\[(?:TRT-LLM|TensorRT-LLM)\](?: ?\[RANK \d+\])? ?\[([VDIWEF])[A-Z]*\](?: ?\[[\w ]+\])*\s?`),
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
}

var trtllmProgress = []Progress{
	progress("T-LOADP", PhaseWeights, unknownPercent, `Loading weights (?:concurrently|serially): +(?P<percent>\d+)%`),
	progress("T-LOADS", PhaseWeights, unknownPercent, `Loading safetensors weights in parallel: +(?P<percent>\d+)%`),
	progress("T-LOAD1", PhaseWeights, 100, `Model init total -- ([\d.]+)s`),
	progress("T-KV", PhaseKVCache, unknownPercent, `Allocated ([\d.]+) GiB for max tokens in paged KV cache \((?P<kv_cache_tokens>\d+)\)`),
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
	signature("T-NOGRAPH", "not_as_requested", CauseTag, CauseTag, `[Ss]kipping CUDA graph warmup.*not enough KV cache space`),
}
