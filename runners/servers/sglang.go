package servers

import (
	"regexp"
	"time"
)

// sglang describes SGLang as of 0.5.18 (python/sglang/srt), with the older names
// of pages and log lines back to 0.5.
var sglang = Kind{
	Name:  "sglang",
	Title: "SGLang",
	Ready: Ready{
		// The port opens once every scheduler is ready, before the warm-up: 503 until
		// that is over. The page generates a token unless the engine has spoken within
		// 20 s; before 0.4.10.post2, and by SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION, it
		// is a constant, which the completion after it makes up for.
		Paths: []string{"/health"}, Status: 200, Timeout: 25 * time.Second,
	},
	Models: "/v1/models",
	// Since 0.5.6; earlier releases ignore it.
	Streaming: map[string]any{"continuous_usage_stats": true},
	Flush:     &Flush{Method: "POST", Path: "/flush_cache", Refused: 400},
	Info: []Info{{
		// The second until 0.5.6.
		Paths: []string{"/server_info", "/get_server_info"}, Version: "/version", Effective: sglangEffective, Live: true,
	}},
	Metrics: &Metrics{
		Path: "/metrics", Flag: "--enable-metrics",
		Sums: map[string][]string{
			"prefix_queries":   {"sglang:prompt_tokens_total"},
			"prefix_hits":      {"sglang:cached_tokens_total"},
			"preemptions":      {"sglang:num_retracted_requests_total"},
			"generated_tokens": {"sglang:generation_tokens_total"},
			"verify_calls":     {"sglang:spec_verify_calls_total"}, // since 0.5.14
		},
		Lengths: "with the bonus token, and with the first token of the prefill",
	},
	Installed:   VersionSource{Package: "sglang"},
	Differences: sglangDifferences,
	Launch: []LaunchVariable{
		readableEnvironment,
		// The warm-up request has 600 s, after which the server kills itself; the
		// compilation of kernels may take longer (http_server.py).
		{Name: "SGLANG_WARMUP_TIMEOUT", Margin: 10 * time.Minute},
	},
	// Written before the schedulers are spawned (entrypoints/engine.py).
	Written: []WrittenVariable{
		{Name: "NCCL_CUMEM_ENABLE", Value: "1", Always: true, When: has("--enable-symm-mem")},
		{Name: "NCCL_CUMEM_ENABLE", Value: "0", Also: []string{"1"}}, // 1 on fabrics of several nodes
		{Name: "NCCL_NVLS_ENABLE", Value: "1", Always: true, When: has("--enable-symm-mem", "--enable-nccl-nvls")},
		{Name: "NCCL_NVLS_ENABLE", Value: "0"},
		{Name: "NCCL_GRAPH_MIXING_SUPPORT", Value: "0", When: has("--dcp-size", "--decode-context-parallel-size")},
		{Name: "NCCL_MNNVL_ENABLE", Value: "1", When: has("--nnodes")},
		{Name: "CUDA_DEVICE_MAX_CONNECTIONS", Value: "8", Also: []string{"4"}, Always: true}, // 4 in older releases
		{Name: "CUDA_MODULE_LOADING", Value: "AUTO", Always: true},
		{Name: "TRTLLM_ENABLE_PDL", Value: "1"},
	},
	Speculation: &Rendering{
		Trees: true,
		Methods: map[string]Method{
			"eagle":      {Name: "EAGLE", Draft: DraftRequired},
			"eagle3":     {Name: "EAGLE3", Draft: DraftRequired},
			"nextn":      {Name: "NEXTN", Draft: DraftOptional},
			"mtp":        {Name: "NEXTN", Draft: DraftOptional},
			"standalone": {Name: "STANDALONE", Draft: DraftRequired},
			"ngram":      {Name: "NGRAM", Draft: DraftNone, Omit: []Source{SourceSteps, SourceTopK}},
			"dflash":     {Name: "DFLASH", Draft: DraftRequired, MaxSteps: 1, Omit: []Source{SourceSteps, SourceTopK, SourceDraftTokens}},
			"dspark":     {Name: "DSPARK", Draft: DraftOptional, Omit: []Source{SourceSteps, SourceTopK}},
		},
		Fields: []Field{
			{Name: "--speculative-algorithm", Source: SourceMethod},
			{Name: "--speculative-draft-model-path", Source: SourceDraftModel},
			{Name: "--speculative-num-steps", Source: SourceSteps},
			{Name: "--speculative-eagle-topk", Source: SourceTopK},
			{Name: "--speculative-num-draft-tokens", Source: SourceDraftTokens},
		},
	},
	DraftFlags: []string{sglangDraftPath, sglangDraft},
	Rules:      sglangRules,
	Arguments:  sglangArguments,
	Rewrites:   sglangRewrites,
	Limits: []Limit{
		{
			Flags: []string{"--max-running-requests"}, Fact: "effective_max_running_requests_per_dp", Least: 48,
			Moves: "48 under speculation, otherwise what the cache holds",
		},
		{
			Flags: []string{"--mem-fraction-static"}, Fact: "mem_fraction_static",
			Moves: "leaves room by chunk size, parallelism and captured batch sizes",
		},
		{
			Flags: []string{"--chunked-prefill-size"}, Fact: "chunked_prefill_size",
			Moves: "by GPU memory",
		},
	},
	Processes: Processes{Worker: "sglang::sched", Workers: sglangWorkers, Helpers: commonHelpers},
	Progress:  sglangProgress,
	Failures:  withCommon(sglangFailures...),
	prefix:    regexp.MustCompile(`^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)((?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\]\s(?:(?:DEBUG|INFO|WARNING|ERROR) [\w.]+:\d+: )?`),
}

// sglangEffective: the top level of the page holds arguments as parsed; what is
// in force stands in internal_states, one entry a data-parallel rank.
var sglangEffective = map[string]string{
	"speculative_algorithm":                 "/internal_states/*/speculative_algorithm",
	"speculative_num_steps":                 "/internal_states/*/speculative_num_steps",
	"speculative_eagle_topk":                "/internal_states/*/speculative_eagle_topk",
	"speculative_num_draft_tokens":          "/internal_states/*/speculative_num_draft_tokens",
	"speculative_draft_model_path":          "/internal_states/*/speculative_draft_model_path",
	"max_running_requests":                  "/internal_states/*/max_running_requests",
	"effective_max_running_requests_per_dp": "/internal_states/*/effective_max_running_requests_per_dp",
	"attention_backend":                     "/internal_states/*/attention_backend",
	"page_size":                             "/internal_states/*/page_size",
	"chunked_prefill_size":                  "/internal_states/*/chunked_prefill_size",
	"max_prefill_tokens":                    "/internal_states/*/max_prefill_tokens",
	"mem_fraction_static":                   "/internal_states/*/mem_fraction_static",
	"kv_cache_dtype":                        "/internal_states/*/kv_cache_dtype",
	"schedule_policy":                       "/internal_states/*/schedule_policy",
	"schedule_conservativeness":             "/internal_states/*/schedule_conservativeness",
	"num_continuous_decode_steps":           "/internal_states/*/num_continuous_decode_steps",
	"stream_interval":                       "/internal_states/*/stream_interval",
	"cuda_graph_max_bs":                     "/internal_states/*/cuda_graph_max_bs_decode",
	"disable_custom_all_reduce":             "/internal_states/*/disable_custom_all_reduce",
	"disable_radix_cache":                   "/internal_states/*/disable_radix_cache",
	"disable_overlap_schedule":              "/internal_states/*/disable_overlap_schedule",
	"enable_mixed_chunk":                    "/internal_states/*/enable_mixed_chunk",
	"enable_nccl_nvls":                      "/internal_states/*/enable_nccl_nvls",
	"enable_symm_mem":                       "/internal_states/*/enable_symm_mem",
	"avg_spec_accept_length":                "/internal_states/*/avg_spec_accept_length",
	"token_capacity":                        "/internal_states/*/memory_usage/token_capacity",
}

// Adaptive speculation shows the tier that is active at the moment.
var sglangAdaptive = has("--speculative-adaptive")

var sglangArguments = []Argument{
	// FROZEN_KV_MTP is what NEXTN becomes with a Gemma-4 assistant as draft.
	{Flags: []string{sglangAlgorithm}, Fact: "speculative_algorithm", Default: Null, Means: map[string]string{"NEXTN": "EAGLE"}, Speculation: true},
	{Flags: []string{sglangSteps}, Fact: "speculative_num_steps", Speculation: true, Unless: sglangAdaptive},
	{Flags: []string{sglangTopK}, Fact: "speculative_eagle_topk", Speculation: true},
	{Flags: []string{sglangDraftTokens}, Fact: "speculative_num_draft_tokens", Speculation: true, Unless: sglangAdaptive},
	{Flags: []string{sglangDraftPath, sglangDraft}, Fact: "speculative_draft_model_path", Speculation: true},
	{Flags: []string{"--max-running-requests"}, Fact: "max_running_requests"},
	{Flags: []string{sglangAttention}, Fact: "attention_backend"},
	{Flags: []string{"--page-size"}, Fact: "page_size"},
	{Flags: []string{"--chunked-prefill-size"}, Fact: "chunked_prefill_size"},
	{Flags: []string{"--max-prefill-tokens"}, Fact: "max_prefill_tokens"},
	{Flags: []string{"--mem-fraction-static"}, Fact: "mem_fraction_static"},
	{Flags: []string{"--kv-cache-dtype"}, Fact: "kv_cache_dtype", Free: []string{"auto"}},
	{Flags: []string{"--schedule-policy"}, Fact: "schedule_policy", Default: "fcfs"},
	{Flags: []string{"--schedule-conservativeness"}, Fact: "schedule_conservativeness", Default: "1.0"},
	{Flags: []string{"--num-continuous-decode-steps"}, Fact: "num_continuous_decode_steps", Default: "1"},
	{Flags: []string{"--stream-interval"}, Fact: "stream_interval"},
	{Flags: []string{"--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"}, Fact: "cuda_graph_max_bs"},
	{Flags: []string{"--disable-custom-all-reduce"}, Fact: "disable_custom_all_reduce", Switch: true},
	{Flags: []string{"--disable-radix-cache"}, Fact: "disable_radix_cache", Switch: true},
	{Flags: []string{"--disable-overlap-schedule"}, Fact: "disable_overlap_schedule", Switch: true},
	{Flags: []string{"--enable-mixed-chunk"}, Fact: "enable_mixed_chunk", Switch: true, Default: "false"},
	{Flags: []string{"--enable-nccl-nvls"}, Fact: "enable_nccl_nvls", Switch: true},
	{Flags: []string{"--enable-symm-mem"}, Fact: "enable_symm_mem", Switch: true},
}

// sglangRewrites are made with a warning at most (server_args.py,
// arg_groups/speculative_hook.py).
var sglangRewrites = []Rewrite{
	{"R3", "speculative_num_draft_tokens", func(c Command) bool { topk, ok := c.Int(sglangTopK); return ok && topk == 1 },
		"with topk 1 draft tokens become steps + 1"},
	{"R2", "speculative_num_steps", func(c Command) bool { return c.Is(sglangAlgorithm, "DFLASH", "DSPARK") },
		"block drafts have one step"},
	{"R2", "speculative_eagle_topk", func(c Command) bool { return c.Is(sglangAlgorithm, "NGRAM", "DFLASH", "DSPARK") },
		"the method sets topk itself"},
	{"R8", "enable_mixed_chunk", has(sglangAlgorithm), "mixed chunks are switched off under speculation"},
	{"R7", "max_running_requests", has(sglangAlgorithm), "speculation admits 48 requests unless told otherwise"},
}

// sglangDifferences are those that change what is measured or how it is read.
var sglangDifferences = []Difference{
	{"S-HEALTHCONST", Span{Until: "0.4.10.post2"}, "/health is a constant: only the completion proves that the engine works", nil},
	{"S-NCCLWRITTEN", Span{Until: "0.5.5"}, "NCCL_CUMEM_ENABLE and NCCL_NVLS_ENABLE are overwritten whatever the campaign says: they cannot be tuned (PR 11987)",
		func(k *Kind) {
			k.Written = replaceWritten(k.Written, func(w *WrittenVariable) { w.Always = true }, "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE")
		}},
	{"S-NOUSAGE", Span{Until: "0.5.6"}, "the token count of each chunk is not told: the time between tokens is estimated", nil},
	{"S-SPECV1", Span{Until: "0.5.11"}, "speculation runs without overlap unless SGLANG_ENABLE_SPEC_V2 is set: another system than later releases under the same flags", nil},
	{"S-GRAPHFLAGS", Span{Until: "0.5.14"}, "the CUDA graph flags have their old names, and speculative counters are missing",
		func(k *Kind) {
			k.Info = withEffective(k.Info, map[string]string{"cuda_graph_max_bs": "/internal_states/*/cuda_graph_max_bs"})
		}},
}

// sglangWorkers: one scheduler a GPU. Under data-parallel attention the ranks
// share the GPUs of tensor parallelism.
func sglangWorkers(c Command) int {
	if nodes, ok := c.Int("--nnodes"); ok && nodes > 1 {
		return 0
	}
	sizes := [][]string{{"--tp-size", "--tensor-parallel-size", "--tp"}, {"--pp-size", "--pipeline-parallel-size", "--pp"}}
	if !c.Has("--enable-dp-attention") {
		sizes = append(sizes, []string{"--dp-size", "--data-parallel-size", "--dp"})
	}
	return product(c, sizes...)
}

// Flags of speculation with their older spellings (server_args.py).
const (
	sglangAlgorithm   = "--speculative-algorithm"
	sglangSteps       = "--speculative-num-steps"
	sglangTopK        = "--speculative-eagle-topk"
	sglangDraftTokens = "--speculative-num-draft-tokens"
	sglangDraftPath   = "--speculative-draft-model-path"
	sglangDraft       = "--speculative-draft-model"
	sglangAttention   = "--attention-backend"
)

// sglangRules are R1 to R13 of arg_groups/speculative_hook.py as far as a command
// line shows them.
var sglangRules = []Rule{
	{"R1", Refuse, "steps, topk and draft tokens must be given together (with topk 1 draft tokens may be left out): SGLang fails on an assertion without text",
		func(c Command) bool {
			topk, hasTopK := c.Int(sglangTopK)
			hasSteps, hasTokens := c.Has(sglangSteps), c.Has(sglangDraftTokens)
			if !hasSteps && !hasTopK && !hasTokens || c.Is(sglangAlgorithm, "NGRAM", "DFLASH", "DSPARK") {
				return false
			}
			return !hasSteps || !hasTopK || !hasTokens && topk != 1
		}},
	{"R3", Refuse, "with topk 1 SGLang sets draft tokens to steps + 1 whatever is asked for: leave draft tokens out",
		func(c Command) bool {
			topk, hasTopK := c.Int(sglangTopK)
			steps, hasSteps := c.Int(sglangSteps)
			tokens, hasTokens := c.Int(sglangDraftTokens)
			return hasTopK && hasSteps && hasTokens && topk == 1 && tokens != steps+1
		}},
	{"R4", Refuse, "more draft tokens than the tree has candidates, topk + (steps - 1) * topk^2, plus one: the draft kernel fails",
		func(c Command) bool {
			topk, _ := c.Int(sglangTopK)
			steps, _ := c.Int(sglangSteps)
			tokens, hasTokens := c.Int(sglangDraftTokens)
			return hasTokens && topk > 1 && steps > 0 && tokens-1 > treeCandidates(steps, topk)
		}},
	{"R5", Refuse, "topk above 1 with a page size above 1 needs attention backend flashinfer, fa3 or triton",
		func(c Command) bool {
			topk, _ := c.Int(sglangTopK)
			page, _ := c.Int("--page-size")
			return topk > 1 && page > 1 && c.Has(sglangAttention) && !c.Is(sglangAttention, "flashinfer", "fa3", "triton")
		}},
	{"R6", Refuse, "attention backend trtllm_mha drafts chains only: topk must be 1",
		func(c Command) bool {
			topk, _ := c.Int(sglangTopK)
			return topk > 1 && c.Is(sglangAttention, "trtllm_mha")
		}},
	{"R7", Warn, "speculation sets max-running-requests to 48 when it is not given: give it, or the comparison with speculation off measures the admission limit",
		func(c Command) bool { return c.Has(sglangAlgorithm) && !c.Has("--max-running-requests") }},
	{"R8", Warn, "SGLang switches --enable-mixed-chunk off under speculation",
		func(c Command) bool { return c.Has(sglangAlgorithm) && c.Has("--enable-mixed-chunk") }},
	{"R9", Refuse, "EAGLE3 without a draft model loads the target as its own draft and fails after loading it twice (sglang#36528)",
		func(c Command) bool {
			return c.Is(sglangAlgorithm, "EAGLE3", "STANDALONE") && !c.Has(sglangDraftPath, sglangDraft)
		}},
	{"R12", Refuse, "accept thresholds below 1 change the answers: speed bought with quality is not compared",
		func(c Command) bool {
			single, hasSingle := c.Number("--speculative-accept-threshold-single")
			acc, hasAcc := c.Number("--speculative-accept-threshold-acc")
			return hasSingle && single < 1 || hasAcc && acc < 1
		}},
	{"R13", Warn, "--speculative-draft-window-size acts on EAGLE3 and DFLASH only",
		func(c Command) bool {
			return c.Has("--speculative-draft-window-size") && !c.Is(sglangAlgorithm, "EAGLE3", "DFLASH")
		}},
	{"R14", Refuse, "--speculative-adaptive takes EAGLE or EAGLE3 with topk 1; otherwise SGLang falls back to fixed steps with only a warning",
		func(c Command) bool {
			topk, hasTopK := c.Int(sglangTopK)
			return c.Has("--speculative-adaptive") && (!c.Is(sglangAlgorithm, "EAGLE", "EAGLE3") || hasTopK && topk != 1)
		}},
	{"R15", Refuse, "pipeline parallelism excludes speculation",
		func(c Command) bool {
			stages, _ := c.Int("--pp-size", "--pipeline-parallel-size")
			return stages > 1 && c.Has(sglangAlgorithm)
		}},
	{"R11", Refuse, "rejection sampling takes EAGLE or EAGLE3 with topk 1",
		func(c Command) bool {
			topk, hasTopK := c.Int(sglangTopK)
			return c.Has("--speculative-use-rejection-sampling") && (!c.Is(sglangAlgorithm, "EAGLE", "EAGLE3") || hasTopK && topk != 1)
		}},
	{"R17", Refuse, "data-parallel attention excludes STANDALONE, NGRAM, DFLASH and adaptive speculation",
		func(c Command) bool {
			return c.Has("--enable-dp-attention") && (c.Is(sglangAlgorithm, "STANDALONE", "NGRAM", "DFLASH") || c.Has("--speculative-adaptive"))
		}},
	{"R16", Refuse, "--skip-server-warmup leaves kernel compilation to the first measured requests",
		func(c Command) bool { return c.Has("--skip-server-warmup") }},
}

var sglangProgress = []Progress{
	progress("S-LOADP", PhaseWeights, unknownPercent,
		`(?:Loading \S+ checkpoint shards|Multi-thread loading shards): +(?P<percent>\d+)% Completed \| (\d+)/(\d+)`),
	progress("S-GRAPHP", PhaseGraphCapture, unknownPercent, `^Capturing (?:batches|num tokens) \(.*?\): +(?P<percent>\d+)%`),
	progress("S-JITP", PhaseCompile, unknownPercent, `^DeepGEMM warmup.*?: +(?P<percent>\d+)%`),
	progress("S-ARGS", PhaseStarting, unknownPercent, `^server_args=ServerArgs\(`),
	progress("S-DIST0", PhaseDistributed, 0, `^Init torch distributed begin`),
	progress("S-DIST1", PhaseDistributed, 100, `^Init torch distributed ends\. .*mem usage=([\d.]+) GB`),
	progress("S-NCCL", "", unknownPercent, `is using nccl==(?P<nccl>[\d.]+)`),
	progress("S-LOAD0", PhaseWeights, 0, `^Load weight begin\. avail mem=([\d.]+) GB`),
	progress("S-LOAD1", PhaseWeights, 100, `^Load weight end\.(?: elapsed=([\d.]+) s,)? .*mem usage=([\d.]+) GB`),
	progress("S-KV", PhaseKVCache, unknownPercent, `(?:is allocated|VA upper bound)\. (?:dtype: \S+, )?#tokens: (?P<kv_cache_tokens>\d+)`),
	progress("S-POOL", PhaseKVCache, 100, `^Memory pool end\. avail mem=([\d.]+) GB`),
	progress("S-GRAPH0", PhaseGraphCapture, 0, `^Capture (.*?) ?(?:CUDA|cuda) graph begin\.`),
	progress("S-GRAPH1", PhaseGraphCapture, 100, `^Capture (.*?) ?(?:CUDA|cuda) graph end\. (?:Time )?elapsed[:=] ?([\d.]+) s`),
	progress("S-JIT0", PhaseCompile, 0, `^Entering DeepGEMM JIT`),
	progress("S-TUNE", PhaseAutotune, unknownPercent, `FlashInfer autotune`),
	progress("S-CAP", PhaseWarmup, unknownPercent, `^max_total_num_tokens=(?P<max_total_num_tokens>\d+), .*max_running_requests=(?P<max_running_requests>\d+)`),
	progress("S-TIMES", PhaseWarmup, unknownPercent, `^Engine startup timings \(s\): load_weight=([\d.]+)`),
	progress("S-DECODE", "", unknownPercent, `^Decode batch.*?#running-req: \d+.*?accept len: (?P<logged_acceptance_length>[\d.]+)`),
	progress("S-BACKEND", "", unknownPercent, `^Attention backend not (?:explicitly )?specified\. Use (?P<attention_backend>\w+) backend`),
	progress("S-NOCUSTOM", "", unknownPercent, `Custom allreduce is disabled because (?P<custom_all_reduce_disabled>[^.]+)`),
	progress("S-CUSTOMAR", "", unknownPercent, `^Registering (?P<custom_all_reduce_addresses>\d+) cuda graph addresses`),
	progress("S-READY", PhaseServing, 100, `server is fired up and ready to roll`),
}

var sglangFailures = []Signature{
	signature("S-NOMEM", ReasonOutOfMemory, CauseMemory, CauseMemory, `Not enough memory\. Please try to increase --mem-fraction-static`),
	signature("S-CAPT", ReasonOutOfMemory, CauseMemory, CauseMemory, `Capture cuda graph failed|Fail when using backend: \w+ for prefill runner`),
	signature("S-UNBAL", "gpu_memory_unbalanced", CauseHost, "", `memory capacity is unbalanced`).tag(),
	signature("S-RANKDEAD", ReasonCrashed, CauseConsequence, CauseConsequence, `Rank (\d+) scheduler died during initialization \(exit code: (-?\d+)`).fatal(),
	signature("S-INIT", ReasonCrashed, CauseConsequence, CauseConsequence, `Initialization failed\. Please see the error`).fatal(),
	signature("S-WARM", ReasonCrashed, CauseCrash, "", `Initialization failed\. warmup error`).fatal(),
	signature("S-EXC", ReasonCrashed, CauseConsequence, CauseConsequence, `(?:Scheduler|DetokenizerManager|TokenizerManager|DataParallelController|\w+Router) hit an exception`).fatal(),
	signature("S-SIGQ", ReasonCrashed, CauseConsequence, CauseConsequence, `Received sigquit from a child|SIGQUIT received`).fatal(),
	signature("S-SUBDEAD", ReasonCrashed, CauseConsequence, CauseConsequence, `Subprocess (\S+) \(pid=(\d+)\) crashed with exit code (-?\d+)`).fatal(),
	signature("S-WD", ReasonWatchdog, CauseHang, CauseHang, `[Ww]atchdog timeout \(self\.watchdog_timeout=`).fatal(),
	signature("S-HEALTH", ReasonWatchdog, "", CauseHang, `Health check failed\. Server couldn't get a response from detokenizer`),
	signature("S-RUNOOM", ReasonOutOfMemory, "", CauseMemory, `(?:Prefill|Decode) out of memory\.|alloc_req_slots runs out of memory`),
	signature("S-LEAK", ReasonCrashed, CauseCrash, CauseCrash, `memory leak detected!`),
	signature("S-NONE", "bad_argument", CauseConfiguration, "", `'>' not supported between instances of 'NoneType' and 'int'`),
	signature("S-TOPK", "bad_argument", CauseConfiguration, "", `only supports topk = 1|speculative_eagle_topk.* > 1.*page_size`),
	signature("S-CAND", "bad_argument", CauseConfiguration, "", `is not in the adaptive config candidate_steps`),
	signature("S-STATIC", ReasonNotAsRequested, CauseTag, CauseTag, `speculative_adaptive disabled:`),
	signature("S-RUN48", "", CauseNote, CauseNote, `^Max running requests is reset to 48`),
	signature("S-SPECN", "", CauseNote, CauseNote, `^speculative_num_draft_tokens is adjusted`),
	// The tensor-parallel all-reduces of the captured batches go through SGLang's
	// own kernel, so that NCCL's settings act on what is too large for it.
	signature("S-CUSTOMAR", "", CauseNote, CauseNote, `Registering [1-9]\d* cuda graph addresses`).under(NCCLUntouched, ""),
	signature("S-RETRACT", "", "", CauseNote, `KV cache pool is full\. Retract requests`),
}
