package servers

import (
	"regexp"
	"slices"
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
		{Paths: []string{"/version"}, Version: "/version"},
		// Open in development mode only. Text where the parameter is not known.
		{Paths: []string{"/server_info?config_format=json"}, Effective: vllmEffective},
	},
	Metrics: &Metrics{
		Path: "/metrics",
		Sums: map[string][]string{
			"prefix_queries":   {"vllm:prefix_cache_queries_total"},
			"prefix_hits":      {"vllm:prefix_cache_hits_total"},
			"preemptions":      {"vllm:num_preemptions_total"},
			"generated_tokens": {"vllm:generation_tokens_total"},
			"drafts":           {"vllm:spec_decode_num_drafts_total"},
			"draft_tokens":     {"vllm:spec_decode_num_draft_tokens_total"},
			"accepted_tokens":  {"vllm:spec_decode_num_accepted_tokens_total"},
		},
		ByPosition: "vllm:spec_decode_num_accepted_tokens_per_pos_total", PositionLabel: "position",
		Lengths: "with the bonus token",
	},
	Installed:   VersionSource{Package: "vllm"},
	Differences: vllmDifferences,
	Launch: []LaunchVariable{
		readableEnvironment,
		// Opens /reset_prefix_cache; servers under test listen on loopback only.
		{Name: "VLLM_SERVER_DEV_MODE", Value: "1"},
		// Its default of 600 s is shorter than the load of a large model.
		{Name: "VLLM_ENGINE_READY_TIMEOUT_S", Margin: 10 * time.Minute},
	},
	// env_override.py and the workers' start (v1/executor/multiproc_executor.py).
	Written: []WrittenVariable{
		{Name: "PYTORCH_NVML_BASED_CUDA_CHECK", Value: "1", Always: true},
		{Name: "TORCHINDUCTOR_COMPILE_THREADS", Value: "1", Always: true},
		{Name: "OMP_NUM_THREADS", Value: "1"},
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
	Arguments:  vllmArguments,
	Rewrites:   vllmRewrites,
	Limits: []Limit{
		{
			Flags: []string{"--max-num-seqs"}, Fact: "max_num_seqs",
			Moves: "by GPU memory and by where the engine is used from",
		},
		{
			Flags: []string{"--max-num-batched-tokens"}, Fact: "max_num_batched_tokens",
			Moves: "by GPU memory; drafts take their slots from it",
		},
		{
			Flags: []string{"--gpu-memory-utilization"}, Fact: "gpu_memory_utilization",
			Moves: "by release; a share of all memory, the draft model's included",
		},
		{
			Flags: []string{"--async-scheduling", "--no-async-scheduling"}, Fact: "async_scheduling",
			Moves: "by the method of speculation",
		},
	},
	Processes: Processes{Worker: "VLLM::Worker", Workers: vllmWorkers, Helpers: commonHelpers},
	Progress:  vllmProgress,
	Failures:  withCommon(vllmFailures...),
	prefix:    regexp.MustCompile(`^(?:(?:\x1b\[[0-9;]*m)*\((\w+)(?: rank=\d+)? pid=(\d+)\)(?:\x1b\[[0-9;]*m)*\s?)?(?:(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d-\d\d \d\d:\d\d:\d\d) \[[^\]]+\]\s)?`),
}

// vllmEffective: the resolved VllmConfig (vllm/config).
var vllmEffective = map[string]string{
	"speculative_method":        "/vllm_config/speculative_config/method",
	"num_speculative_tokens":    "/vllm_config/speculative_config/num_speculative_tokens",
	"speculative_model":         "/vllm_config/speculative_config/model",
	"max_num_seqs":              "/vllm_config/scheduler_config/max_num_seqs",
	"max_num_batched_tokens":    "/vllm_config/scheduler_config/max_num_batched_tokens",
	"async_scheduling":          "/vllm_config/scheduler_config/async_scheduling",
	"enable_chunked_prefill":    "/vllm_config/scheduler_config/enable_chunked_prefill",
	"scheduling_policy":         "/vllm_config/scheduler_config/policy",
	"stream_interval":           "/vllm_config/scheduler_config/stream_interval",
	"max_model_len":             "/vllm_config/model_config/max_model_len",
	"enforce_eager":             "/vllm_config/model_config/enforce_eager",
	"block_size":                "/vllm_config/cache_config/block_size",
	"gpu_memory_utilization":    "/vllm_config/cache_config/gpu_memory_utilization",
	"kv_cache_dtype":            "/vllm_config/cache_config/cache_dtype",
	"enable_prefix_caching":     "/vllm_config/cache_config/enable_prefix_caching",
	"tensor_parallel_size":      "/vllm_config/parallel_config/tensor_parallel_size",
	"disable_custom_all_reduce": "/vllm_config/parallel_config/disable_custom_all_reduce",
	"cudagraph_mode":            "/vllm_config/compilation_config/cudagraph_mode",
	"max_cudagraph_size":        "/vllm_config/compilation_config/max_cudagraph_capture_size",
	"speculative_schedule":      "/vllm_config/speculative_config/num_speculative_tokens_per_batch_size/0/2",
}

var (
	vllmSpeculative = []string{"--speculative-config", "-sc"}
	// Any of them switches speculation on.
	vllmAnySpeculative = []string{"--speculative-config", "-sc", "--spec-method", "--spec-model", "--spec-tokens"}
	vllmSpeculates     = has(vllmAnySpeculative...)
)

var vllmArguments = []Argument{
	{Flags: vllmAnySpeculative, Key: "num_speculative_tokens", Alone: []string{"--spec-tokens"}, Fact: "num_speculative_tokens", Default: Null, Speculation: true},
	{Flags: vllmAnySpeculative, Key: "method", Alone: []string{"--spec-method"}, Fact: "speculative_method", Default: Null, Speculation: true},
	{Flags: vllmAnySpeculative, Key: "model", Alone: []string{"--spec-model"}, Fact: "speculative_model", Speculation: true},
	{Flags: []string{"--max-num-seqs"}, Fact: "max_num_seqs"},
	{Flags: []string{"--max-num-batched-tokens"}, Fact: "max_num_batched_tokens"},
	{Flags: []string{"--async-scheduling"}, Opposite: []string{"--no-async-scheduling"}, Fact: "async_scheduling", Switch: true},
	{Flags: []string{"--enable-chunked-prefill"}, Opposite: []string{"--no-enable-chunked-prefill"}, Fact: "enable_chunked_prefill", Switch: true},
	{Flags: []string{"--scheduling-policy"}, Fact: "scheduling_policy", Default: "fcfs"},
	{Flags: []string{"--stream-interval"}, Fact: "stream_interval", Default: "1"},
	{Flags: []string{"--max-model-len"}, Fact: "max_model_len", Free: []string{"auto", "-1"}},
	{Flags: []string{"--enforce-eager"}, Opposite: []string{"--no-enforce-eager"}, Fact: "enforce_eager", Switch: true},
	{Flags: []string{"--block-size"}, Fact: "block_size"},
	{Flags: []string{"--gpu-memory-utilization"}, Fact: "gpu_memory_utilization"},
	{Flags: []string{"--kv-cache-dtype"}, Fact: "kv_cache_dtype", Free: []string{"auto"}},
	{Flags: []string{"--enable-prefix-caching"}, Opposite: []string{"--no-enable-prefix-caching"}, Fact: "enable_prefix_caching", Switch: true},
	{Flags: []string{"--tensor-parallel-size", "-tp"}, Fact: "tensor_parallel_size", Default: "1"},
	{Flags: []string{"--disable-custom-all-reduce"}, Opposite: []string{"--no-disable-custom-all-reduce"}, Fact: "disable_custom_all_reduce", Switch: true},
	{Flags: []string{"--max-cudagraph-capture-size"}, Fact: "max_cudagraph_size"},
}

// vllmRewrites are made with a warning at most (config/vllm.py,
// config/speculative.py).
var vllmRewrites = []Rewrite{
	{"V-ASYNC", "async_scheduling", vllmSpeculates, "ngram, suffix, medusa and mlp_speculator switch asynchronous scheduling off"},
	{"V-CGROUND", "max_cudagraph_size", vllmSpeculates, "captured sizes are rounded up to multiples of the drafted tokens and one"},
	{"V-OLDNAME", "speculative_method", vllmSpeculates, "names of methods for one model become mtp"},
	{"V-CUSTOMAR", "disable_custom_all_reduce", func(Command) bool { return true }, "the own all-reduce needs a topology that this machine does not have"},
}

// vllmDifferences are those that change what is measured or how it is read.
var vllmDifferences = []Difference{
	{"V-CUMEMFORCED", Span{Until: "0.9.1"}, "NCCL_CUMEM_ENABLE is 0 whatever the campaign says: it cannot be tuned (PR 19105)",
		func(k *Kind) {
			k.Written = slices.Concat(k.Written, []WrittenVariable{{Name: "NCCL_CUMEM_ENABLE", Value: "0", Always: true}})
		}},
	{"V-CUMEM", Span{Since: "0.9.1", Until: "0.10.2"}, "NCCL_CUMEM_ENABLE is 0 unless the campaign sets it (PR 24141)",
		func(k *Kind) {
			k.Written = slices.Concat(k.Written, []WrittenVariable{{Name: "NCCL_CUMEM_ENABLE", Value: "0"}})
		}},
	// Process titles came with the commit of 2025-07-29.
	{"V-NOTITLES", Span{Until: "0.10.1"}, "worker processes have no titles: they cannot be counted",
		func(k *Kind) { k.Processes.Worker = "" }},
	{"V-TEXTINFO", Span{Until: "0.11.0"}, "the page of the effective configuration is text: only the log tells", nil},
}

// vllmWorkers: processes of their own from two GPUs on; Ray's are not children.
func vllmWorkers(c Command) int {
	if c.Is("--distributed-executor-backend", "ray", "external_launcher") || c.Has("--nnodes", "--data-parallel-size-local", "-dpl") {
		return 0
	}
	perEngine := product(c, []string{"--tensor-parallel-size", "-tp"}, []string{"--pipeline-parallel-size", "-pp"})
	if perEngine == 1 && !c.Has("--distributed-executor-backend") {
		return 0 // the engine itself holds the GPU
	}
	return perEngine * product(c, []string{"--data-parallel-size", "-dp"})
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
	{"V6", Refuse, "speculative_config needs num_speculative_tokens, except for suffix and where the draft says it",
		func(c Command) bool {
			config, given := c.Flag(vllmSpeculative...)
			return given && strings.Contains(config, `"model"`) && strings.Contains(config, `eagle`) &&
				!strings.Contains(config, `num_speculative_tokens`)
		}},
	{"V7", Refuse, "draft_tensor_parallel_size is 1 or the target's tensor parallelism",
		func(c Command) bool {
			draft, given := Argument{Flags: vllmSpeculative, Key: "draft_tensor_parallel_size"}.Requested(c)
			target, hasTarget := c.Flag("--tensor-parallel-size", "-tp")
			if !hasTarget {
				target = "1"
			}
			return given && draft != "1" && draft != target
		}},
	{"V8", Warn, "the draft length by batch size is dropped with data parallelism",
		func(c Command) bool {
			config, _ := c.Flag(vllmSpeculative...)
			ranks, _ := c.Int("--data-parallel-size", "-dp")
			return ranks > 1 && strings.Contains(config, "num_speculative_tokens_per_batch_size")
		}},
	{"V4", Warn, "--disable-log-stats removes the counters: acceptance and cache hits cannot be read",
		func(c Command) bool { return c.Has("--disable-log-stats") }},
	{"V5", Warn, "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH hides the death of the engine",
		func(c Command) bool { _, set := c.Env["VLLM_KEEP_ALIVE_ON_ENGINE_DEATH"]; return set }},
}

var vllmProgress = []Progress{
	progress("V-LOADP", PhaseWeights, unknownPercent, `Loading \S+ checkpoint shards: +(?P<percent>\d+)% Completed \| (\d+)/(\d+)`),
	progress("V-GRAPHP", PhaseGraphCapture, unknownPercent, `Capturing CUDA graphs?(?: shapes)?(?: \(.*?\))?: +(?P<percent>\d+)%`),
	progress("V-ARGS", PhaseStarting, unknownPercent, `non-default args: `),
	// The resolved configuration, also where the page of it is closed or text.
	progress("V-INIT", PhaseStarting, unknownPercent, `Initializing a V1 LLM engine \(v(?P<server_version>[^)]+)\)`+
		`(?: with config: .*?speculative_config=(?:None|SpeculativeConfig\(method='(?P<speculative_method>\w+)', model=.*?, num_spec_tokens=(?P<num_speculative_tokens>\d+)\)))?`+
		`(?:.*? max_seq_len=(?P<max_model_len>\d+))?`),
	progress("V-DIST", PhaseDistributed, 0, `world_size=\d+ rank=\d+ local_rank=\d+ distributed_init_method=`),
	progress("V-RANK", PhaseDistributed, 100, `rank \d+ in world size \d+ is assigned as DP rank`),
	progress("V-BACKENDS", "", unknownPercent, `Using \[(?P<all_reduce_backends>[^\]]*)\] all-reduce backends .*for group 'tp:`),
	progress("V-ATTN", "", unknownPercent, `Using (?P<attention_backend>\w+(?: \w+)?) (?:attention backend out of potential backends|backend on V1 engine)`),
	progress("V-CUSTOMAR", "", unknownPercent, `Registering (?P<custom_all_reduce_addresses>\d+) cuda graph addresses`),
	progress("V-RUNNER", "", unknownPercent, `Using (?P<model_runner>V\d) Model Runner`),
	progress("V-NCCL", "", unknownPercent, `vLLM is using nccl==(?P<nccl>[\d.]+)`),
	progress("V-LOAD0", PhaseWeights, 0, `Starting to load model `),
	progress("V-DRAFT", PhaseWeights, 0, `Loading drafter model`),
	progress("V-NOCUSTOM", "", unknownPercent, `Custom allreduce is disabled because (?P<custom_all_reduce_disabled>[^.]+)`),
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
	signature("V-RPC", ReasonWatchdog, CauseHang, CauseHang, `RPC call to (\w+) timed out`).fatal(),
	signature("V-SLOW", "server_limit", CauseLimit, "", `Timed out waiting for engine core processes to start`).fatal(),
	signature("V-DIV", "bad_argument", CauseConfiguration, "", `num_speculative_tokens:\s?\d+ must be divisible by`),
	signature("V-NSPEC", "bad_argument", CauseConfiguration, "", `num_speculative_tokens must be provided|num_speculative_tokens was provided but without`),
	signature("V-CGSZ", "bad_argument", CauseConfiguration, "", `No valid cudagraph sizes after rounding`),
	signature("V-SLOTS", "bad_argument", CauseConfiguration, "", `does not have enough slots to schedule a token`),
	signature("V-VOCAB", "draft_model", CauseConfiguration, "", `should have the same vocabulary size`),
	// The tensor-parallel all-reduces of the captured batches go through vLLM's own
	// kernel, so that NCCL's settings act on what is too large for it.
	signature("V-CUSTOMAR", "", CauseNote, CauseNote, `Registering [1-9]\d* cuda graph addresses`).under(NCCLUntouched, ""),
	signature("V-PIECE", "", CauseNote, CauseNote, `Dynamic speculative decoding changes the target verification`),
	signature("V-DPSPEC", ReasonNotAsRequested, CauseTag, CauseTag, `Dynamic speculative decoding is not supported with data`),
	signature("V-ASYNC", "", CauseNote, CauseNote, `Async scheduling (?:not supported|is not compatible)`),
}
