package servers

import "strings"

// Processes says which processes of a server's tree count.
type Processes struct {
	// Worker is in the command line of each process that computes; empty when they
	// have no name of their own. py-setproctitle cuts a title to the length of the
	// original command line, so it is the beginning of the title.
	Worker string
	// Workers is how many of them a command starts; nil when it cannot be told.
	Workers func(Command) int
	// Helpers are in the command lines of processes that neither compute nor talk
	// through NCCL: compilers, trackers, launchers. Their environment proves
	// nothing.
	Helpers []string
}

// commonHelpers belong to Python, PyTorch, Triton and the shell.
var commonHelpers = []string{
	"multiprocessing.resource_tracker", "compile_worker", "py-spy", "nvidia-smi",
	"ptxas", "cicc", "nvcc", "cudafe++", "ninja", "ld.lld", "/cc1plus", "nvlink ",
}

// IsHelper tells whether the process with that command line proves nothing.
func (k *Kind) IsHelper(commandLine string) bool {
	for _, helper := range k.Processes.Helpers {
		if strings.Contains(commandLine, helper) {
			return true
		}
	}
	return false
}

// MissingWorkers compares the workers among command lines with those that the
// command should have started. Servers that give their workers no title are not
// judged.
func (k *Kind) MissingWorkers(c Command, commandLines []string) (seen, expected int) {
	if k.Processes.Worker == "" || k.Processes.Workers == nil {
		return 0, 0
	}
	for _, line := range commandLines {
		if strings.Contains(line, k.Processes.Worker) {
			seen++
		}
	}
	if seen == 0 {
		return 0, 0
	}
	return seen, k.Processes.Workers(c)
}

// product multiplies the sizes that flags give; a size that is absent is 1.
func product(c Command, sizes ...[]string) int {
	workers := 1
	for _, flags := range sizes {
		if size, ok := c.Int(flags...); ok && size > 0 {
			workers *= size
		}
	}
	return workers
}
