package sim

import (
	"math"
	"time"
)

// The model that is served: 61 layers of width 7168 with a mixture of 384
// experts, 8 of them for each token, as published for Kimi K2.
const (
	hiddenBytes  = 7168 * 2 // a token's activations in bf16
	allReduces   = 2 * 61   // in one pass
	experts      = 384
	activeExpert = 8
)

// Costs in milliseconds, calibrated so that the published figures come out
// (docs/simulator.md has the arithmetic).
const (
	denseCost  = 5.469   // a pass without experts and communication, scheduling included
	expertCost = 0.35497 // reading the weights of one more expert of every layer
	tokenCost  = 0.01    // each further token of a pass, its experts aside

	verifyCost   = 1.5   // what a verify pass adds to a decode pass: masks, other kernels
	draftCost    = 0.72  // one step of the draft model
	draftReduces = 2     // all-reduces in it
	cycleCost    = 0.348 // of a speculative cycle besides verify and draft: sampling, copies

	prefillCost      = 9.0  // of a prompt, however short
	prefillTokenCost = 0.05 // each of its tokens

	schedulingCost = 0.20 // part of denseCost that further continuous decode steps hide
	overlapCost    = 0.45 // without the overlap schedule
	eagerFactor    = 1.35 // without a CUDA graph for the batch
	eagerCost      = 4.5  // launches of an eager pass
)

// Costs of one all-reduce in microseconds.
const (
	bypassCost     = 9.0   // by the server's own kernel
	mixingOverhead = 0.025 // of graph mixing, which NCCL_GRAPH_MIXING_SUPPORT=0 saves
)

// Acceptance: the first drafted token is accepted with firstAccept, each further
// one, given that it is reached, with acceptDecay of what the one before had.
const (
	firstAccept = 0.5296
	acceptDecay = 0.775
	// treeGain is what each doubling of the tree's width is worth, in further
	// guesses at each position.
	treeGain = 0.45
)

// attentionFactor scales denseCost by attention backend; "" is the server's own
// choice, fa3 here.
var attentionFactor = map[string]float64{
	"": 1, "fa3": 1, "flashinfer": 0.985, "triton": 1.05, "trtllm_mla": 1.02, "trtllm_mha": 1.02, "torch_native": 1.6,
}

// expertsRead is the number of different experts that n tokens need in a layer.
func expertsRead(tokens int) float64 {
	return experts * (1 - math.Pow(1-float64(activeExpert)/experts, float64(tokens)))
}

// performance is what a launch will do, free of noise.
type performance struct {
	options *options
	machine machine
	comm    *communicator
	memory  Memory
	// steps, topk and verified describe speculation; steps 0 is off.
	steps, topk, verified int
	accept                []float64 // by position
	bypass                bool
	speed                 float64 // factor of all times; below 1 is faster
}

func newPerformance(o *options, comm *communicator) *performance {
	p := &performance{
		options: o, machine: o.machine, comm: comm, speed: 1,
		steps: o.speculation.steps, topk: o.speculation.topk, verified: o.speculation.draftTokens,
		bypass: o.bypassNCCL || o.faults.has(faultBypass) || o.machine.nvlink && !o.on("disable_custom_all_reduce"),
	}
	p.accept = p.acceptance()
	p.memory = p.account()
	return p
}

// acceptance returns the probability that each drafted position is accepted.
// Tokens beyond a chain widen the tree, which helps the first positions most.
func (p *performance) acceptance() []float64 {
	accept := make([]float64, min(p.steps, max(0, p.verified-1)))
	spare := 0.0
	if p.topk > 1 && p.steps > 0 {
		spare = treeGain * math.Log2(1+float64(max(0, p.verified-1-p.steps))/float64(p.steps))
	}
	for i := range accept {
		accept[i] = min(1, p.method().accept*firstAccept*math.Pow(acceptDecay, float64(i)))
		accept[i] = 1 - math.Pow(1-accept[i], 1+spare)
	}
	if share, ok := p.options.faults.number(faultAcceptance); ok {
		scaleAcceptance(accept, share)
	}
	return accept
}

func (p *performance) method() method { return methods[p.options.speculation.algorithm] }

// scaleAcceptance brings the mean of the positions to the given acceptance rate.
func scaleAcceptance(accept []float64, rate float64) {
	total := 0.0
	for _, a := range accept {
		total += a
	}
	for i := range accept {
		accept[i] = min(1, accept[i]*rate*float64(len(accept))/total)
	}
}

// acceptanceLength is the mean number of tokens that a cycle yields.
func (p *performance) acceptanceLength() float64 {
	if tokens, ok := p.steadyTokens(); ok {
		return float64(tokens)
	}
	length := 1.0
	for _, a := range p.accept {
		length += a
	}
	return length
}

// reduceTime is the time of the all-reduces of one pass over so many tokens.
func (p *performance) reduceTime(count, tokens int) float64 {
	if p.bypass {
		return float64(count) * bypassCost / 1e3
	}
	micros := p.comm.allReduce(tokens * hiddenBytes)
	if !p.comm.graphMixing {
		micros -= mixingOverhead
	}
	return float64(count) * micros / 1e3
}

// computeTime is a pass over so many tokens of so many sequences, communication
// aside.
func (p *performance) computeTime(sequences, tokens int) float64 {
	dense := denseCost * attentionFactor[p.options.text("attention_backend")]
	if !p.options.on("disable_overlap_schedule") {
		dense -= schedulingCost * (1 - 1/float64(p.options.number("num_continuous_decode_steps")))
	} else {
		dense += overlapCost
	}
	total := dense + expertCost*expertsRead(tokens) + tokenCost*float64(tokens-1)
	if p.steps > 0 {
		total += verifyCost
	}
	if sequences > p.options.graphBatch() {
		total = total*eagerFactor + eagerCost
	}
	return total * p.machine.compute
}

// verifyTime is one pass of the target model over the drafted tokens of each
// sequence; without speculation it is the whole decode step. Milliseconds.
func (p *performance) verifyTime(sequences int) float64 {
	tokens := sequences
	if p.steps > 0 {
		tokens *= p.verified
	}
	return (p.computeTime(sequences, tokens) + p.reduceTime(allReduces, tokens)) * p.speed
}

// stepTime is a whole cycle: draft, verify and what lies between. Milliseconds.
func (p *performance) stepTime(sequences int) float64 {
	if step, ok := p.steadyStep(); ok {
		return step
	}
	total := p.verifyTime(sequences)
	if p.steps > 0 {
		branches := sequences * p.topk
		draft := draftCost*p.machine.compute + p.reduceTime(draftReduces, branches) + tokenCost*float64(branches-1)
		total += (float64(p.steps)*draft*p.method().draft + cycleCost) * p.speed
	}
	return total
}

// prefillTime is what a prompt takes to its first token, in milliseconds; tokens
// found in the prefix cache cost nothing.
func (p *performance) prefillTime(prompt, cached int) float64 {
	if first, ok := p.steadyFirst(); ok {
		return first
	}
	fresh := max(prompt-cached, 1)
	total := (prefillCost + prefillTokenCost*float64(fresh)) * p.machine.compute
	chunk := p.options.number("chunked_prefill_size")
	for left := fresh; left > 0; {
		piece := left
		if chunk > 0 {
			piece = min(left, chunk)
		}
		total += p.reduceTime(allReduces, piece)
		left -= piece
	}
	// A prompt waits for the batch that is in flight.
	total += float64(p.options.number("num_continuous_decode_steps")-1) * 0.5
	return total * p.speed
}

// batch is how many requests of a workload run at once.
func (p *performance) batch(w Workload) int {
	room := p.memory.KVTokens / (w.PromptTokens + w.OutputTokens)
	return max(1, min(w.Concurrency, p.options.maxRunning(), room))
}

// cycles is how many a request of so many output tokens takes: the first token
// comes with the prefill, and the last cycle yields more than is left to give.
func (p *performance) cycles(output int) float64 {
	if _, ok := p.steadyTokens(); ok {
		return math.Ceil(float64(output)/p.acceptanceLength()) - 1
	}
	if output <= 1 {
		return 0
	}
	mean := p.acceptanceLength()
	square := 1.0 // E[(1+accepted)^2], from P(accepted >= i)
	for i, a := range p.accept {
		square += a * float64(2*(i+1)+1)
	}
	overshoot := (square/mean - 1) / 2
	return (float64(output-1) + overshoot) / mean
}

// throughput is the output rate in tokens/s of a closed loop: every request
// holds up the whole batch for its prefill. It is 0 when the batch does not fit.
func (p *performance) throughput(w Workload) float64 {
	n := p.batch(w)
	if p.failsUnderLoad(n) {
		return 0
	}
	perRequest := p.cycles(w.OutputTokens)*p.stepTime(n) + float64(n)*p.prefillTime(w.PromptTokens, 0)
	return 1e3 * float64(n*w.OutputTokens) / perRequest
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
