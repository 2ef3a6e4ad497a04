package sim

// Memory in GiB on a GPU of the first machine; smaller and larger GPUs hold in
// proportion, NCCL's buffers aside.
const (
	contextMemory   = 3.3   // CUDA context, kernels, workspaces
	graphMemory     = 0.5   // captured graphs, before batch sizes
	graphPerBatch   = 0.004 // each sequence of the largest captured batch
	graphPerToken   = 0.05  // each token that a sequence verifies at once
	draftMemory     = 1.9   // weights and pool of the draft model
	bufferPeers     = 3     // connections that hold a buffer for each channel
	kvBytesPerToken = 70 << 10
	minKVMemory     = 0.8  // below, the server refuses to start
	captureMemory   = 0.35 // needed free while graphs are captured
	loadMemory      = 0.9  // activations at batch 1
	loadPerSequence = 0.012
	standardStatic  = 0.88 // what the server chooses by itself
)

// Memory is the account of one GPU, in GiB.
type Memory struct {
	Total       float64
	Static      float64 // weights and KV cache, by --mem-fraction-static
	NCCLBuffers float64
	// Free is what remains once the server is up; a batch needs some of it.
	Free     float64
	KVTokens int
}

// memoryScale brings sizes of the first machine to this one.
func (m machine) memoryScale() float64 { return m.memoryGiB / machines[defaultMachine].memoryGiB }

// account adds the memory of one GPU up. NCCL allocates the buffers of all three
// protocols for every channel, whether a protocol runs or not.
func (p *performance) account() Memory {
	m := Memory{Total: p.machine.memoryGiB}
	fraction := p.options.float("mem_fraction_static")
	if fraction == 0 {
		fraction = standardStatic
	}
	m.Static = fraction * m.Total
	if p.comm.ranks > 1 {
		for _, size := range p.comm.buffers {
			m.NCCLBuffers += float64(max(size, 0)) * float64(p.comm.channels*bufferPeers) / (1 << 30)
		}
	}
	used := contextMemory
	if batch := p.options.graphBatch(); batch > 0 {
		used += graphMemory + graphPerBatch*float64(batch) + graphPerToken*float64(p.verified)
	}
	if p.steps > 0 {
		used += draftMemory
	}
	m.Free = m.Total - m.Static - m.NCCLBuffers - used*p.machine.memoryScale()
	m.KVTokens = max(0, int((m.Static-p.machine.weightsGiB)*(1<<30)/kvBytesPerToken))
	return m
}

// noRoom tells whether the weights leave nothing for the KV cache.
func (p *performance) noRoom() bool {
	return p.memory.Static-p.machine.weightsGiB < minKVMemory*p.machine.memoryScale()
}

// failsAtCapture tells whether the server dies before it is up.
func (p *performance) failsAtCapture() bool {
	return p.memory.Free < captureMemory*p.machine.memoryScale()
}

// failsUnderLoad tells whether a batch of so many sequences does not fit.
func (p *performance) failsUnderLoad(sequences int) bool {
	return p.memory.Free < (loadMemory+loadPerSequence*float64(sequences))*p.machine.memoryScale()
}
