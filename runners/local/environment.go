package local

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// inherited are the variables of the host that every server gets: what a
// program needs to be found, to find its libraries and its GPUs, and to speak
// the right language. All else is built from the campaign file, so that a
// trial does not depend on the shell that the tuner was started from.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ",
	"LANG", "LANGUAGE", "LD_LIBRARY_PATH",
	"XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH",
	"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
	"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	"HF_HOME", "VIRTUAL_ENV", "CONDA_PREFIX",
}

// inheritedPrefixes are families of such variables.
var inheritedPrefixes = []string{"LC_"}

// strayPrefixes are families of variables that change how a server performs.
// One that lies about in the tuner's shell would be a setting that nobody asked
// for.
var strayPrefixes = []string{
	"NCCL_", "RCCL_", "UCX_", "OMPI_", "CUDA_", "CUBLAS_", "CUDNN_",
	"VLLM_", "SGLANG_", "SGL_", "TRTLLM_", "TLLM_", "TRT_", "GGML_", "LLAMA_",
	"TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "FLASHINFER_",
	"OMP_", "MKL_", "GOMP_", "KMP_",
}

func isInherited(name string) bool {
	return slices.Contains(inherited, name) ||
		slices.ContainsFunc(inheritedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// StrayVariables names the variables of an environment ("NAME=value") that
// would change a server's performance and are not passed on to it, unless keep
// names them: a person should know that they are dropped.
func StrayVariables(environ []string, keep ...string) []string {
	var stray []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.ContainsFunc(strayPrefixes, hasPrefix) && !isInherited(name) && !slices.Contains(keep, name) {
			stray = append(stray, name)
		}
	}
	slices.Sort(stray)
	return slices.Compact(stray)
}

// InheritedEnvironment is the part of an environment ("NAME=value") that every
// server gets: the allowlist and the names in keep.
func InheritedEnvironment(environ []string, keep ...string) map[string]string {
	taken := make(map[string]string)
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if ok && (isInherited(name) || slices.Contains(keep, name)) {
			taken[name] = value
		}
	}
	return taken
}

// environment builds the environment of the job's process. Later layers win:
// the host's, what the server kind needs, the GPUs, the job, its secrets.
func environment(environ []string, job *runners.Job, launch map[string]string) (env map[string]string, secrets []string, err error) {
	env = InheritedEnvironment(environ, job.Inherit...)
	maps.Copy(env, launch)
	if !job.GPUs.All && len(job.GPUs.Indices) > 0 {
		env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID" // the order in which nvidia-smi counts
		env["CUDA_VISIBLE_DEVICES"] = joinInts(job.GPUs.Indices)
	}
	// A knob whose value is "absent" is absent, also where the host has it.
	for _, name := range job.Prove {
		delete(env, name)
	}
	maps.Copy(env, job.Env)
	for _, secret := range job.Secrets {
		value, err := readSecret(environ, secret)
		if err != nil {
			return nil, nil, err
		}
		env[secret.Name] = value
		secrets = append(secrets, value)
	}
	return env, secrets, nil
}

func joinInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, number := range numbers {
		words[i] = strconv.Itoa(number)
	}
	return strings.Join(words, ",")
}

// readSecret reads the value of a secret from where the campaign says it is.
func readSecret(environ []string, secret runners.Secret) (string, error) {
	if secret.FromFile != "" {
		content, err := os.ReadFile(secret.FromFile)
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", secret.Name, err)
		}
		return strings.TrimRight(string(content), "\r\n"), nil
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); name == secret.FromEnv {
			return value, nil
		}
	}
	return "", fmt.Errorf("secret %s: variable %s is not set in the environment of nocturne", secret.Name, secret.FromEnv)
}

// minMasked keeps short values, such as "1", from being masked everywhere.
const minMasked = 6

// masker hides the values of secrets in texts that are kept.
func masker(secrets []string) *strings.Replacer {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minMasked {
			pairs = append(pairs, secret, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

// keyVariables hold the key that a server asks of its clients, where its command
// line does not.
var keyVariables = []string{"VLLM_API_KEY", "LLAMA_API_KEY"}

// apiKey is the key that the server will ask for; empty when it asks for none.
func apiKey(spec supervise.Spec) string {
	if key, given := (servers.Command{Args: spec.Args}).Flag("--api-key"); given {
		return key
	}
	for _, name := range keyVariables {
		if key := spec.Env[name]; key != "" {
			return key
		}
	}
	return ""
}

// authorization is the header with the server's key.
func authorization(spec supervise.Spec) http.Header {
	key := apiKey(spec)
	if key == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + key}}
}
