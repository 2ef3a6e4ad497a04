package knowledge

import (
	"slices"
	"strings"

	"nocturne/nccl"
	"nocturne/runners"
)

// withoutNVLink are parts of the names of cards that have no NVLink at all: NVIDIA
// left the connector out from Ada and the workstation cards of Blackwell on.
var withoutNVLink = []string{"RTX PRO", " Ada", "GeForce RTX 40", "GeForce RTX 50", "NVIDIA L2", "NVIDIA L4"}

// NVLink says whether the GPUs of a machine are linked by NVLink: all pairs of
// them or none, else it is unknown. It goes by the GPU-to-GPU matrix, and where
// that could not be read by what the cards can have.
func NVLink(hardware runners.Hardware) nccl.Tri {
	if len(hardware.Links) > 0 {
		return linked(hardware.Links)
	}
	bare := func(gpu runners.GPU) bool {
		return slices.ContainsFunc(withoutNVLink, func(part string) bool { return strings.Contains(gpu.Name, part) })
	}
	if len(hardware.GPUs) > 0 && !slices.ContainsFunc(hardware.GPUs, func(gpu runners.GPU) bool { return !bare(gpu) }) {
		return nccl.No
	}
	return nccl.Unknown
}

// linked reads the matrix of `nvidia-smi topo -m`.
func linked(links [][]string) nccl.Tri {
	with, without := false, false
	for i, row := range links {
		for j, cell := range row {
			if i == j {
				continue
			}
			if strings.HasPrefix(cell, "NV") {
				with = true
			} else {
				without = true
			}
		}
	}
	switch {
	case with == without:
		return nccl.Unknown // no pairs, or bridges between some of them
	case with:
		return nccl.Yes
	}
	return nccl.No
}
