package servers

import (
	"maps"
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
		{Paths: []string{"/props"}, Version: "/build_info", Effective: map[string]string{
			"total_slots":    "/total_slots",
			"model_path":     "/model_path",
			"context_length": "/default_generation_settings/n_ctx",
		}},
		{Paths: []string{"/slots"}, Effective: map[string]string{"speculative": "/*/speculative"}},
	},
	Metrics: &Metrics{
		Path: "/metrics", Flag: "--metrics",
		Sums: map[string][]string{
			// prompt_tokens_total counts the processed ones, without the cached.
			"prefix_queries":   {"llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"},
			"prefix_hits":      {"llamacpp:prompt_tokens_cached_total"},
			"generated_tokens": {"llamacpp:tokens_predicted_total"},
			"drafts":           {"llamacpp:spec_decode_num_drafts_total"},
			"draft_tokens":     {"llamacpp:spec_decode_num_draft_tokens_total"},
			"accepted_tokens":  {"llamacpp:spec_decode_num_accepted_tokens_total"},
		},
		ByPosition: "llamacpp:spec_decode_num_accepted_tokens_per_pos_total", PositionLabel: "position",
		Lengths: "with the bonus token",
	},
	Installed:   VersionSource{Flag: "--version"},
	Differences: llamacppDifferences,
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
	Arguments: []Argument{
		{Flags: []string{"--parallel", "-np", "--n-parallel"}, Fact: "total_slots", Free: []string{"-1"}},
		{Flags: []string{"--model", "-m"}, Fact: "model_path"},
		// The slots say whether they can speculate; the settings page says "none"
		// all the same.
		{Flags: []string{"--spec-type"}, Fact: "speculative", Default: "false", Presence: true, Speculation: true},
	},
	Rewrites: []Rewrite{
		{"L-SPECINIT", "speculative", has("--spec-type"), "a draft that cannot be used is left out with a line in the log"},
	},
	Limits: []Limit{
		{Flags: []string{"--parallel", "-np", "--n-parallel"}, Fact: "total_slots", Moves: "4 slots, or what memory allows"},
		{Flags: []string{"--ctx-size", "-c"}, Fact: "context_length", Moves: "--fit lowers it until everything fits"},
	},
	Processes: Processes{Helpers: commonHelpers},
	Progress:  llamacppProgress,
	Failures:  withCommon(llamacppFailures...),
	prefix:    regexp.MustCompile(`^(?:[\d.]+ )?(?:[IWED] )?(?:srv|slot|que) +\w*:\s`),
}

// llamacppDifferences go by build number.
var llamacppDifferences = []Difference{
	{"L-OLDFLAGS", Span{Until: "b8967"}, "speculation is written with --model-draft and --draft-max",
		func(k *Kind) {
			rendering := *k.Speculation
			rendering.Fields = []Field{{Name: "--model-draft", Source: SourceDraftModel}, {Name: "--draft-max", Source: SourceSteps}}
			rendering.Methods = map[string]Method{
				"draft":       {Name: "draft", Draft: DraftRequired},
				"draft_model": {Name: "draft", Draft: DraftRequired},
				"standalone":  {Name: "draft", Draft: DraftRequired},
			}
			k.Speculation = &rendering
			k.Arguments = slices.DeleteFunc(slices.Clone(k.Arguments), func(a Argument) bool { return a.Fact == "speculative" })
			k.Rules = slices.DeleteFunc(slices.Clone(k.Rules), func(r Rule) bool { return r.ID == "L1" || r.ID == "L3" })
		}},
	{"L-DRAFT16", Span{Until: "b9235"}, "without a value up to 16 tokens are drafted, above a probability of 0.75; later 3 and any", nil},
	{"L-PERREQUEST", Span{Until: "b9716"}, "requests may change the draft's length", nil},
	{"L-NOCOUNTERS", Span{Until: "b10290"}, "no speculative counters: acceptance is in the log and in each answer only",
		func(k *Kind) {
			metrics := *k.Metrics
			metrics.Sums = maps.Clone(metrics.Sums)
			for _, name := range []string{"drafts", "draft_tokens", "accepted_tokens"} {
				delete(metrics.Sums, name)
			}
			metrics.ByPosition = ""
			k.Metrics = &metrics
		}},
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
	progress("L-BUILD", PhaseStarting, unknownPercent, `^build: (?P<server_version>\d+) \([0-9a-f]+\)`),
	progress("L-OFFLOAD", PhaseWeights, unknownPercent, `offloaded (?P<offloaded_layers>\d+/\d+) layers to GPU`),
	progress("L-LOADD", PhaseWeights, 0, `loading draft model '`),
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
	signature("L-SPECINIT", ReasonNotAsRequested, CauseTag, CauseTag, `failed to initialize speculative decoding context`),
	signature("L-NOSPEC", ReasonNotAsRequested, CauseTag, CauseTag, `speculative decoding not supported by this context`),
	signature("L-SPECB", ReasonCrashed, CauseCrash, CauseCrash, `failed to process speculative batch`),
	// Remarks of a build without NCCL; a fault only for a trial that tunes NCCL.
	signature("L-NCCL", ReasonNotAsRequested, CauseTag, CauseTag, `NCCL (?:init failed|not compiled in|disabled)`).
		under(NCCLUntouched, CauseNote),
	signature("L-LOAD", "model_not_loaded", CauseMemory, "", `exiting due to model loading error|failed to create_context`).fatal(),
}
