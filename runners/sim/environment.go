package sim

import (
	"maps"
	"slices"
	"strings"
)

// workerEnvironment is what the scheduler processes start with: the server's own
// environment and what SGLang writes into it before it spawns them
// (python/sglang/srt/entrypoints/engine.py, 0.5.18).
func workerEnvironment(o *options, env map[string]string) map[string]string {
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	if o.faults.has(faultScrubEnv) {
		maps.DeleteFunc(out, func(name, _ string) bool {
			return slices.ContainsFunc([]string{"NCCL_", "SGLANG_", "CUDA_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		})
	}
	written := func(name, value string, force bool) {
		if _, set := out[name]; force || !set {
			out[name] = value
		}
	}
	symmetric := o.on("enable_symm_mem")
	cumem, nvls := "0", "0"
	if symmetric {
		cumem = "1"
	}
	if symmetric || o.on("enable_nccl_nvls") {
		nvls = "1"
	}
	written("NCCL_CUMEM_ENABLE", cumem, symmetric)
	written("NCCL_NVLS_ENABLE", nvls, nvls == "1")
	written("CUDA_DEVICE_MAX_CONNECTIONS", "8", true)
	written("CUDA_MODULE_LOADING", "AUTO", true)
	written("TRTLLM_ENABLE_PDL", "1", out["TRTLLM_ENABLE_PDL"] != "0")
	return out
}

// environmentMap turns "NAME=value" pairs into a map; the last of a name counts.
func environmentMap(environ []string) map[string]string {
	out := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			out[name] = value
		}
	}
	return out
}

// environmentList is the reverse of environmentMap, sorted.
func environmentList(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
