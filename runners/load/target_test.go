package load

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The address that is dialled is a literal one and stays the same: a server on
// 127.0.0.1 only, one on ::1 only, a name with a dead first address.
func TestF21_LiteralAddresses(t *testing.T) {
	for _, test := range []struct{ base, address string }{
		{"http://127.0.0.1:8000", "127.0.0.1:8000"},
		{"http://127.0.0.1:8000/v1/", "127.0.0.1:8000"},
		{"http://[::1]:8000/v1", "[::1]:8000"},
		{"http://[::1]", "[::1]:80"},
	} {
		client, err := New(Target{BaseURL: test.base, Protocol: OpenAIChat})
		if err != nil {
			t.Fatal(err)
		}
		if client.Address() != test.address {
			t.Errorf("%s is dialled at %s, want %s", test.base, client.Address(), test.address)
		}
		if !strings.HasSuffix(client.url, "/v1/chat/completions") || strings.Contains(client.url, "/v1/v1") {
			t.Errorf("%s is asked at %s", test.base, client.url)
		}
	}
	for _, base := range []string{"http://localhost:8000", "http://gpu-1:8000/v1"} {
		if _, err := New(Target{BaseURL: base, Protocol: OpenAIChat}); !errors.Is(err, ErrNotLiteral) {
			t.Errorf("%s: %v, want ErrNotLiteral", base, err)
		}
	}
	client, err := New(Target{BaseURL: "http://localhost:8000", Address: "127.0.0.1:8000", Protocol: OpenAIChat})
	if err != nil || client.Address() != "127.0.0.1:8000" {
		t.Errorf("pinned name: %v at %s", err, client.Address())
	}
}

func TestF21_PinTriesEveryAddressOnce(t *testing.T) {
	lookups := 0
	lookup := func(context.Context, string, string) ([]netip.Addr, error) {
		lookups++
		return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	var dialled []string
	dialOnly := func(alive string) DialFunc {
		return func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			if address != alive {
				return nil, errors.New(address + " refused")
			}
			connection, _ := net.Pipe()
			return connection, nil
		}
	}
	got, err := pin(t.Context(), "http://localhost:8000/v1", lookup, dialOnly("127.0.0.1:8000"))
	if err != nil || got != "127.0.0.1:8000" || lookups != 1 {
		t.Errorf("pinned to %s after %d look-ups, %v", got, lookups, err)
	}
	if diff := cmp.Diff([]string{"[::1]:8000", "127.0.0.1:8000"}, dialled); diff != "" {
		t.Error(diff)
	}
	if got, err := pin(t.Context(), "http://[::1]:8000/v1", nil, nil); err != nil || got != "[::1]:8000" {
		t.Errorf("a literal address: %s, %v; want it untouched", got, err)
	}
	if _, err := pin(t.Context(), "http://localhost:8000", lookup, dialOnly("")); err == nil || !strings.Contains(err.Error(), "127.0.0.1:8000 refused") {
		t.Errorf("dead server: %v", err)
	}
}

// A server on ::1 only is measured over a real socket.
func TestF21_IPv6Server(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatalf("this test needs IPv6 on the loopback interface: %v", err)
	}
	server := &http.Server{Handler: script(completion(0, 0, 2, 2)...)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() { server.Close(); <-done }()
	client, err := New(Target{BaseURL: "http://" + listener.Addr().String() + "/v1", Protocol: OpenAICompletions})
	if err != nil {
		t.Fatal(err)
	}
	o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(4), Concurrency: 2, OutputTokens: 2})
	if err != nil {
		t.Fatal(err)
	}
	wantMetric(t, o, "completed", 4)
	if o.Metrics["mean_connect_ms"] <= 0 {
		t.Error("connection set-up is not reported")
	}
}

func TestNew_Refuses(t *testing.T) {
	for fault, target := range map[string]Target{
		"unknown protocol":       {BaseURL: "http://127.0.0.1:1", Protocol: "grpc"},
		"http://HOST:PORT":       {BaseURL: "127.0.0.1:8000", Protocol: OpenAIChat},
		"expected http":          {BaseURL: "ftp://127.0.0.1", Protocol: OpenAIChat},
		"server address":         {BaseURL: "http://[::1", Protocol: OpenAIChat},
		"not a literal address":  {BaseURL: "http://127.0.0.1:1", Address: "localhost:1", Protocol: OpenAIChat},
		"http://user:xxxxx@host": {BaseURL: "http://user:secret@host:1", Protocol: OpenAIChat},
	} {
		_, err := New(target)
		if err == nil || !strings.Contains(err.Error(), fault) && fault != "http://HOST:PORT" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", target.BaseURL, err, fault)
		}
	}
}

func TestRequestBodies(t *testing.T) {
	request := Request{Prompt: "p <b>", OutputTokens: 7, IgnoreEOS: true}
	for _, test := range []struct {
		name   string
		target Target
		want   string
	}{
		{"completions", Target{Protocol: OpenAICompletions, Model: "m", Extra: map[string]any{"cache_prompt": false, "stream_options": map[string]any{"continuous_usage_stats": true}}},
			`{"model":"m","prompt":"p <b>","max_tokens":7,"temperature":0,"ignore_eos":true,"cache_prompt":false,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		{"chat", Target{Protocol: OpenAIChat, Model: "m", Extra: map[string]any{"stream_options": nil, "temperature": 0.5}},
			`{"model":"m","messages":[{"role":"user","content":"p <b>"}],"max_tokens":7,"temperature":0.5,"ignore_eos":true,"stream":true}`},
		{"generate", Target{Protocol: SGLangGenerate, Model: "m", Extra: map[string]any{"sampling_params": map[string]any{"min_new_tokens": 7}, "a": map[string]any{"b": 1}}},
			`{"text":"p <b>","sampling_params":{"max_new_tokens":7,"temperature":0,"ignore_eos":true,"min_new_tokens":7},"stream":true,"a":{"b":1}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // a second body must not see leftovers of the first
				body, err := test.target.body(request)
				if err != nil {
					t.Fatal(err)
				}
				var got, want any
				if json.Unmarshal(body, &got) != nil || json.Unmarshal([]byte(test.want), &want) != nil {
					t.Fatalf("body %s is not JSON", body)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	bad := Target{Protocol: OpenAIChat, Extra: map[string]any{"f": func() {}}}
	if _, err := bad.body(request); err == nil {
		t.Error("a body that cannot be encoded was accepted")
	}
}

func TestHeaders(t *testing.T) {
	virtual(t, func(t *testing.T) {
		seen := make(chan http.Header, 1)
		answer := script(completion(0, 0, 1, 1)...)
		client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Header.Clone()
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		}))
		client.target.Header = http.Header{"authorization": {"Bearer secret"}}
		if _, err := client.Complete(t.Context(), Request{OutputTokens: 1}); err != nil {
			t.Fatal(err)
		}
		header := <-seen
		if header.Get("Authorization") != "Bearer secret" || header.Get("Content-Type") != "application/json" || header.Get("Accept-Encoding") != "" {
			t.Errorf("headers %v", header)
		}
	})
}
