package spec

import "github.com/invopop/jsonschema"

// The types of this file are the campaign file as people write it. Their yaml
// tags are the keys, their descriptions the schema and the reference.

type fileRoot struct {
	Campaign      *text                `yaml:"campaign" jsonschema_description:"Name of the campaign: letters, digits, dot, dash and underscore. Runs of one name are numbered." jsonschema:"required"`
	Model         *text                `yaml:"model" jsonschema_description:"Label of the model. Results are keyed by it and by the model's own config where that can be read. Default: the model that server.command names."`
	Host          *text                `yaml:"host" jsonschema_description:"Where trials run: local. Not part of a campaign's identity."`
	GPUs          *gpuSelection        `yaml:"gpus" jsonschema_description:"GPUs that the campaign uses: all, or a list of indices such as [0, 1]. Default: all."`
	Vars          section[scalar]      `yaml:"vars" jsonschema_description:"Names that ${name} stands for wherever the file has text: command, arguments, variables, values of knobs, paths and labels."`
	Server        fileServer           `yaml:"server" jsonschema_description:"What is launched." jsonschema:"required"`
	Timeouts      fileTimeouts         `yaml:"timeouts" jsonschema_description:"Hard limits, one for each stage, each at least 1s. Units are required: d, h, m, s, ms."`
	Workload      fileWorkload         `yaml:"workload" jsonschema_description:"What the load generator sends. For kind: command it holds only rounds and a name." jsonschema:"required"`
	Objective     fileObjective        `yaml:"objective" jsonschema_description:"What is maximized or minimized." jsonschema:"required"`
	Current       section[scalar]      `yaml:"current" jsonschema_description:"What production runs today, by knob. It is measured and compared like the baseline."`
	Expect        *fileExpect          `yaml:"expect" jsonschema_description:"What the baseline is expected to reach: a metric with its value, and on_shortfall: continue (the default) or pause."`
	Space         fileSpace            `yaml:"space" jsonschema_description:"The knobs." jsonschema:"required"`
	Try           []section[scalar]    `yaml:"try" jsonschema_description:"Configurations to measure first, each a mapping of knobs to values."`
	Search        fileSearch           `yaml:"search" jsonschema_description:"How configurations are proposed."`
	Budget        fileBudget           `yaml:"budget" jsonschema_description:"How much may be used." jsonschema:"required"`
	Confirm       *fileConfirm         `yaml:"confirm" jsonschema_description:"How the end is measured: auto, or {top, relaunches}. Default: auto."`
	MinimalEffect *scalar              `yaml:"minimal_effect" jsonschema_description:"Relative difference that does not matter; an interval within it of 1 is no_effect. Default: 0.01."`
	Seed          *scalar              `yaml:"seed" jsonschema_description:"Makes proposals and prompts repeatable. Default: drawn once for each run and stored."`
	Metrics       section[filePattern] `yaml:"metrics" jsonschema_description:"kind: command only. How each metric is found in the output. Default: a JSON object of numbers on the last line of stdout."`
	Failure       *fileFailure         `yaml:"failure" jsonschema_description:"kind: command only. Which exit statuses are which class of failure. Default: infeasible."`
	Simulation    *fileSimulation      `yaml:"simulation" jsonschema_description:"Only with the simulated server: how much faster than real it serves."`

	Where places `yaml:"-"`
}

// later lists keys of the contract that a later version carries out.
func (fileRoot) later() []string { return []string{"before", "after", "notify", "screen"} }

type fileServer struct {
	Kind      *text                `yaml:"kind" jsonschema_description:"sglang, vllm, trtllm, llamacpp, custom, or command for a program that is no server." jsonschema:"required"`
	Command   *argumentList        `yaml:"command" jsonschema_description:"Argument list, never a shell line. ${port}, ${host}, ${trial_dir} and ${nocturne} are filled at launch; one argument stays one argument." jsonschema:"required"`
	Env       section[environment] `yaml:"env" jsonschema_description:"Variables for the server: a value, or {from_env: NAME} or {from_file: PATH} for a secret, which is read at launch and stored nowhere."`
	Inherit   []text               `yaml:"inherit" jsonschema_description:"Variables to take over from the tuner's environment, which is otherwise dropped but for a short list."`
	Directory *text                `yaml:"directory" jsonschema_description:"Working directory of the server. Default: the folder of the campaign file."`
	Model     *text                `yaml:"model_id" jsonschema_description:"Id that the server must report when it is ready. Default: any."`

	Where places `yaml:"-"`
}

type fileSecret struct {
	FromEnv  *text `yaml:"from_env" jsonschema_description:"Variable of the tuner's environment."`
	FromFile *text `yaml:"from_file" jsonschema_description:"File whose content, less a final line end, is the value. Relative to the campaign file."`

	Where places `yaml:"-"`
}

type fileTimeouts struct {
	Launching duration `yaml:"launching" jsonschema_description:"Until the process runs. Default: 2m."`
	Loading   duration `yaml:"loading" jsonschema_description:"Until the server is ready. Default: 45m."`
	Stalled   duration `yaml:"stalled" jsonschema_description:"Without any sign of progress while loading. Default: 10m."`
	Verifying duration `yaml:"verifying" jsonschema_description:"For the checks after loading. Default: 5m."`
	Warming   duration `yaml:"warming" jsonschema_description:"For the warm-up. Default: 10m."`
	Round     duration `yaml:"round" jsonschema_description:"For one round at one load point, or one run of a command. Default: 10m."`
	Stopping  duration `yaml:"stopping" jsonschema_description:"From asking the server to stop to killing it. Default: 1m."`
}

type fileWorkload struct {
	Name         *text        `yaml:"name" jsonschema_description:"Name of the workload, for people."`
	Dataset      *text        `yaml:"dataset" jsonschema_description:"random, prompts (with file), or shared-prefix: random prompts that begin alike in groups. Acceptance of a draft means nothing on random prompts. Default: random."`
	File         *text        `yaml:"file" jsonschema_description:"Prompts: JSON lines with a prompt field, or the ShareGPT shape. Relative to the campaign file."`
	InputTokens  *scalar      `yaml:"input_tokens" jsonschema_description:"Length of random prompts in tokens, exact where the server has a tokenizer page; with shared-prefix of what follows the prefix. Default: 512."`
	PrefixTokens *scalar      `yaml:"prefix_tokens" jsonschema_description:"Length of a shared prefix in tokens. Default: 256."`
	Prefixes     *scalar      `yaml:"prefixes" jsonschema_description:"Shared prefixes, each of an equal part of the requests. Default: 10."`
	OutputTokens *scalar      `yaml:"output_tokens" jsonschema_description:"Tokens to generate for each request. Default: 256."`
	Requests     *scalar      `yaml:"requests" jsonschema_description:"Requests in a round. Default: four for each of the concurrency, at least 16, and with a window what it takes at the highest rate."`
	Warmup       *scalar      `yaml:"warmup" jsonschema_description:"Requests sent and discarded before the first round. Default: the concurrency, at least 2."`
	Concurrency  *numberList  `yaml:"concurrency" jsonschema_description:"Requests in flight: a number, or a list for several load points in each launch. With request_rate the most in flight. Default: 1, or no bound with request_rate."`
	RequestRate  *rateList    `yaml:"request_rate" jsonschema_description:"Requests a second, sent at times of their own however busy the server is: a number, or a list for several load points. Default: each request follows the end of another."`
	Burstiness   *scalar      `yaml:"burstiness" jsonschema_description:"Shape of the gamma distribution of the times between requests: 1 is a Poisson process, less comes in bursts, more is steadier. Default: 1."`
	Window       duration     `yaml:"window" jsonschema_description:"Stop sending in a round after so long. Default: when all requests are sent."`
	Goodput      *fileGoodput `yaml:"goodput" jsonschema_description:"Service level that a request must keep to count in request_goodput."`
	Rounds       *rounds      `yaml:"rounds" jsonschema_description:"auto (until precise enough) or a number. Default: auto, and 1 for kind: command."`
	Endpoint     *text        `yaml:"endpoint" jsonschema_description:"completions, chat, or generate (the native one of SGLang). Default: completions."`
	IgnoreEOS    *bool        `yaml:"ignore_eos" jsonschema_description:"Force the output length. Default: true."`
	Temperature  *scalar      `yaml:"temperature" jsonschema_description:"Sampling temperature. Default: 0."`

	Where places `yaml:"-"`
}

type fileGoodput struct {
	TTFT duration `yaml:"ttft" jsonschema_description:"Longest time to the first token."`
	TPOT duration `yaml:"tpot" jsonschema_description:"Longest mean time of a token after the first."`
	E2EL duration `yaml:"e2el" jsonschema_description:"Longest time of the whole request."`

	Where places `yaml:"-"`
}

type fileObjective struct {
	Maximize  *text              `yaml:"maximize" jsonschema_description:"Metric to maximize, such as output_throughput."`
	Minimize  *text              `yaml:"minimize" jsonschema_description:"Metric to minimize, such as mean_tpot_ms."`
	Point     *scalar            `yaml:"at" jsonschema_description:"Concurrency whose metric counts, with several load points."`
	Aggregate *text              `yaml:"aggregate" jsonschema_description:"geomean: all load points count, with several load points."`
	Limits    section[fileLimit] `yaml:"limits" jsonschema_description:"Bounds on other metrics; a configuration that breaks one cannot win."`

	Where places `yaml:"-"`
}

type fileLimit struct {
	Max *scalar `yaml:"max" jsonschema_description:"Largest allowed value."`
	Min *scalar `yaml:"min" jsonschema_description:"Smallest allowed value."`

	Where places `yaml:"-"`
}

type fileSpace struct {
	Preset      []text               `yaml:"preset" jsonschema_description:"Versioned sets of knobs, such as nccl-pcie@1. Entries of the file override them, null removes one."`
	Env         removable[fileKnob]  `yaml:"env" jsonschema_description:"Knobs that are environment variables."`
	Flags       removable[fileKnob]  `yaml:"flags" jsonschema_description:"Knobs that are flags of the server."`
	Groups      removable[fileGroup] `yaml:"groups" jsonschema_description:"Knobs that are named bundles of variables and arguments."`
	Speculative *fileSpeculative     `yaml:"speculative" jsonschema_description:"Speculative decoding, rendered for the server kind. Zero steps is off, and always in the space."`
	Constraints []scalar             `yaml:"constraints" jsonschema_description:"Expressions that every configuration must satisfy. Names: variables, flag.snake_name, groups, speculative.steps ..."`

	Where places `yaml:"-"`
}

type fileKnob struct {
	Choices []scalar           `yaml:"choices" jsonschema_description:"The values; unset is absence. Absence is a value of every knob without a declared default."`
	Int     []scalar           `yaml:"int" jsonschema_description:"[low, high]: all integers of a range."`
	Step    *scalar            `yaml:"step" jsonschema_description:"Step of int. Default: 1."`
	Log2    []scalar           `yaml:"log2" jsonschema_description:"[low, high]: the powers of two of a range."`
	Switch  *bool              `yaml:"switch" jsonschema_description:"true: a flag without a value, absent or present."`
	Default *scalar            `yaml:"default" jsonschema_description:"Value of the baseline. Default: absent."`
	Unsafe  bool               `yaml:"unsafe" jsonschema_description:"Admit values that are known to give wrong results on some machines."`
	When    section[oneOrMore] `yaml:"when" jsonschema_description:"{knob: [values]}: the knob matters only while that knob has one of these values."`

	Where places `yaml:"-"`
}

type fileGroup struct {
	Choices section[fileBundle] `yaml:"choices" jsonschema_description:"Name and content of each bundle." jsonschema:"required"`
	Default *scalar             `yaml:"default" jsonschema_description:"Bundle of the baseline. Default: none of them."`
	When    section[oneOrMore]  `yaml:"when" jsonschema_description:"{knob: [values]}: the group matters only while that knob has one of these values."`

	Where places `yaml:"-"`
}

type fileBundle struct {
	Args *argumentList   `yaml:"args" jsonschema_description:"Arguments added to the command."`
	Env  section[scalar] `yaml:"env" jsonschema_description:"Variables added to the environment."`

	Where places `yaml:"-"`
}

type fileSpeculative struct {
	Method      *text      `yaml:"method" jsonschema_description:"eagle, eagle3, mtp, ngram, draft_model ... as the server kind knows them." jsonschema:"required"`
	DraftModel  *text      `yaml:"draft_model" jsonschema_description:"Path or id of the draft model or head."`
	Steps       *levelList `yaml:"steps" jsonschema_description:"Draft steps: {int: [0, 10]}, {choices: [0, 2, 5]} or one number." jsonschema:"required"`
	TopK        *levelList `yaml:"topk" jsonschema_description:"Branches at each step: {choices: [1, 4]} or one number. Default: 1."`
	DraftTokens *levelList `yaml:"draft_tokens" jsonschema_description:"Tokens verified at once: auto, or levels for topk above 1. auto is steps + 1 for topk 1, else 8 within what the tree allows. Default: auto."`

	Where places `yaml:"-"`
}

type fileSearch struct {
	Sampler *text `yaml:"sampler" jsonschema_description:"How the next configuration is chosen; see below for the words. Default: auto."`
	Stop    *text `yaml:"stop" jsonschema_description:"When the search ends: budget (all trials), or settled (as soon as the sampler expects no gain that one launch could tell from noise). Default: budget."`
	History *bool `yaml:"history" jsonschema_description:"Learn from earlier campaigns on the same hardware: their best configurations are early trials, their measurements a hint where to look. Default: true."`
	Recipes *bool `yaml:"recipes" jsonschema_description:"Try the published configurations that fit the machine and the space early. Default: true."`

	Where places `yaml:"-"`
}

type fileBudget struct {
	Trials *scalar  `yaml:"trials" jsonschema_description:"Search trials; references and confirmation come on top. Default: 40."`
	Time   duration `yaml:"time" jsonschema_description:"Time from the beginning of the campaign."`
	Window *scalar  `yaml:"window" jsonschema_description:"Daily span in which launches are allowed, such as 22:00-07:00 Europe/Berlin."`
	Nights *scalar  `yaml:"nights" jsonschema_description:"Number of windows. Default: 1."`
	Until  *scalar  `yaml:"until" jsonschema_description:"Instant after which nothing is launched, RFC 3339."`

	Where places `yaml:"-"`
}

type filePattern struct {
	Regex *scalar `yaml:"regex" jsonschema_description:"RE2 expression; the group named value, or the first group, is the number. The last match counts." jsonschema:"required"`
	Unit  *text   `yaml:"unit" jsonschema_description:"Unit, for people."`

	Where places `yaml:"-"`
}

type fileFailure struct {
	Infeasible  []scalar `yaml:"infeasible" jsonschema_description:"Exit statuses that are the configuration's fault."`
	Transient   []scalar `yaml:"transient" jsonschema_description:"Exit statuses worth another attempt."`
	Environment []scalar `yaml:"environment" jsonschema_description:"Exit statuses that pause the campaign."`

	Where places `yaml:"-"`
}

type fileSimulation struct {
	ServingScale *scalar `yaml:"serving_scale" jsonschema_description:"Seconds that one second of the simulated server's serving stands for: its --sim-serving-scale. Metrics are reported unscaled." jsonschema:"required"`

	Where places `yaml:"-"`
}

// newReflector makes the generator of the schema.
func newReflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true}
}
