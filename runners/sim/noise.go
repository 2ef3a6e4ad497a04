package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// noise is everything that makes a launch differ from its prediction. It is
// deterministic given the seed, the number of the launch and the configuration.
type noise struct {
	launch     float64 // factor of all times of this launch, drift included
	launchSD   float64
	roundSD    float64
	random     *rand.Rand
	round      float64 // state of the slow variation within the launch
	blockSteps int
}

const (
	// driftLaunches is the number of launches over which --sim-drift is reached.
	driftLaunches = 40
	// noiseBlock is the number of steps between changes of speed within a launch,
	// noiseMemory the correlation from one to the next.
	noiseBlock  = 64
	noiseMemory = 0.97
)

func newNoise(o *options, counter int, configuration uint64) *noise {
	random := rand.New(rand.NewPCG(o.seed, mix64(uint64(counter))^configuration))
	n := &noise{launchSD: o.launchNoise, roundSD: o.roundNoise, random: random}
	n.launch = math.Exp(o.launchNoise*random.NormFloat64()) * (1 + o.drift*float64(counter)/driftLaunches)
	n.round = random.NormFloat64()
	return n
}

// loadNoise is the standard deviation of the time that loading takes.
const loadNoise = 0.03

// load returns the factor of the load time.
func (n *noise) load() float64 {
	if n.launchSD == 0 {
		return 1
	}
	return 1 + loadNoise*n.random.NormFloat64()
}

// step returns the factor of the next step's time.
func (n *noise) step() float64 {
	if n.blockSteps == noiseBlock {
		n.blockSteps = 0
		n.round = noiseMemory*n.round + math.Sqrt(1-noiseMemory*noiseMemory)*n.random.NormFloat64()
	}
	n.blockSteps++
	return n.launch * (1 + n.roundSD*n.round)
}

// countLaunch adds one to the number in the state file, under a lock, and returns
// what it was; 0 without a file.
func countLaunch(path string) (int, error) {
	if path == "" {
		return 0, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, fmt.Errorf("--sim-state: %w", err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return 0, fmt.Errorf("--sim-state: lock %s: %w", path, err)
	}
	content := make([]byte, 32)
	size, _ := file.ReadAt(content, 0)
	text := strings.TrimSpace(string(content[:size]))
	count := 0
	if text != "" {
		if count, err = strconv.Atoi(text); err != nil {
			return 0, fmt.Errorf("--sim-state: %s holds %q instead of a number of launches", path, text)
		}
	}
	if err := file.Truncate(0); err != nil {
		return 0, fmt.Errorf("--sim-state: %w", err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(count+1)+"\n"), 0); err != nil {
		return 0, fmt.Errorf("--sim-state: %w", err)
	}
	return count, nil
}
