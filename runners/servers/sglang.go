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
		// From 0.4.10.post2 on it generates a token; before that it was a constant.
		// The port opens once every scheduler is ready, before the warm-up.
		Paths: []string{"/health"}, Status: 200, Timeout: 25 * time.Second,
	},
	Models: "/v1/models",
	// Since 0.5.6; earlier releases ignore it.
	Streaming: map[string]any{"continuous_usage_stats": true},
	Flush:     &Flush{Method: "POST", Path: "/flush_cache", Refused: 400},
	Info: []Info{
		{Path: "/server_info", Version: "version", Effective: sglangEffective},
		{Path: "/get_server_info", Version: "version", Effective: sglangEffective}, // before 0.5.6
	},
	Launch: []LaunchVariable{readableEnvironment},
	// Written before the schedulers are spawned (entrypoints/engine.py). User
	// values of the NCCL pair are kept since 0.5.5.
	Written: []WrittenVariable{
		{Name: "NCCL_CUMEM_ENABLE", Value: "0"},
		{Name: "NCCL_NVLS_ENABLE", Value: "0"},
		{Name: "CUDA_DEVICE_MAX_CONNECTIONS", Value: "8", Always: true},
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
	Progress:   sglangProgress,
	Failures:   withCommon(sglangFailures...),
	prefix:     regexp.MustCompile(`^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)((?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\]\s`),
}

// The top level of the page holds arguments as parsed; what is in force stands
// in internal_states, one entry a data-parallel rank.
var sglangEffective = map[string]string{
	"speculative_num_steps":        "internal_states.0.speculative_num_steps",
	"speculative_eagle_topk":       "internal_states.0.speculative_eagle_topk",
	"speculative_num_draft_tokens": "internal_states.0.speculative_num_draft_tokens",
	"max_running_requests":         "internal_states.0.max_running_requests",
	"attention_backend":            "internal_states.0.attention_backend",
	"page_size":                    "internal_states.0.page_size",
	"chunked_prefill_size":         "internal_states.0.chunked_prefill_size",
	"mem_fraction_static":          "internal_states.0.mem_fraction_static",
	"avg_spec_accept_length":       "internal_states.0.avg_spec_accept_length",
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
	signature("S-WD", "watchdog", CauseHang, CauseHang, `[Ww]atchdog timeout \(self\.watchdog_timeout=`).fatal(),
	signature("S-HEALTH", "watchdog", "", CauseHang, `Health check failed\. Server couldn't get a response from detokenizer`),
	signature("S-RUNOOM", ReasonOutOfMemory, "", CauseMemory, `(?:Prefill|Decode) out of memory\.|alloc_req_slots runs out of memory`),
	signature("S-LEAK", ReasonCrashed, CauseCrash, CauseCrash, `memory leak detected!`),
	signature("S-NONE", "bad_argument", CauseConfiguration, "", `'>' not supported between instances of 'NoneType' and 'int'`),
	signature("S-TOPK", "bad_argument", CauseConfiguration, "", `only supports topk = 1|speculative_eagle_topk.* > 1.*page_size`),
	signature("S-CAND", "bad_argument", CauseConfiguration, "", `is not in the adaptive config candidate_steps`),
	signature("S-STATIC", "not_as_requested", CauseTag, CauseTag, `speculative_adaptive disabled:`),
	signature("S-RUN48", "", CauseNote, CauseNote, `^Max running requests is reset to 48`),
	signature("S-SPECN", "", CauseNote, CauseNote, `^speculative_num_draft_tokens is adjusted`),
	signature("S-RETRACT", "", "", CauseNote, `KV cache pool is full\. Retract requests`),
}
