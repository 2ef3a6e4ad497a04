package sim

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Thread counts of NCCL kernels (src/graph/tuning.cc, src/include/device.h).
const (
	maxThreads      = 512
	minThreads      = 64
	maxLL128Threads = 640
	minLL128Threads = 160
)

// Buffer sizes in bytes (src/init.cc).
const (
	defaultLLBuffer     = 512 << 10
	defaultLL128Buffer  = 4915200
	defaultSimpleBuffer = 4 << 20
	// bufferSteps is the number of pieces that a buffer is cut into.
	bufferSteps = 8
)

// chunkGrain is what a chunk is rounded down to, by protocol.
var chunkGrain = [protocols]int{ll: 16, ll128: 1920, simple: 512}

// communicator is what NCCL makes of its environment for the tensor-parallel
// group: which algorithms and protocols remain, over which transport, with how
// many channels and threads.
type communicator struct {
	version ncclVersion
	machine machine
	ranks   int
	choice  choice
	// nearP2P and farP2P tell whether GPUs of one socket, and of two, talk
	// directly; otherwise through host memory, or the loopback network when that
	// is off as well.
	nearP2P, farP2P, network bool
	channels                 int
	threads, ll128Threads    int
	// simpleRingThreads is the default for Ring with Simple where it differs.
	simpleRingThreads int
	thresholds        [2][protocols]int // bytes of work a thread: tree, ring
	buffers           [protocols]int
	nvls              bool
	// graphMixing is NCCL_GRAPH_MIXING_SUPPORT; 0 saves launches.
	graphMixing bool
	log         []ncclLine
	// unsafe is set when a protocol runs whose stores the links may tear.
	unsafe bool
}

// newCommunicator reads the environment of a worker. The error is an
// *invalidUsage, or an errHang.
func newCommunicator(values map[string]string, version ncclVersion, m machine, ranks int) (*communicator, error) {
	env := &ncclEnvironment{values: values}
	c := &communicator{version: version, machine: m, ranks: ranks}
	c.readTransport(env)
	c.readChannels(env)
	c.readThreads(env)
	bufferFault := c.readBuffers(env)
	c.nvls = m.multicast && !env.is("NCCL_NVLS_ENABLE", 0) && version.atLeast(2, 18, 0)
	c.graphMixing = !env.is("NCCL_GRAPH_MIXING_SUPPORT", 0)
	var err error
	c.choice, err = parseChoice(version, env.text("NCCL_ALGO"), env.text("NCCL_PROTO"))
	c.log = env.log
	if err != nil {
		return c, err
	}
	if bufferFault != nil {
		return c, bufferFault
	}
	if err := c.checkFunctions(values["NCCL_ALGO"], values["NCCL_PROTO"]); err != nil {
		return c, err
	}
	c.unsafe = c.tornStores()
	return c, c.hang()
}

func (c *communicator) readTransport(env *ncclEnvironment) {
	level := env.p2pLevel(c.version, c.machine)
	c.nearP2P = c.machine.p2p && level >= c.machine.near
	c.farP2P = c.machine.p2p && level >= c.machine.far
	c.network = env.is("NCCL_SHM_DISABLE", 1)
}

// readChannels applies the two pairs of limits: the search's number is cut to
// both maxima, then rings are duplicated up to the larger minimum
// (src/graph/connect.cc).
func (c *communicator) readChannels(env *ncclEnvironment) {
	limit := c.version.maxChannels()
	most, least := limit, 1
	if value, ok := env.first("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"); ok {
		if most = min(value, limit); value < 1 {
			env.info("ENV", "User asked for a maximum of %d channels, setting it to 1", value)
			most = 1
		}
	}
	if value, ok := env.first("NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"); ok {
		if least = max(value, 0); value > limit {
			env.info("ENV", "User asked for a minimum of %d channels, limiting to %d", value, limit)
			least = limit
		}
	}
	minCTAs, maxCTAs := c.readCTAs(env, limit)
	c.channels = min(c.machine.channels, most, maxCTAs)
	c.channels = max(c.channels, min(max(least, minCTAs), limit))
}

func (c *communicator) readCTAs(env *ncclEnvironment, limit int) (least, most int) {
	read := func(name string, standard int) int {
		value, ok := env.integer32(name)
		switch {
		case !ok:
			return standard
		case value <= 0:
			env.info("ENV", "%s %d is too low, leaving it set at %d", name, value, standard)
			return standard
		case value > limit:
			env.info("ENV", "%s %d is larger than #channels upper limit %d, cap it to %d", name, value, limit, limit)
			return limit
		default:
			return value
		}
	}
	least, most = read("NCCL_MIN_CTAS", 1), read("NCCL_MAX_CTAS", limit)
	if least > most {
		env.info("ENV", "minCTAs %d is larger than maxCTAs %d, set both to %d", least, most, most)
		least = most
	}
	return least, most
}

// first returns the first of the names that is set: the current one, then its
// old alias.
func (e *ncclEnvironment) first(names ...string) (int, bool) {
	for _, name := range names {
		if value, ok := e.integer32(name); ok {
			return value, true
		}
	}
	return 0, false
}

func (c *communicator) readThreads(env *ncclEnvironment) {
	c.threads = env.threads("NCCL_NTHREADS", minThreads, maxThreads, maxThreads)
	c.simpleRingThreads = c.threads
	if !c.version.atLeast(2, 31, 0) {
		c.simpleRingThreads = env.quietThreads("NCCL_NTHREADS", c.machine.simpleThreads)
	}
	c.ll128Threads = env.threads("NCCL_LL128_NTHREADS", minLL128Threads, maxLL128Threads, maxLL128Threads)
	c.thresholds = [2][protocols]int{
		{ll: 8, ll128: 8, simple: 64},
		{ll: 8 * c.ranks, ll128: 8, simple: 64},
	}
	if value := env.text("NCCL_THREAD_THRESHOLDS"); value != "" {
		fields := strings.Fields(value)
		for i := 0; i < len(fields) && i < 2*protocols; i++ {
			if number, ok := strtoll(fields[i]); ok && number > 0 && number <= math.MaxInt32 {
				c.thresholds[i/protocols][i%protocols] = int(number)
			}
		}
	}
}

// quietThreads is threads for a second default, without logging twice.
func (e *ncclEnvironment) quietThreads(name string, standard int) int {
	quiet := ncclEnvironment{values: e.values}
	return quiet.threads(name, minThreads, maxThreads, standard)
}

// errHang is a communicator that never gets through its first collective.
type errHang struct{ reason string }

func (e *errHang) Error() string { return e.reason }

// errMemory is an allocation that NCCL cannot make.
type errMemory struct{ reason string }

func (e *errMemory) Error() string { return e.reason }

// readBuffers reads the sizes. Nothing checks them: a chunk of nothing hangs,
// and a size that turned negative cannot be allocated.
func (c *communicator) readBuffers(env *ncclEnvironment) error {
	var fault error
	for p, name := range []string{ll: "NCCL_LL_BUFFSIZE", ll128: "NCCL_LL128_BUFFSIZE", simple: "NCCL_BUFFSIZE"} {
		c.buffers[p] = []int{ll: defaultLLBuffer, ll128: defaultLL128Buffer, simple: defaultSimpleBuffer}[p]
		value, ok := env.integer32(name)
		if !ok || value == -2 { // -2 is how NCCL writes "not set"
			continue
		}
		if c.buffers[p] = value; value < 0 {
			fault = &errMemory{fmt.Sprintf("%s of %d bytes", name, value)}
		}
	}
	return fault
}

// chunk is the piece of a buffer that moves at once.
func (c *communicator) chunk(p protocol) int {
	size := c.buffers[p] / bufferSteps
	return size - size%chunkGrain[p]
}

// exists tells whether the machine has the algorithm for the function at all;
// this is one node, so what joins nodes is out.
func (c *communicator) exists(f function, a algorithm, p protocol) bool {
	switch a {
	case ring:
		return true
	case tree:
		return f == allReduce
	case nvls:
		return p == simple && c.nvls && (f == allReduce || f == allGather || f == reduceScatter)
	default:
		return false
	}
}

// permitted tells whether NCCL may choose the pair for the function.
func (c *communicator) permitted(f function, a algorithm, p protocol) bool {
	if !c.exists(f, a, p) || c.choice.algorithms[f][a] == denied {
		return false
	}
	switch c.choice.protocols[f][p] {
	case automatic:
		return c.safeLL128()
	case allowed:
		return true
	default:
		return false
	}
}

// safeLL128 is NCCL's own test, made only when nobody names LL128.
func (c *communicator) safeLL128() bool {
	switch {
	case !c.machine.nvlink:
		return false
	case c.version.atLeast(2, 27, 0):
		return c.machine.capability >= 7.0
	default:
		return c.machine.capability == 9.0
	}
}

// checkFunctions makes sure that each collective which the server calls has a
// pair left, or falls back to Ring as old releases do.
func (c *communicator) checkFunctions(algo, proto string) error {
	for _, f := range []function{broadcast, allGather, allReduce} {
		if c.left(f) {
			continue
		}
		if !c.choice.ringFallback {
			return &invalidUsage{noAlgorithm(f, algo, proto)}
		}
		c.choice.algorithms[f][ring] = allowed
		if c.choice.anyProtocol {
			c.choice.protocols[f] = [protocols]permission{allowed, allowed, allowed}
		}
		if !c.left(f) {
			return &invalidUsage{noAlgorithm(f, algo, proto)}
		}
	}
	return nil
}

// noAlgorithm words the refusal as NCCL does (src/enqueue.cc, 2.24 and later).
func noAlgorithm(f function, algo, proto string) string {
	text := fmt.Sprintf("Error : no algorithm/protocol available for function %s with datatype ncclInt8.", functionNames[f])
	if proto != "" {
		text += fmt.Sprintf(" NCCL_PROTO was set to %s.", proto)
	}
	if algo != "" {
		text += fmt.Sprintf(" NCCL_ALGO was set to %s.", algo)
	}
	return text
}

func (c *communicator) left(f function) bool {
	for a := range algorithms {
		for p := range protocols {
			if c.permitted(f, algorithm(a), protocol(p)) {
				return true
			}
		}
	}
	return false
}

// tornStores tells whether LL128 runs on links that may tear its 128-byte
// stores: then answers are wrong, and nothing says so.
func (c *communicator) tornStores() bool {
	if c.machine.nvlink {
		return false
	}
	for f := range functions {
		for a := range algorithms {
			if c.permitted(function(f), algorithm(a), ll128) {
				return true
			}
		}
	}
	return false
}

// hang returns why the first collective would never return.
func (c *communicator) hang() error {
	hangs := c.machine.hangs
	if hangs != pathLOC && (c.farP2P && c.machine.far >= hangs || c.nearP2P && c.machine.near >= hangs) {
		return &errHang{"peer-to-peer traffic over " + pathNames[hangs] + " never arrives on this machine"}
	}
	for p := range protocols {
		if c.chunk(protocol(p)) > 0 {
			continue
		}
		for _, f := range []function{broadcast, allGather, allReduce} {
			for a := range algorithms {
				if algorithm(a) != nvls && c.permitted(f, algorithm(a), protocol(p)) {
					return &errHang{"a buffer of protocol " + protocolNames[p] + " holds no chunk"}
				}
			}
		}
	}
	return nil
}

// isHang tells whether the error is a hang rather than a refusal.
func isHang(err error) bool {
	var hang *errHang
	return errors.As(err, &hang)
}
