package servers

import "slices"

// Reason is a code that a failed or invalid trial carries, and what it means.
type Reason struct {
	Code string
	// Cause is the usual one. Where circumstances change it, Meaning says so.
	Cause   Cause
	Meaning string
}

// Reason codes that hosts give by themselves, without a line of the log.
const (
	ReasonArgumentRefused   = "argument_refused"
	ReasonSecretMissing     = "secret_missing"
	ReasonConfConflict      = "nccl_conf_conflict"
	ReasonConfUnreadable    = "nccl_conf_unreadable"
	ReasonLaunchFailed      = "launch_failed"
	ReasonNotExecutable     = "not_executable"
	ReasonNotRecorded       = "launch_not_recorded"
	ReasonPortInUse         = "port_in_use"
	ReasonNoSpace           = "no_space"
	ReasonOutOfMemory       = "out_of_memory"
	ReasonHostMemory        = "out_of_host_memory"
	ReasonExitedEarly       = "exited_early"
	ReasonDiedUnderLoad     = "died_under_load"
	ReasonCrashed           = "crashed"
	ReasonLoadingTimeout    = "loading_timeout"
	ReasonStalled           = "stalled"
	ReasonStalledCollective = "stalled_collective_init"
	ReasonWatchdog          = "watchdog"
	ReasonNotAsRequested    = "not_as_requested"
	ReasonWorkersMissing    = "workers_missing"
	ReasonWrongModel        = "wrong_model"
	ReasonNoCompletion      = "no_completion"
	ReasonVerifyingTimeout  = "verifying_timeout"
	ReasonWarmingFailed     = "warming_failed"
	ReasonWarmingTimeout    = "warming_timeout"
	ReasonRoundTimeout      = "round_timeout"
	ReasonRequestsFailed    = "requests_failed"
	ReasonOutputLength      = "length"
	ReasonPrefixCache       = "prefix_cache"
	ReasonClientLimited     = "client_limited"
	ReasonGPUSlowdown       = "gpu_slowdown"
	ReasonEnvNotApplied     = "env_not_applied"
	ReasonWorkload          = "workload_unusable"
	ReasonHostDirty         = "host_dirty"
	ReasonNonFinite         = "non_finite"
	ReasonNoMetrics         = "no_metrics"
	ReasonCommandFailed     = "command_failed"
	ReasonTunerError        = "runner_error"
)

// Reasons lists every reason code of a runner, in the order of a trial's life;
// those of NCCL at the end.
func Reasons() []Reason { return append(slices.Clone(reasons), ncclReasons()...) }

// LookUpReason returns the entry of a code.
func LookUpReason(code string) (Reason, bool) {
	all := Reasons()
	i := slices.IndexFunc(all, func(r Reason) bool { return r.Code == code })
	if i < 0 {
		return Reason{}, false
	}
	return all[i], true
}

var reasons = []Reason{
	// Before the server runs.
	{ReasonArgumentRefused, CauseConfiguration, "the arguments break a rule of this server and would fail or mislead, so nothing was launched"},
	{ReasonSecretMissing, CauseHost, "a secret that the campaign names could not be read at launch"},
	{ReasonConfConflict, CauseHost, "an NCCL configuration file sets a variable that is being tuned"},
	{ReasonConfUnreadable, CauseHost, "an NCCL configuration file exists but cannot be read, so what it sets is unknown"},
	{ReasonLaunchFailed, CauseHost, "the supervisor or the server could not be started"},
	{ReasonNotExecutable, CauseHost, "the program of the command does not exist or may not be run"},
	{ReasonNotRecorded, CauseHost, "the launch could not be put on record, so nothing was started"},
	{ReasonTunerError, CauseHost, "the runner itself could not go on"},

	// The arguments and the model.
	{"bad_argument", CauseConfiguration, "the server refused an argument or a combination of them"},
	{"draft_model", CauseConfiguration, "the draft model cannot be loaded or does not fit the server"},
	{"model_mismatch", CauseConfiguration, "weights do not have the expected names or shapes; usually a draft head of another model, or its quantization must be stated"},
	{"model_not_found", CauseHost, "the model or one of its files does not exist; of a configuration with a draft model its fault"},
	{"model_not_loaded", CauseMemory, "the server gave up loading the model without saying more; usually memory"},
	{"model_damaged", CauseHost, "a weight file is damaged or cut short"},
	{"version_mismatch", CauseHost, "a package is older than the server needs"},
	{"library_missing", CauseHost, "a shared library or a symbol is missing"},

	// Resources of the host.
	{ReasonPortInUse, CauseTransient, "the port was taken between choosing and binding it"},
	{"distributed_init", CauseTransient, "the workers could not reach each other at start"},
	{"mpi_bootstrap", CauseTransient, "MPI could not connect its workers"},
	{ReasonNoSpace, CauseHost, "no space left on a device, often /dev/shm"},
	{"too_many_files", CauseHost, "the limit of open files was reached"},
	{"bus_error", CauseHost, "a bus error, usually because /dev/shm is full"},
	{ReasonHostMemory, CauseConfiguration, "the kernel killed a process because the memory of the host ran out"},
	{"gpu_unavailable", CauseHost, "the driver or the GPU is not usable"},
	{"gpu_fault", CauseHost, "the GPU or a link reported a hardware fault"},
	{"gpu_memory_taken", CauseHost, "GPU memory is held by another process"},
	{"gpu_memory_unbalanced", CauseHost, "the GPUs have unequal free memory, so the server shrank its cache"},
	{ReasonHostDirty, CauseHost, "processes of the trial could not be removed"},

	// Memory, kernels, collectives.
	{ReasonOutOfMemory, CauseMemory, "GPU memory did not suffice; transient when the host was not clean at launch"},
	{ReasonWatchdog, CauseHang, "the server's own watchdog saw no progress"},
	{ReasonCrashed, CauseCrash, "a kernel or the process crashed"},
	{"server_limit", CauseLimit, "a time limit inside the server fired before ours"},

	// Waiting.
	{ReasonExitedEarly, CauseCrash, "the server ended before it was ready and no line of its log explains why"},
	{ReasonLoadingTimeout, CauseLimit, "loading took longer than timeouts.loading although it was getting on; raise the limit"},
	{ReasonStalled, CauseHang, "no log line, no phase and no work of any process for timeouts.stalled"},
	{ReasonStalledCollective, CauseConfiguration, "a collective made no progress, at its set-up or with every rank spinning; without a transport variable in the trial it counts as a hang"},
	{ReasonWrongModel, CauseHost, "the server serves another model than the campaign expects"},
	{ReasonNoCompletion, CauseCrash, "the server called itself ready but answered no completion"},
	{ReasonWorkersMissing, CauseCrash, "the server answers although fewer processes compute than its command starts"},
	{ReasonVerifyingTimeout, CauseHang, "verifying took longer than timeouts.verifying"},

	// Under load.
	{ReasonWarmingFailed, CauseCrash, "requests of the warm-up failed"},
	{ReasonWarmingTimeout, CauseHang, "the warm-up took longer than timeouts.warming"},
	{ReasonDiedUnderLoad, CauseCrash, "the server ended under load and no line of its log explains why"},
	{ReasonRequestsFailed, CauseCrash, "too many requests failed"},
	{ReasonRoundTimeout, CauseHang, "a round took longer than timeouts.round"},
	{ReasonWorkload, CauseHost, "the workload cannot be sent: a prompts file that cannot be read, or an endpoint that the server lacks"},

	// Measured, but must not count.
	{ReasonEnvNotApplied, CauseTag, "a process of the server does not have the environment that was asked for"},
	{ReasonNotAsRequested, CauseTag, "the server switched off what the configuration asked for, or runs it with another value"},
	{ReasonPrefixCache, CauseMeasurement, "more than 1 % of the prompt tokens came from the prefix cache"},
	{ReasonClientLimited, CauseDisturbed, "the load generator was the bottleneck, so the numbers are its own: it wants cores of its own, or a smaller load"},
	{ReasonGPUSlowdown, CauseDisturbed, "the hardware slowed a GPU down for heat or power while it was measured"},
	{ReasonOutputLength, CauseMeasurement, "answers were shorter than asked for"},

	// Commands.
	{ReasonCommandFailed, CauseConfiguration, "the command ended with a status that is not mapped to a class"},
	{ReasonNoMetrics, CauseConfiguration, "the command ended well but its output holds no metrics in the declared form"},
	{ReasonNonFinite, CauseConfiguration, "a metric is not a finite number"},
}
