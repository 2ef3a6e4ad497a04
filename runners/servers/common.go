package servers

import "slices"

// commonFailures are the lines of CUDA, NCCL, PyTorch, Python and Linux, which
// every server may print. Cause at start, then cause under load.
func commonFailures() []Signature {
	return slices.Concat([]Signature{
		signature("C-OOM", ReasonOutOfMemory, CauseMemory, CauseMemory,
			`(?:torch\.(?:cuda\.)?)?OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation`),
		signature("C-CUBLAS", ReasonOutOfMemory, CauseMemory, CauseMemory,
			`CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)`),
		signature("C-IMA", ReasonCrashed, CauseCrash, CauseCrash,
			`an illegal memory access was encountered`),
		signature("C-ASSERTD", ReasonCrashed, CauseCrash, CauseCrash,
			`device-side assert triggered`),
		signature("C-LAUNCH", ReasonCrashed, CauseCrash, CauseCrash,
			`unspecified launch failure|misaligned address|an illegal instruction was encountered`),
		signature("C-ECC", "gpu_fault", CauseHost, CauseHost,
			`uncorrectable ECC error|uncorrectable NVLink error`),
		// Xid 13, 31, 43 and 45 are faults of the program that ran; the others are
		// of the GPU, a link or the firmware (NVIDIA, "XID errors").
		signature("C-XIDAPP", ReasonCrashed, CauseCrash, CauseCrash,
			`NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (?:13|31|43|45)\b`),
		signature("C-XID", "gpu_fault", CauseHost, CauseHost,
			`NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)`),
		signature("C-DRIVER", "gpu_unavailable", CauseHost, CauseHost,
			`no CUDA-capable device|CUDA driver version is insufficient|system not yet initialized|Failed to initialize NVML|CUDA unknown error`),
	}, collectiveFailures(), []Signature{
		signature("C-PORT", ReasonPortInUse, CauseTransient, "",
			`(?i)address already in use|\[Errno 98\]|port \d+ is in use|Port is already in use|couldn't bind HTTP server socket|Failed to bind socket`),
		signature("C-NOSPC", ReasonNoSpace, CauseHost, CauseHost,
			`No space left on device|\[Errno 28\]`),
		signature("C-FD", "too_many_files", CauseHost, CauseHost,
			`Too many open files|\[Errno 24\]`),
		signature("C-BUS", "bus_error", CauseHost, CauseHost,
			`Bus error|exit code:? -7\b|SIGBUS`),
		signature("C-NOMODEL", "model_not_found", CauseHost, "",
			`RepositoryNotFoundError|LocalEntryNotFoundError|HFValidationError|is not a local folder and is not a valid model identifier|does not appear to have a file named`).
			under(WithDraftModel, CauseConfiguration),
		signature("C-SHARD", "model_damaged", CauseHost, "",
			`SafetensorError|MetadataIncompleteBuffer|HeaderTooLarge`),
		signature("C-SHAPE", "model_mismatch", CauseConfiguration, "",
			`(?i)size mismatch for|shapes? mismatch|param(?:_data)?\.(?:size\(\)|shape) == loaded_weight\.(?:size\(\)|shape)|mat1 and mat2 shapes cannot be multiplied`),
		signature("C-KEY", "model_mismatch", CauseConfiguration, "", `^KeyError: `),
		signature("C-ARGS", "bad_argument", CauseConfiguration, "",
			`error: (?:unrecognized arguments|ambiguous option|argument \S+|the following arguments are required)`),
		signature("C-VALID", "bad_argument", CauseConfiguration, "",
			`pydantic.*ValidationError|validation errors? for \w+`),
		signature("C-VERSION", "version_mismatch", CauseHost, "",
			`is less than the minimum required version|with minimum required version .* is not installed`),
		signature("C-LINK", "library_missing", CauseHost, "",
			`undefined symbol|cannot open shared object file|GLIBC(?:XX)?_[\d.]+' not found`),
	})
}

// collectiveFailures are the lines of PyTorch about NCCL; those of NCCL itself
// are in nccl.go. What is the configuration's fault when the trial sets NCCL
// variables is the host's when it sets none.
func collectiveFailures() []Signature {
	return []Signature{
		// Codes under which PyTorch reports an error of NCCL. NCCL's own text, which
		// says why, comes after them.
		signature("C-NCCLUSE", "invalid_usage", CauseConsequence, CauseConsequence,
			`ncclInvalid(?:Usage|Argument)`).alone(CauseConfiguration).under(NCCLUntouched, CauseHost),
		signature("C-NCCLSYS", "system_error", CauseConsequence, CauseConsequence,
			`ncclSystemError|ncclInternalError`).alone(CauseConfiguration).under(NCCLUntouched, CauseHost),
		signature("C-NCCLCUDA", "cuda_error", CauseConsequence, CauseConsequence,
			`ncclUnhandledCudaError`).alone(CauseCrash),
		signature("C-NCCLREM", ReasonCrashed, CauseConsequence, CauseConsequence,
			`ncclRemoteError`),
		signature("C-NCCLHB", ReasonCrashed, CauseConsequence, CauseConsequence,
			`HeartbeatMonitor|"should dump" flag|watchdog got stuck|TCPStore.*(?:Broken pipe|Connection reset|recvBytes)`),
		signature("C-DIST", "distributed_init", CauseTransient, CauseConsequence,
			`Dist(?:Network|Store)Error|The server socket has failed to (?:listen|bind)`),
	}
}

// withCommon puts the common signatures before a kind's own: they read the
// inner error of a line that also names the stage it happened in.
func withCommon(own ...Signature) []Signature {
	return append(commonFailures(), own...)
}
