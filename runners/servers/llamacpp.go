package servers

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// llamacpp describes llama-server of llama.cpp around build b10573.
var llamacpp = Kind{
	Name:  "llamacpp",
	Title: "llama.cpp",
	Ready: Ready{
		// The port opens at once; every page answers 503 until the model is there.
		Paths: []string{"/health"}, Status: 200, Timeout: 5 * time.Second,
	},
	Models: "/v1/models",
	// It cannot flush; a request that does not look at the cache does as well.
	Body: map[string]any{"cache_prompt": false},
	// It closes the connection after a streamed answer although it says keep-alive:
	// the next request on it would meet the end of the stream, or not, by chance.
	Header: map[string]string{"Connection": "close"},
	Info: []Info{
		{Path: "/props", Version: "build_info", Effective: map[string]string{
			"total_slots":    "total_slots",
			"model_path":     "model_path",
			"context_length": "default_generation_settings.n_ctx",
		}},
	},
	Speculation: &Rendering{
		Methods: map[string]Method{
			"draft":        {Name: "draft-simple", Draft: DraftRequired},
			"draft_model":  {Name: "draft-simple", Draft: DraftRequired},
			"standalone":   {Name: "draft-simple", Draft: DraftRequired},
			"eagle3":       {Name: "draft-eagle3", Draft: DraftRequired},
			"mtp":          {Name: "draft-mtp", Draft: DraftOptional},
			"nextn":        {Name: "draft-mtp", Draft: DraftOptional},
			"ngram":        {Name: "ngram-simple", Draft: DraftNone},
			"ngram_simple": {Name: "ngram-simple", Draft: DraftNone},
			"ngram_mod":    {Name: "ngram-mod", Draft: DraftNone},
		},
		Fields: []Field{
			{Name: "--spec-type", Source: SourceMethod},
			{Name: "--spec-draft-model", Source: SourceDraftModel},
			{Name: "--spec-draft-n-max", Source: SourceSteps},
		},
	},
	DraftFlags: []string{"-md", "--model-draft", "--spec-draft-model"},
	Rules:      llamacppRules,
	Progress:   llamacppProgress,
	Failures:   withCommon(llamacppFailures...),
	prefix:     regexp.MustCompile(`^(?:[\d.]+ )?(?:[IWED] )?(?:srv|slot|que) +\w*:\s`),
}

var llamacppRules = []Rule{
	{"L1", Refuse, "a draft model without --spec-type is loaded and never used (llama.cpp#25345)",
		func(c Command) bool {
			return c.Has("-md", "--model-draft", "--spec-draft-model") && !c.Has("--spec-type")
		}},
	{"L2", Warn, "--fit is on by default and lowers context or offload without a word to fit memory: add --fit off",
		func(c Command) bool { return !c.Is("--fit", "off") && !c.Is("-fit", "off") }},
	{"L3", Refuse, "--draft-max, --draft-min, --draft and --draft-n-min were removed in b8967: use --spec-draft-n-max and --spec-draft-n-min",
		func(c Command) bool { return c.Has("--draft-max", "--draft-min", "--draft", "--draft-n-min") }},
	{"L4", Refuse, "--no-warmup leaves the warm-up to the first measured requests",
		func(c Command) bool { return c.Has("--no-warmup") }},
	{"L5", Refuse, "llama-server takes a flag and its value as two arguments: --flag=value is an invalid argument to it",
		func(c Command) bool {
			return slices.ContainsFunc(c.Args, func(arg string) bool { return isFlag(arg) && strings.Contains(arg, "=") })
		}},
}

var llamacppProgress = []Progress{
	progress("L-LOAD0", PhaseWeights, 0, `loading model '`),
	progress("L-SLOTS", PhaseKVCache, 100, `initializing, n_slots = (?P<total_slots>\d+), n_ctx_slot = (?P<context_length>\d+)`),
	progress("L-READY", PhaseServing, 100, `model loaded`),
	progress("L-SPEC", "", unknownPercent, `draft acceptance = [\d.]+ \(.*\), mean len = *(?P<logged_acceptance_length>[\d.]+)`),
	progress("L-HTTP", PhaseServing, 100, `listening on (\S+)`),
}

var llamacppFailures = []Signature{
	signature("L-REMOVED", "bad_argument", CauseConfiguration, "", `the argument has been removed\.`),
	signature("L-ARGS", "bad_argument", CauseConfiguration, "", `error while handling argument "|^error: invalid argument: `),
	signature("L-FLASH", "bad_argument", CauseConfiguration, "", `quantized V cache requires flash_attn`),
	signature("L-FILE", "model_not_found", CauseHost, "", `failed to open GGUF file`).
		under(WithDraftModel, CauseConfiguration),
	signature("L-ALLOC", ReasonOutOfMemory, CauseMemory, CauseMemory, `cudaMalloc failed|failed to allocate .*buffer|unable to allocate \S+ buffer`),
	signature("L-ASSERT", ReasonCrashed, CauseCrash, CauseCrash, `GGML_ASSERT\(.*\) failed`),
	signature("L-DRAFT", "draft_model", CauseConfiguration, "", `failed to load draft model`),
	// The server goes on without speculation and stays healthy.
	signature("L-SPECINIT", "not_as_requested", CauseTag, CauseTag, `failed to initialize speculative decoding context`),
	signature("L-NOSPEC", "not_as_requested", CauseTag, CauseTag, `speculative decoding not supported by this context`),
	signature("L-SPECB", ReasonCrashed, CauseCrash, CauseCrash, `failed to process speculative batch`),
	// Remarks of a build without NCCL; a fault only for a trial that tunes NCCL.
	signature("L-NCCL", "not_as_requested", CauseTag, CauseTag, `NCCL (?:init failed|not compiled in|disabled)`).
		under(NCCLUntouched, CauseNote),
	signature("L-LOAD", "model_not_loaded", CauseMemory, "", `exiting due to model loading error|failed to create_context`).fatal(),
}
