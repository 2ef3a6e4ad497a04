package load

import (
	"context"
	"time"
)

// Unknown is the value of a count that the server did not give.
const Unknown = unknown

// Completion is the answer to one request.
type Completion struct {
	Text string
	// Reasoning is the text of a reasoning model's own field.
	Reasoning    string
	FinishReason string // "length", "stop" ...
	// Token counts as the server gives them, or Unknown.
	InputTokens, OutputTokens, CachedTokens int
	// Chunks is the number of events that carried tokens.
	Chunks int
	// Connect is the time to open the connection; the other times start after it.
	Connect     time.Duration
	TTFT        time.Duration // zero when no event carried text
	Latency     time.Duration // send to last token
	Speculation Speculation
}

// Complete carries out one request on a connection of its own. A request that
// was sent and did not complete is a [*RequestError]; a cancelled context is
// its cause.
func (c *Client) Complete(ctx context.Context, request Request) (Completion, error) {
	body, err := c.target.body(request)
	if err != nil {
		return Completion{}, err
	}
	connections := &connections{dial: c.dial, address: c.address}
	transport := connections.transport(0)
	defer transport.CloseIdleConnections()
	r, failure := newExchange(c, transport).do(ctx, body, true)
	if failure != nil {
		if ctx.Err() != nil {
			return Completion{}, context.Cause(ctx)
		}
		return Completion{}, failure
	}
	completion := Completion{
		Text: r.text, Reasoning: r.reasoning, FinishReason: r.finish,
		InputTokens: r.prompt, OutputTokens: r.summary.produced, CachedTokens: r.cached,
		Chunks: r.chunks, Latency: r.last.Sub(r.sent), Speculation: r.speculation,
	}
	if r.chunks > 0 {
		completion.TTFT = r.first.Sub(r.sent)
	}
	if times := connections.times(); len(times) > 0 {
		completion.Connect = times[0]
	}
	return completion, nil
}
