package spec

import "github.com/invopop/jsonschema"

// The types of this file are the campaign file as people write it. Their yaml
// tags are the keys, their descriptions the schema and the reference.

type fileRoot struct {
	Campaign      string               `yaml:"campaign" jsonschema_description:"Name of the campaign: letters, digits, dot, dash and underscore. Runs of one name are numbered." jsonschema:"required"`
	Model         string               `yaml:"model" jsonschema_description:"Label of the model. Results are keyed by it and by the model's own config where that can be read."`
	Host          string               `yaml:"host" jsonschema_description:"Where trials run: local. Not part of a campaign's identity."`
	GPUs          *gpuSelection        `yaml:"gpus" jsonschema_description:"GPUs that the campaign uses: all, or a list of indices such as [0, 1]. Default: all."`
	Vars          Section[Scalar]      `yaml:"vars" jsonschema_description:"Names that ${name} stands for in server.command, in arguments of groups and in paths."`
	Server        fileServer           `yaml:"server" jsonschema_description:"What is launched." jsonschema:"required"`
	Timeouts      fileTimeouts         `yaml:"timeouts" jsonschema_description:"Hard limits, one for each stage. Units are required: d, h, m, s, ms."`
	Workload      fileWorkload         `yaml:"workload" jsonschema_description:"What the load generator sends. For kind: command it holds only rounds." jsonschema:"required"`
	Objective     fileObjective        `yaml:"objective" jsonschema_description:"What is maximized or minimized." jsonschema:"required"`
	Current       Section[Scalar]      `yaml:"current" jsonschema_description:"What production runs today, by knob. It is measured and compared like the baseline."`
	Expect        *fileExpect          `yaml:"expect" jsonschema_description:"What the baseline is expected to reach."`
	Space         fileSpace            `yaml:"space" jsonschema_description:"The knobs." jsonschema:"required"`
	Try           []Section[Scalar]    `yaml:"try" jsonschema_description:"Configurations to measure first, each a mapping of knobs to values."`
	Search        fileSearch           `yaml:"search" jsonschema_description:"How configurations are proposed."`
	Budget        fileBudget           `yaml:"budget" jsonschema_description:"How much may be used." jsonschema:"required"`
	Confirm       *fileConfirm         `yaml:"confirm" jsonschema_description:"How the end is measured: auto, or {top, relaunches}. Default: auto."`
	MinimalEffect *Scalar              `yaml:"minimal_effect" jsonschema_description:"Relative difference that does not matter; an interval within it of 1 is no_effect. Default: 0.01."`
	Seed          *Scalar              `yaml:"seed" jsonschema_description:"Makes proposals and prompts repeatable. Default: drawn once for each run and stored."`
	Metrics       Section[filePattern] `yaml:"metrics" jsonschema_description:"kind: command only. How each metric is found in the output. Default: a JSON object of numbers on the last line of stdout."`
	Failure       *fileFailure         `yaml:"failure" jsonschema_description:"kind: command only. Which exit statuses are which class of failure. Default: infeasible."`
	Simulation    *fileSimulation      `yaml:"simulation" jsonschema_description:"Only with the simulated server: how much faster than real it serves."`

	At placeMap `yaml:"-"`
}

type fileServer struct {
	Kind      string               `yaml:"kind" jsonschema_description:"sglang, vllm, trtllm, llamacpp, custom, or command for a program that is no server." jsonschema:"required"`
	Command   []Scalar             `yaml:"command" jsonschema_description:"Argument list, never a shell line. ${port}, ${host}, ${trial_dir} and ${nocturne} are filled at launch; one argument stays one argument." jsonschema:"required"`
	Env       Section[environment] `yaml:"env" jsonschema_description:"Variables for the server: a value, or {from_env: NAME} or {from_file: PATH} for a secret, which is read at launch and stored nowhere."`
	Inherit   []string             `yaml:"inherit" jsonschema_description:"Variables to take over from the tuner's environment, which is otherwise dropped but for a short list."`
	Directory string               `yaml:"directory" jsonschema_description:"Working directory of the server. Default: the folder of the campaign file."`
	Model     string               `yaml:"model_id" jsonschema_description:"Id that the server must report when it is ready. Default: any."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

// environment is a value, or where a secret is found.
type environment struct {
	Value  Scalar
	Secret *fileSecret
}

type fileSecret struct {
	FromEnv  string   `yaml:"from_env" jsonschema_description:"Variable of the tuner's environment."`
	FromFile string   `yaml:"from_file" jsonschema_description:"File whose content, less a final line end, is the value."`
	Begin    Position `yaml:"-"`
}

type fileTimeouts struct {
	Launching Duration `yaml:"launching" jsonschema_description:"Until the process runs. Default: 2m."`
	Loading   Duration `yaml:"loading" jsonschema_description:"Until the server is ready. Default: 45m. At least 1s."`
	Stalled   Duration `yaml:"stalled" jsonschema_description:"Without any sign of progress while loading. Default: 10m."`
	Verifying Duration `yaml:"verifying" jsonschema_description:"For the checks after loading. Default: 5m."`
	Warming   Duration `yaml:"warming" jsonschema_description:"For the warm-up. Default: 10m."`
	Round     Duration `yaml:"round" jsonschema_description:"For one round at one load point, or one run of a command. Default: 10m."`
	Stopping  Duration `yaml:"stopping" jsonschema_description:"From asking the server to stop to killing it. Default: 1m."`
}

type fileWorkload struct {
	Name         string      `yaml:"name" jsonschema_description:"Name of the workload, for people."`
	Dataset      string      `yaml:"dataset" jsonschema_description:"random, or prompts (with file). Acceptance of a draft means nothing on random prompts."`
	File         string      `yaml:"file" jsonschema_description:"Prompts: JSON lines with a prompt field, or the ShareGPT shape. Relative to the campaign file."`
	InputTokens  *Scalar     `yaml:"input_tokens" jsonschema_description:"Length of random prompts in tokens. Default: 512."`
	OutputTokens *Scalar     `yaml:"output_tokens" jsonschema_description:"Tokens to generate for each request. Default: 256."`
	Requests     *Scalar     `yaml:"requests" jsonschema_description:"Requests in a round. Default: four for each of the concurrency, at least 16."`
	Warmup       *Scalar     `yaml:"warmup" jsonschema_description:"Requests sent and discarded before the first round. Default: the concurrency, at least 2."`
	Concurrency  *numberList `yaml:"concurrency" jsonschema_description:"Requests in flight: a number, or a list for several load points in each launch. Default: 1."`
	Rounds       *rounds     `yaml:"rounds" jsonschema_description:"auto (until precise enough) or a number. Default: auto."`
	Endpoint     string      `yaml:"endpoint" jsonschema_description:"completions, chat, or generate (the native one of SGLang). Default: completions."`
	IgnoreEOS    *bool       `yaml:"ignore_eos" jsonschema_description:"Force the output length. Default: true."`
	Temperature  *Scalar     `yaml:"temperature" jsonschema_description:"Sampling temperature. Default: 0."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

type fileObjective struct {
	Maximize  string             `yaml:"maximize" jsonschema_description:"Metric to maximize, such as output_throughput."`
	Minimize  string             `yaml:"minimize" jsonschema_description:"Metric to minimize, such as mean_tpot_ms."`
	Point     *Scalar            `yaml:"at" jsonschema_description:"Concurrency whose metric counts, with several load points."`
	Aggregate string             `yaml:"aggregate" jsonschema_description:"geomean: all load points count, with several load points."`
	Limits    Section[fileLimit] `yaml:"limits" jsonschema_description:"Bounds on other metrics; a configuration that breaks one cannot win."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

type fileLimit struct {
	Max *Scalar `yaml:"max" jsonschema_description:"Largest allowed value."`
	Min *Scalar `yaml:"min" jsonschema_description:"Smallest allowed value."`

	Begin Position `yaml:"-"`
}

type fileSpace struct {
	Preset      []string           `yaml:"preset" jsonschema_description:"Versioned sets of knobs, such as nccl-pcie@1. Entries of the file override them, null removes one."`
	Env         Section[fileKnob]  `yaml:"env" jsonschema_description:"Knobs that are environment variables."`
	Flags       Section[fileKnob]  `yaml:"flags" jsonschema_description:"Knobs that are flags of the server."`
	Groups      Section[fileGroup] `yaml:"groups" jsonschema_description:"Knobs that are named bundles of variables and arguments."`
	Speculative *fileSpeculative   `yaml:"speculative" jsonschema_description:"Speculative decoding, rendered for the server kind. Zero steps is off, and always in the space."`
	Constraints []Scalar           `yaml:"constraints" jsonschema_description:"Expressions that every configuration must satisfy. Names: variables, flag.snake_name, groups, speculative.steps ..."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

type fileKnob struct {
	Choices []Scalar          `yaml:"choices" jsonschema_description:"The values; unset is absence. Absence is a value of every knob without a declared default."`
	Int     []Scalar          `yaml:"int" jsonschema_description:"[low, high]: all integers of a range."`
	Step    *Scalar           `yaml:"step" jsonschema_description:"Step of int. Default: 1."`
	Log2    []Scalar          `yaml:"log2" jsonschema_description:"[low, high]: the powers of two of a range."`
	Switch  *bool             `yaml:"switch" jsonschema_description:"true: a flag without a value, absent or present."`
	Default *Scalar           `yaml:"default" jsonschema_description:"Value of the baseline. Default: absent."`
	Unsafe  bool              `yaml:"unsafe" jsonschema_description:"Admit values that are known to give wrong results on some machines."`
	When    Section[[]Scalar] `yaml:"when" jsonschema_description:"{knob: [values]}: the knob matters only while that knob has one of these values."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

type fileGroup struct {
	Choices Section[fileBundle] `yaml:"choices" jsonschema_description:"Name and content of each bundle." jsonschema:"required"`
	Default *Scalar             `yaml:"default" jsonschema_description:"Bundle of the baseline. Default: none of them."`

	Begin Position `yaml:"-"`
}

type fileBundle struct {
	Args []Scalar        `yaml:"args" jsonschema_description:"Arguments added to the command."`
	Env  Section[Scalar] `yaml:"env" jsonschema_description:"Variables added to the environment."`

	Begin Position `yaml:"-"`
}

type fileSpeculative struct {
	Method      string     `yaml:"method" jsonschema_description:"eagle, eagle3, mtp, ngram, draft_model ... as the server kind knows them." jsonschema:"required"`
	DraftModel  string     `yaml:"draft_model" jsonschema_description:"Path or id of the draft model or head."`
	Steps       *levelList `yaml:"steps" jsonschema_description:"Draft steps: {int: [0, 10]}, {choices: [0, 2, 5]} or one number." jsonschema:"required"`
	TopK        *levelList `yaml:"topk" jsonschema_description:"Branches at each step. Default: 1."`
	DraftTokens *levelList `yaml:"draft_tokens" jsonschema_description:"Tokens verified at once: auto, or levels. Default: auto."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

type fileSearch struct {
	Sampler string   `yaml:"sampler" jsonschema_description:"auto, descent, tpe, random or grid. Default: auto."`
	At      placeMap `yaml:"-"`
}

type fileBudget struct {
	Trials *Scalar  `yaml:"trials" jsonschema_description:"Search trials; references and confirmation come on top." jsonschema:"required"`
	Time   Duration `yaml:"time" jsonschema_description:"Time from the beginning of the campaign."`
	Window *Scalar  `yaml:"window" jsonschema_description:"Daily span in which launches are allowed, such as 22:00-07:00 Europe/Berlin."`
	Nights *Scalar  `yaml:"nights" jsonschema_description:"Number of windows. Default: 1."`
	Until  *Scalar  `yaml:"until" jsonschema_description:"Instant after which nothing is launched, RFC 3339."`

	Begin Position `yaml:"-"`
	At    placeMap `yaml:"-"`
}

type filePattern struct {
	Regex Scalar `yaml:"regex" jsonschema_description:"RE2 expression; the group named value, or the first group, is the number. The last match counts." jsonschema:"required"`
	Unit  string `yaml:"unit" jsonschema_description:"Unit, for people."`

	Begin Position `yaml:"-"`
}

type fileFailure struct {
	Infeasible  []int `yaml:"infeasible" jsonschema_description:"Exit statuses that are the configuration's fault."`
	Transient   []int `yaml:"transient" jsonschema_description:"Exit statuses worth another attempt."`
	Environment []int `yaml:"environment" jsonschema_description:"Exit statuses that pause the campaign."`

	Begin Position `yaml:"-"`
}

type fileSimulation struct {
	ServingScale *Scalar `yaml:"serving_scale" jsonschema_description:"Seconds that one second of the simulated server's serving stands for. Metrics are reported unscaled." jsonschema:"required"`

	Begin Position `yaml:"-"`
}

// newReflector makes the generator of the schema.
func newReflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true}
}
