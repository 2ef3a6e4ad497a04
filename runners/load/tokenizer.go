package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Tokenizer counts the tokens of a text as the server will when it is a prompt.
// It is safe for concurrent use.
type Tokenizer interface {
	Count(ctx context.Context, text string) (int, error)
}

// ErrNoTokenizer is wrapped by the error of a tokenizer whose server has no such
// page.
var ErrNoTokenizer = errors.New("the server has no tokenizer page")

const (
	tokenizePath     = "/tokenize"
	tokenizeTimeout  = 30 * time.Second
	tokenizeAttempts = 3
	tokenizeIdle     = 2 * time.Second
	maxTokenizeBytes = 64 << 20
	// tokenizeAtOnce is how many texts are counted at the same time.
	tokenizeAtOnce = 8
)

// Tokenizer returns the tokenizer page of a kind of server: vllm, sglang (since
// 0.5.2) or llamacpp; false for another kind.
//
// A completion's prompt is counted with the special tokens that the server puts
// before it. Of a chat only the message is counted: what its template adds comes
// on top.
func (c *Client) Tokenizer(kind string) (Tokenizer, bool) {
	special := c.target.Protocol != OpenAIChat
	var fields func(text string) map[string]any
	switch kind {
	case "vllm", "sglang": // sglang python/sglang/srt/entrypoints/openai/protocol.py has vLLM's fields
		fields = func(text string) map[string]any {
			return map[string]any{"model": c.target.Model, "prompt": text, "add_special_tokens": special}
		}
	case "llamacpp": // ggml-org/llama.cpp tools/server/README.md
		fields = func(text string) map[string]any {
			return map[string]any{"content": text, "add_special": special, "parse_special": special}
		}
	default:
		return nil, false
	}
	connections := &connections{dial: c.dial, address: c.address}
	transport := connections.transport(tokenizeAtOnce)
	transport.IdleConnTimeout = tokenizeIdle
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: transport}
	client.Logger, client.RetryMax = nil, tokenizeAttempts-1
	client.RetryWaitMin, client.RetryWaitMax = 50*time.Millisecond, 500*time.Millisecond
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return &tokenizerPage{client: c, http: client, fields: fields}, true
}

type tokenizerPage struct {
	client *Client
	http   *retryablehttp.Client
	fields func(text string) map[string]any
}

// Count implements [Tokenizer].
func (p *tokenizerPage) Count(ctx context.Context, text string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenizeTimeout)
	defer cancel()
	body, err := json.Marshal(p.fields(text))
	if err != nil {
		return 0, fmt.Errorf("encoding a text to count: %w", err)
	}
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, p.client.root+tokenizePath, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("asking %s: %w", tokenizePath, err)
	}
	p.client.decorate(request.Request)
	request.Header.Set("Content-Type", "application/json")
	answer, err := p.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking %s: %w", tokenizePath, err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxTokenizeBytes))
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the answer of %s: %w", tokenizePath, err)
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed || answer.StatusCode == http.StatusNotImplemented:
		return 0, fmt.Errorf("%s answered %s: %w", tokenizePath, answer.Status, ErrNoTokenizer)
	case answer.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("%s answered %s: %s", tokenizePath, answer.Status, errorText(content))
	}
	return tokensIn(content)
}

// tokensIn reads the answer: a count, or the tokens themselves.
func tokensIn(content []byte) (int, error) {
	var reply struct {
		Count  *int              `json:"count"`
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := json.Unmarshal(content, &reply); err != nil {
		return 0, fmt.Errorf("the answer of %s is not what was expected: %w: %s", tokenizePath, err, excerpt(content))
	}
	switch {
	case reply.Count != nil && *reply.Count >= 0:
		return *reply.Count, nil
	case reply.Tokens != nil:
		return len(reply.Tokens), nil
	}
	return 0, fmt.Errorf("the answer of %s holds no tokens: %s", tokenizePath, excerpt(content))
}
