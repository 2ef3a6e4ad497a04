package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// exchange carries out requests one after the other, and keeps its buffers
// between them. It belongs to one goroutine.
type exchange struct {
	client    *Client
	transport *http.Transport
	trace     httptrace.ClientTrace
	reader    eventReader
	decoder   decoder
	now       response
}

// response is what one request brought. Its gaps are valid until the next
// request of the same exchange.
type response struct {
	summary
	sent        time.Time // zero when no connection was had
	first, last time.Time // chunks; last may be the event with the finish reason
	lastChunk   time.Time
	end         time.Time // terminal marker, or failure
	chunks      int
	gaps        []gap
	// firstTokens are the tokens of the first chunk, and counted says that the
	// stream told the tokens of every chunk.
	firstTokens int
	counted     bool
	running     int // token count after the last chunk, while counted
}

// gap is the time between a chunk and the one before it.
type gap struct {
	length time.Duration
	tokens int // of the chunk that ends the gap, or unknown
}

// drainLimit bounds the wait for the end of a response whose terminal marker
// has been seen; past it the connection is given up instead of used again.
const drainLimit = time.Second

// normalFinish are the finish reasons of a response that was not cut short.
var normalFinish = map[string]bool{
	"": true, "length": true, "stop": true, "tool_calls": true, "function_call": true,
}

func newExchange(c *Client, transport *http.Transport) *exchange {
	x := &exchange{client: c, transport: transport, decoder: newDecoder(c.target.Protocol)}
	x.trace.GotConn = func(httptrace.GotConnInfo) { x.now.sent = time.Now() }
	return x
}

// do sends one request and reads its response to the end. The response is
// meaningful only without an error, but for sent and end.
func (x *exchange) do(ctx context.Context, body []byte, collect bool) (*response, *RequestError) {
	x.now = response{gaps: x.now.gaps[:0], counted: true}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failure := x.roundTrip(httptrace.WithClientTrace(ctx, &x.trace), cancel, body, collect)
	if x.now.end.IsZero() {
		x.now.end = time.Now()
	}
	return &x.now, failure
}

func (x *exchange) roundTrip(ctx context.Context, cancel func(), body []byte, collect bool) *RequestError {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, x.client.url, bytes.NewReader(body))
	if err != nil {
		return &RequestError{Kind: FailedConnect, Message: err.Error(), cause: err}
	}
	x.client.decorate(request)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	answer, err := x.transport.RoundTrip(request)
	if err != nil {
		return &RequestError{Kind: FailedConnect, Message: err.Error(), cause: err}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return refusal(answer)
	}
	x.reader.reset(answer.Body)
	x.decoder.reset(collect)
	if failure := x.consume(); failure != nil {
		return failure
	}
	x.now.end = time.Now()
	x.now.summary = x.decoder.summary()
	failure := x.judge()
	// Only a body that was read to its end leaves the connection usable.
	late := time.AfterFunc(drainLimit, cancel)
	_, _ = io.Copy(io.Discard, answer.Body) // an error here costs the connection, not the response
	late.Stop()
	return failure
}

// decorate adds the headers that every request to the target carries.
func (c *Client) decorate(request *http.Request) {
	for name, values := range c.target.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("User-Agent", "nocturne")
}

// refusal is the failure of an answer with a status other than 200. Its body
// is read to the end when it is short, so that the connection can be kept.
func refusal(answer *http.Response) *RequestError {
	const maxRefusalBytes = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusalBytes)) // what was read of it is shown
	message := answer.Status
	if text := errorText(body); text != "" {
		message += ": " + text
	}
	return &RequestError{Kind: FailedStatus(answer.StatusCode), Message: message}
}

// consume reads events up to the terminal marker.
func (x *exchange) consume() *RequestError {
	events := 0
	for {
		e, err := x.reader.next()
		if err != nil {
			return x.cutOff(err, events)
		}
		if len(e.data) == 0 {
			continue
		}
		events++
		if e.failed {
			return &RequestError{Kind: FailedStream, Message: errorText(e.data)}
		}
		m, failure := x.decoder.decode(e.data)
		switch {
		case failure != nil:
			return failure
		case m.done:
			return nil
		case m.tokens:
			x.now.chunk(e.at, m.produced)
		}
		if m.tokens || m.last {
			x.now.last = e.at
		}
	}
}

// cutOff is the failure of a stream that ended without its terminal marker.
func (x *exchange) cutOff(err error, events int) *RequestError {
	switch {
	case errors.Is(err, errEventTooLong):
		return &RequestError{Kind: FailedMalformed, Message: err.Error(), cause: err}
	case errors.Is(err, io.EOF) && events == 0 && len(x.reader.stray) > 0:
		return &RequestError{Kind: FailedMalformed,
			Message: "the answer is not an event stream: " + excerpt(x.reader.stray)}
	case errors.Is(err, io.EOF):
		return &RequestError{Kind: FailedCutOff,
			Message: fmt.Sprintf("the stream ended after %d events without data: [DONE]", events), cause: err}
	}
	return &RequestError{Kind: FailedCutOff,
		Message: fmt.Sprintf("the stream broke off after %d events: %v", events, err), cause: err}
}

// judge applies the rules that need the whole response.
func (x *exchange) judge() *RequestError {
	r := &x.now
	if !normalFinish[r.finish] {
		return &RequestError{Kind: FailedAborted, Message: "finish reason " + r.finish}
	}
	if r.chunks == 0 && r.produced <= 0 || r.last.IsZero() {
		return &RequestError{Kind: FailedEmpty, Message: "the stream ended properly and held no token"}
	}
	return nil
}

// chunk notes an event that carries tokens.
func (r *response) chunk(at time.Time, produced int) {
	tokens := unknown
	if produced == unknown {
		r.counted = false
	} else if r.counted {
		tokens = max(produced-r.running, 0)
		r.running = produced
	}
	if r.chunks == 0 {
		r.first, r.firstTokens = at, tokens
	} else {
		r.gaps = append(r.gaps, gap{length: at.Sub(r.lastChunk), tokens: tokens})
	}
	r.lastChunk = at
	r.chunks++
}
