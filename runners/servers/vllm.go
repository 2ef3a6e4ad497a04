package servers

import (
	"regexp"
	"strings"
	"time"
)

// vllm describes vLLM as of 0.24.
var vllm = Kind{
	Name:  "vllm",
	Title: "vLLM",
	Ready: Ready{
		// 200 as soon as the engine exists; it notices death only, never a hang.
		Paths: []string{"/health"}, Status: 200, Timeout: 25 * time.Second,
	},
	Models:    "/v1/models",
	Streaming: map[string]any{"continuous_usage_stats": true},
	// Open in development mode only. Older versions answered 200 although blocks
	// were still referenced, newer ones say so in the body.
	Flush: &Flush{Method: "POST", Path: "/reset_prefix_cache", Success: "success"},
	Info: []Info{
		{Path: "/version", Version: "version"},
	},
	Launch: []LaunchVariable{
		readableEnvironment,
		// Opens /reset_prefix_cache; servers under test listen on loopback only.
		{Name: "VLLM_SERVER_DEV_MODE", Value: "1"},
		// Its default of 600 s is shorter than the load of a large model.
		{Name: "VLLM_ENGINE_READY_TIMEOUT_S", Margin: 10 * time.Minute},
	},
	Speculation: &Rendering{
		JSONFlag: "--speculative-config",
		Methods: map[string]Method{
			"eagle":       {Name: "eagle", Draft: DraftRequired},
			"eagle3":      {Name: "eagle3", Draft: DraftRequired},
			"draft_model": {Name: "draft_model", Draft: DraftRequired},
			"standalone":  {Name: "draft_model", Draft: DraftRequired},
			"medusa":      {Name: "medusa", Draft: DraftRequired},
			"mtp":         {Name: "mtp", Draft: DraftOptional},
			"nextn":       {Name: "mtp", Draft: DraftOptional},
			"ngram":       {Name: "ngram", Draft: DraftNone},
			"ngram_gpu":   {Name: "ngram_gpu", Draft: DraftNone},
			"suffix":      {Name: "suffix", Draft: DraftNone},
		},
		Fields: []Field{
			{Name: "method", Source: SourceMethod},
			{Name: "model", Source: SourceDraftModel},
			{Name: "num_speculative_tokens", Source: SourceSteps},
		},
	},
	DraftFlags: []string{"--speculative-config", "-sc", "--spec-model"},
	Rules:      vllmRules,
	Progress:   vllmProgress,
	Failures:   withCommon(vllmFailures...),
	prefix:     regexp.MustCompile(`^(?:(?:\x1b\[[0-9;]*m)*\((\w+)(?: rank=\d+)? pid=(\d+)\)(?:\x1b\[[0-9;]*m)*\s?)?(?:(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d-\d\d \d\d:\d\d:\d\d) \[[^\]]+\]\s)?`),
}

var vllmRules = []Rule{
	{"V1", Refuse, "rejection_sample_method synthetic makes acceptance up: nothing measured with it is true",
		func(c Command) bool {
			config, _ := c.Flag("--speculative-config", "-sc")
			return strings.Contains(config, `synthetic`)
		}},
	{"V2", Refuse, "the draft's tensor parallelism is draft_tensor_parallel_size; vLLM refuses tensor_parallel_size there",
		func(c Command) bool {
			config, _ := c.Flag("--speculative-config", "-sc")
			return strings.Contains(config, `"tensor_parallel_size"`)
		}},
	{"V3", Refuse, "VLLM_BATCH_INVARIANT=1 overwrites about ten NCCL variables: it cannot be combined with NCCL settings",
		func(c Command) bool {
			if c.Env["VLLM_BATCH_INVARIANT"] != "1" {
				return false
			}
			for name := range c.Env {
				if strings.HasPrefix(name, "NCCL_") {
					return true
				}
			}
			return false
		}},
	{"V4", Warn, "--disable-log-stats removes the counters: acceptance and cache hits cannot be read",
		func(c Command) bool { return c.Has("--disable-log-stats") }},
	{"V5", Warn, "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH hides the death of the engine",
		func(c Command) bool { _, set := c.Env["VLLM_KEEP_ALIVE_ON_ENGINE_DEATH"]; return set }},
}

var vllmProgress = []Progress{
	progress("V-LOADP", PhaseWeights, unknownPercent, `Loading \S+ checkpoint shards: +(?P<percent>\d+)% Completed \| (\d+)/(\d+)`),
	progress("V-GRAPHP", PhaseGraphCapture, unknownPercent, `Capturing CUDA graphs? \(.*?\): +(?P<percent>\d+)%`),
	progress("V-ARGS", PhaseStarting, unknownPercent, `non-default args: `),
	progress("V-INIT", PhaseStarting, unknownPercent, `Initializing a V1 LLM engine \(v(?P<server_version>[^)]+)\)`),
	progress("V-NCCL", "", unknownPercent, `vLLM is using nccl==(?P<nccl>[\d.]+)`),
	progress("V-LOAD0", PhaseWeights, 0, `Starting to load model `),
	progress("V-LOAD1", PhaseWeights, 100, `Loading weights took ([\d.]+) seconds`),
	progress("V-LOAD2", PhaseWeights, 100, `Model loading took ([\d.]+) Gi?B?(?: memory)? and ([\d.]+) seconds`),
	progress("V-DYN", PhaseCompile, unknownPercent, `Dynamo bytecode transform time: ([\d.]+) s`),
	progress("V-COMP", PhaseCompile, 100, `torch\.compile (?:took|takes) ([\d.]+) s`),
	progress("V-KVMEM", PhaseKVCache, unknownPercent, `Available KV cache memory: ([\d.]+) GiB`),
	progress("V-KV", PhaseKVCache, 100, `GPU KV cache size: (?P<kv_cache_tokens>[\d,]+) tokens`),
	progress("V-GRAPH1", PhaseGraphCapture, 100, `Graph capturing finished in (\d+) secs, took ([\d.]+) GiB`),
	progress("V-INIT1", PhaseWarmup, unknownPercent, `init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s`),
	progress("V-HTTP", PhaseServing, unknownPercent, `Starting vLLM server on (\S+)`),
	progress("V-SPEC", "", unknownPercent, `SpecDecoding metrics: Mean acceptance length: (?P<logged_acceptance_length>[\d.]+)`),
	progress("V-READY", PhaseServing, 100, `Application startup complete`),
}

var vllmFailures = []Signature{
	signature("V-FREE", "gpu_memory_taken", CauseHost, "", `Free memory on device .* on startup is less than desired GPU memory utilization`),
	signature("V-NOKV", ReasonOutOfMemory, CauseMemory, "", `No available memory for the cache blocks`),
	signature("V-KVLEN", ReasonOutOfMemory, CauseMemory, "", `To serve at least one request with the model's max seq len`),
	signature("V-ROOT", ReasonCrashed, CauseConsequence, CauseConsequence, `Engine core initialization failed\.|EngineCore failed to start|WorkerProc initialization failed`).fatal(),
	signature("V-WDEAD", ReasonCrashed, CauseConsequence, CauseConsequence, `Worker proc (\S+) died unexpectedly(?: \(exit code: (-?\d+)\))?`).fatal(),
	signature("V-FATAL", ReasonCrashed, CauseConsequence, CauseConsequence, `EngineCore encountered a fatal error`).fatal(),
	signature("V-DEAD", ReasonCrashed, CauseConsequence, CauseConsequence, `EngineDeadError|EngineCore encountered an issue`).fatal(),
	signature("V-RPC", "watchdog", CauseHang, CauseHang, `RPC call to (\w+) timed out`).fatal(),
	signature("V-SLOW", "server_limit", CauseLimit, "", `Timed out waiting for engine core processes to start`).fatal(),
	signature("V-DIV", "bad_argument", CauseConfiguration, "", `num_speculative_tokens:\s?\d+ must be divisible by`),
	signature("V-NSPEC", "bad_argument", CauseConfiguration, "", `num_speculative_tokens must be provided|num_speculative_tokens was provided but without`),
	signature("V-CGSZ", "bad_argument", CauseConfiguration, "", `No valid cudagraph sizes after rounding`),
	signature("V-SLOTS", "bad_argument", CauseConfiguration, "", `does not have enough slots to schedule a token`),
	signature("V-VOCAB", "draft_model", CauseConfiguration, "", `should have the same vocabulary size`),
	signature("V-PIECE", "", CauseNote, CauseNote, `Dynamic speculative decoding changes the target verification`),
	signature("V-DPSPEC", "not_as_requested", CauseTag, CauseTag, `Dynamic speculative decoding is not supported with data`),
	signature("V-ASYNC", "", CauseNote, CauseNote, `Async scheduling (?:not supported|is not compatible)`),
}
