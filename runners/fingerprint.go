package runners

// Fingerprint is what a machine is (hardware), what runs on it (stack) and
// what changes from boot to boot (settings).
type Fingerprint struct {
	Hardware Hardware `json:"hardware"`
	Stack    Stack    `json:"stack"`
	// Settings are stored and compared but are part of no key: power limits,
	// persistence mode, ECC, IOMMU, /dev/shm size ...
	Settings map[string]string `json:"settings"`
	// Unreadable names what could not be read, and why.
	Unreadable []string `json:"unreadable"`
}

// Hardware is the machine as it matters for comparing results.
type Hardware struct {
	// Key is "hw1:" and a digest of GPU names, counts, links, PCIe maxima, CPU
	// model and NUMA layout.
	Key  string `json:"key"`
	Name string `json:"name"` // for people: "8 x NVIDIA RTX PRO 6000, PCIe"
	// Instance names this very box (a digest of GPU UUIDs and the machine id),
	// not its kind.
	Instance  string `json:"instance"`
	GPUs      []GPU  `json:"gpus"`
	CPU       string `json:"cpu"`
	Sockets   int    `json:"sockets"`
	NUMANodes int    `json:"numa_nodes"`
	MemoryMiB int64  `json:"memory_mib"`
	// Links is the GPU-to-GPU matrix of `nvidia-smi topo -m`.
	Links [][]string `json:"links,omitempty"`
	// Simulated is set for a campaign on the simulated server.
	Simulated bool `json:"simulated,omitempty"`
}

// GPU is one accelerator.
type GPU struct {
	Index             int    `json:"index"`
	Name              string `json:"name"`
	UUID              string `json:"uuid"`
	MemoryMiB         int64  `json:"memory_mib"`
	ComputeCapability string `json:"compute_capability,omitempty"`
	PCIeGenMax        int    `json:"pcie_gen_max,omitempty"`
	PCIeWidthMax      int    `json:"pcie_width_max,omitempty"`
}

// Stack is the software that a trial ran on.
type Stack struct {
	// Key is "st1:" and a digest of the other fields.
	Key           string `json:"key"`
	Driver        string `json:"driver"`
	CUDA          string `json:"cuda"`
	NCCL          string `json:"nccl"` // as loaded by the server
	Server        string `json:"server"`
	ServerVersion string `json:"server_version"`
	Model         string `json:"model"`
	Kernel        string `json:"kernel"`
}

// Simulated is what the simulated server declares about the machine it plays.
type Simulated struct {
	GPU    string `json:"gpu"`
	Count  int    `json:"count"`
	Driver string `json:"driver"`
	CUDA   string `json:"cuda"`
	NCCL   string `json:"nccl"`
}
