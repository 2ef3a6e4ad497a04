package sim

import "math"

// Costs of an all-reduce in microseconds on eight GPUs. Each pair has a latency
// (the sum over its hops) and all share a cost a KiB and channel that depends on
// threads.
type costs [algorithms][protocols]float64

// believed is NCCL's estimate, by which it chooses; its constants come from
// other machines, so that the choice is not always the best one here. One row
// an algorithm; the entries are LL, LL128, Simple.
var (
	believedLatency = costs{
		tree: {12, 12.5, 18},
		ring: {16, 17, 22.2},
		nvls: {math.Inf(1), math.Inf(1), 25},
	}
	believedTransfer = costs{ // a KiB of message
		tree: {0.30, 0.09, 0.10},
		ring: {0.27, 0.08, 0.07},
		nvls: {math.Inf(1), math.Inf(1), 0.05},
	}
	// What it really takes, directly and through host memory.
	directLatency = costs{
		tree: {30, 18, 36},
		ring: {15, 15.5, 26},
		nvls: {math.Inf(1), math.Inf(1), 22},
	}
	hostLatency = costs{
		tree: {56.98, 52, 62},
		ring: {36, 38, 60},
		nvls: {math.Inf(1), math.Inf(1), 22},
	}
)

const (
	// channelCost is what each further channel adds: another block to start and
	// to wait for.
	channelCost = 0.8
	// networkFactor is how much slower the loopback network is than host memory.
	networkFactor = 4
	// nearLatencyShare and nearTransferShare are the parts of a ring that profit
	// when only GPUs of one socket talk directly.
	nearLatencyShare  = 0.75
	nearTransferShare = 0.4
)

// protocolTransfer scales the cost a KiB: LL sends a flag with every word, so
// that half of what moves is data.
var protocolTransfer = [protocols]float64{ll: 1, ll128: 0.53, simple: 0.57}

// hostTransfer is how much slower host memory is.
var hostTransfer = [protocols]float64{ll: 2.5, ll128: 2.5, simple: 2.65}

// transferByThreads is the cost in microseconds of a KiB on one channel of
// protocol LL, by threads: few threads cannot keep enough words in flight.
var transferByThreads = []struct{ threads, cost float64 }{
	{64, 1.2}, {128, 0.65}, {256, 0.35}, {512, 0.30}, {640, 0.29},
}

func threadTransfer(threads int) float64 {
	t := math.Log2(float64(threads))
	last := transferByThreads[0]
	for _, point := range transferByThreads {
		if float64(threads) <= point.threads {
			if point == last {
				return point.cost
			}
			low, high := math.Log2(last.threads), math.Log2(point.threads)
			return last.cost + (point.cost-last.cost)*(t-low)/(high-low)
		}
		last = point
	}
	return last.cost
}

// minPiece is the least number of bytes that a channel gets (src/enqueue.cc).
func (c *communicator) minPiece(p protocol) int {
	switch {
	case !c.version.atLeast(2, 24, 0):
		return 1
	case c.version.atLeast(2, 29, 0):
		return [protocols]int{ll: 4 << 10, ll128: 16 << 10, simple: 16 << 10}[p]
	case c.version.atLeast(2, 26, 0):
		return [protocols]int{ll: 2 << 10, ll128: 8 << 10, simple: 8 << 10}[p]
	default:
		return 8 << 10
	}
}

// split returns how many channels and threads a message gets: channels are
// dropped until every thread has enough to do, then threads are halved while
// divisible by 128 (src/enqueue.cc).
func (c *communicator) split(a algorithm, p protocol, bytes int) (channels, threads int) {
	threads = c.threads
	switch {
	case a == nvls:
		return c.channels, maxLL128Threads
	case p == ll128:
		threads = c.ll128Threads
	case a == ring && p == simple:
		threads = c.simpleRingThreads
	}
	work := c.thresholds[min(int(a), int(ring))][p]
	channels = min(bytes/(threads*work), c.channels)
	if channels < 1 {
		channels = 1
		for bytes < threads*work && threads%128 == 0 {
			threads /= 2
		}
		threads = max(threads, 96)
	}
	channels = min(channels, max(1, bytes/c.minPiece(p)))
	return channels, threads
}

// choose returns the pair that NCCL would run for an all-reduce of that size.
func (c *communicator) choose(bytes int) (algorithm, protocol) {
	best, bestA, bestP := math.Inf(1), ring, ll
	for a := range algorithms {
		for p := range protocols {
			if !c.permitted(allReduce, algorithm(a), protocol(p)) {
				continue
			}
			if t := believedLatency[a][p] + believedTransfer[a][p]*kib(bytes); t < best {
				best, bestA, bestP = t, algorithm(a), protocol(p)
			}
		}
	}
	return bestA, bestP
}

func kib(bytes int) float64 { return float64(bytes) / 1024 }

// allReduce returns the microseconds that an all-reduce of that size takes.
func (c *communicator) allReduce(bytes int) float64 {
	if c.ranks < 2 {
		return 0
	}
	a, p := c.choose(bytes)
	channels, threads := c.split(a, p, bytes)
	latency := mix(directLatency[a][p], c.hostFactor()*hostLatency[a][p], c.directShare(nearLatencyShare))
	transfer := threadTransfer(threads) * protocolTransfer[p] *
		mix(1, c.hostFactor()*hostTransfer[p], c.directShare(nearTransferShare))
	// A ring of n ranks has 2(n-1) hops.
	hops := float64(c.ranks-1) / 7
	return latency*hops*c.machine.latency +
		kib(bytes)/float64(channels)*transfer*c.bufferFactor(a, p, bytes/channels)*c.machine.transfer +
		channelCost*float64(channels-1)
}

// directShare is the part of the traffic that GPUs exchange directly.
func (c *communicator) directShare(near float64) float64 {
	switch {
	case c.farP2P:
		return 1
	case c.nearP2P:
		return near
	default:
		return 0
	}
}

func (c *communicator) hostFactor() float64 {
	if c.network {
		return networkFactor
	}
	return 1
}

func mix(direct, host, share float64) float64 { return share*direct + (1-share)*host }

// bufferFactor is what the buffer size does to messages long enough to fill more
// than a chunk: small buffers wait more often, large ones leave the cache. It
// acts on Simple only; the buffers of LL matter by their own variable.
func (c *communicator) bufferFactor(a algorithm, p protocol, piece int) float64 {
	chunk := c.chunk(p)
	if p == ll128 || a == nvls || chunk == 0 || piece <= chunk {
		return 1
	}
	standard := [protocols]float64{ll: defaultLLBuffer, simple: 2 * defaultSimpleBuffer}[p]
	return 1 + 0.04*math.Abs(math.Log2(float64(c.buffers[p])/standard))
}
