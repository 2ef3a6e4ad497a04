package servers

import (
	"path/filepath"
	"slices"
	"strings"
)

// Processes says which processes of a server's tree count.
type Processes struct {
	// Worker is the beginning of the title of each process that computes, or an
	// argument of its command line; empty when they have neither. py-setproctitle
	// cuts a title to the length of the original command line.
	Worker string
	// Workers is how many of them a command starts, 0 when it cannot be told; nil
	// when it never can.
	Workers func(Command) int
	// Helpers neither compute nor talk through NCCL, so that their environment
	// proves nothing: names of programs, such as compilers and launchers.
	Helpers []string
}

// commonHelpers are what PyTorch and Triton run to compile, and what people run
// to look inside.
var commonHelpers = []string{
	"ptxas", "cicc", "nvcc", "nvlink", "fatbinary", "cudafe++", "ninja", "gcc", "g++", "c++", "cc1plus", "as", "ld", "ld.lld", "collect2",
	"nvidia-smi", "py-spy",
}

// helperModules are what Python itself runs beside a server, from the text after
// -c: a tracker of shared memory, and the compile workers of PyTorch.
var helperModules = []string{"multiprocessing.resource_tracker", "_inductor.compile_worker"}

// IsHelper tells whether the process with those arguments proves nothing.
func (k *Kind) IsHelper(args []string) bool {
	if len(args) == 0 {
		return false
	}
	if slices.Contains(k.Processes.Helpers, filepath.Base(args[0])) {
		return true
	}
	code := slices.Index(args, "-c") + 1
	return code > 0 && code < len(args) && strings.HasPrefix(filepath.Base(args[0]), "python") &&
		slices.ContainsFunc(helperModules, func(module string) bool { return strings.Contains(args[code], module) })
}

// MissingWorkers compares the workers among processes, each given by its
// arguments, with those that the command should have started. Servers that give
// their workers no title are not judged.
func (k *Kind) MissingWorkers(c Command, processes [][]string) (seen, expected int) {
	worker := k.Processes.Worker
	if worker == "" || k.Processes.Workers == nil {
		return 0, 0
	}
	for _, args := range processes {
		if len(args) > 0 && strings.HasPrefix(args[0], worker) || slices.Contains(args, worker) {
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
