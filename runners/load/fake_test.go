package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeNetwork is a network in memory: within a synctest bubble, everything on
// it happens in virtual time.
type pipeNetwork struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipeNetwork) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeNetwork) Accept() (net.Conn, error) {
	select {
	case connection := <-p.accepted:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeNetwork) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipeNetwork) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000} }

// serve starts the handler on a network in memory and returns a client of it.
func serve(t *testing.T, protocol Protocol, handler http.Handler) *Client {
	t.Helper()
	network := &pipeNetwork{accepted: make(chan net.Conn), closed: make(chan struct{})}
	var handlers sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		handler.ServeHTTP(w, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(network) // always ends with an error, when closed
	}()
	t.Cleanup(func() {
		server.Close()
		network.Close()
		<-done
		handlers.Wait() // virtual time stops with the test, so none may sleep on
	})
	client, err := New(Target{BaseURL: "http://127.0.0.1:8000", Model: "m", Protocol: protocol, Dial: network.Dial})
	if err != nil {
		t.Fatal(err)
	}
	client.processor = func() time.Duration { return 0 } // real time, which the test's is not
	return client
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, run)
}

// step is one write of a scripted response: after is the time since the
// request came in.
type step struct {
	after time.Duration
	write string
}

// script answers each request by the steps, flushed one by one.
func script(steps ...step) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, s := range steps {
			time.Sleep(time.Until(start.Add(s.after)))
			fmt.Fprint(w, s.write)
			w.(http.Flusher).Flush()
		}
	}
}

// completion is a response of /v1/completions: chunks at the given interval
// after the first, then finish reason, usage and marker at once.
func completion(first, interval time.Duration, chunks, tokens int) []step {
	var steps []step
	at := first
	for range chunks {
		steps = append(steps, step{at, chunkEvent})
		at += interval
	}
	last := first + time.Duration(max(chunks-1, 0))*interval
	return append(steps, step{last, finishEvent + usageEvent(tokens) + doneEvent})
}

const (
	chunkEvent  = `data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	finishEvent = `data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
)

func usageEvent(tokens int) string {
	return fmt.Sprintf(`data: {"id":"c","choices":[],"usage":{"prompt_tokens":10,"total_tokens":%d,"completion_tokens":%d}}`+"\n\n", 10+tokens, tokens)
}

// prompts is a number of short prompts.
func prompts(n int) []Prompt {
	list := make([]Prompt, n)
	for i := range list {
		list[i].Text = fmt.Sprint("prompt ", i)
	}
	return list
}

// wantMetric checks a metric to within a millionth.
func wantMetric(t *testing.T, o RoundOutcome, name string, want float64) {
	t.Helper()
	got, ok := o.Metrics[name]
	if !ok {
		t.Errorf("%s is absent, want %g", name, want)
	} else if diff := got - want; diff > 1e-6*max(want, 1) || -diff > 1e-6*max(want, 1) {
		t.Errorf("%s = %g, want %g", name, got, want)
	}
}

func wantAbsent(t *testing.T, o RoundOutcome, names ...string) {
	t.Helper()
	for _, name := range names {
		if v, ok := o.Metrics[name]; ok {
			t.Errorf("%s = %g, want it absent", name, v)
		}
	}
}
