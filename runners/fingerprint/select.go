package fingerprint

import (
	"fmt"
	"slices"

	"nocturne/runners"
)

// Select is the hardware that a job with these GPUs uses: results on two GPUs of
// a box are not results on eight. The instance stays that of the box.
func Select(h runners.Hardware, selection runners.GPUSelection) (runners.Hardware, error) {
	if selection.All || len(selection.Indices) == 0 {
		return h, nil
	}
	indices := slices.Clone(selection.Indices)
	slices.Sort(indices)
	positions := make([]int, 0, len(indices))
	for _, index := range slices.Compact(indices) {
		position := slices.IndexFunc(h.GPUs, func(g runners.GPU) bool { return g.Index == index })
		if position < 0 {
			return h, fmt.Errorf("select GPUs: there is no GPU %d among the %d of this machine", index, len(h.GPUs))
		}
		positions = append(positions, position)
	}
	selected := h
	selected.GPUs, selected.Links = nil, nil
	for _, i := range positions {
		selected.GPUs = append(selected.GPUs, h.GPUs[i])
		if len(h.Links) == 0 {
			continue
		}
		row := make([]string, 0, len(positions))
		for _, j := range positions {
			row = append(row, link(h.Links, i, j))
		}
		selected.Links = append(selected.Links, row)
	}
	selected.Name = hardwareName(selected)
	selected.Key = HardwareKey(selected)
	return selected, nil
}

// Simulate is the fingerprint of the machine that a simulated server plays. The
// hardware is the simulation's and marked as such in name and key; of the host
// only the instance stays, so that campaigns on different hosts stay apart.
// Neither CPU nor kernel of the host bear on a simulated number: they are left
// out, and equal simulations have equal keys everywhere.
func Simulate(f runners.Fingerprint, simulated runners.Simulated) runners.Fingerprint {
	hardware := runners.Hardware{Instance: f.Hardware.Instance, Simulated: true}
	for i := range max(simulated.Count, 0) {
		hardware.GPUs = append(hardware.GPUs, runners.GPU{Index: i, Name: simulated.GPU})
	}
	hardware.Name = hardwareName(hardware)
	hardware.Key = HardwareKey(hardware)
	stack := runners.Stack{
		Driver: simulated.Driver, CUDA: simulated.CUDA, NCCL: simulated.NCCL,
		Server: f.Stack.Server, ServerVersion: f.Stack.ServerVersion, Model: f.Stack.Model,
	}
	stack.Key = StackKey(stack)
	return runners.Fingerprint{Hardware: hardware, Stack: stack, Settings: f.Settings, Unreadable: f.Unreadable}
}
