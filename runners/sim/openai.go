package sim

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// openAIRequest is the body of /v1/completions and /v1/chat/completions.
type openAIRequest struct {
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []message       `json:"messages"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	StreamOptions       struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// textOf reads a string, a list with one string in it, or the text parts of a
// chat message.
func textOf(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		return list[0], nil
	}
	var parts []struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) == nil && len(parts) > 0 {
		var texts []string
		for _, part := range parts {
			if part.Text != nil {
				texts = append(texts, *part.Text)
			}
		}
		return strings.Join(texts, "\n"), nil
	}
	return "", &httpError{http.StatusBadRequest, "the simulation takes one prompt a request, as a text or a list of token ids"}
}

// prompt reads the prompt of a completion or the messages of a chat.
func (o openAIRequest) prompt(chat bool) (prompt, error) {
	if chat {
		var texts []string
		for _, m := range o.Messages {
			text, err := textOf(m.Content)
			if err != nil {
				return prompt{}, err
			}
			texts = append(texts, "<|"+m.Role+"|>", text)
		}
		if len(texts) == 0 {
			return prompt{}, &httpError{http.StatusBadRequest, "messages must not be empty"}
		}
		return promptOfText(strings.Join(texts, " ")), nil
	}
	var ids []int
	if json.Unmarshal(o.Prompt, &ids) == nil && len(ids) > 0 {
		return promptOfIDs(ids), nil
	}
	text, err := textOf(o.Prompt)
	return promptOfText(text), err
}

const standardCompletionTokens = 16

func (o openAIRequest) generation(chat bool) (generation, error) {
	p, err := o.prompt(chat)
	if err != nil {
		return generation{}, err
	}
	g := generation{
		prompt: p, maxTokens: standardCompletionTokens, ignoreEOS: o.IgnoreEOS, stream: o.Stream,
		usage:           !o.Stream || o.StreamOptions.IncludeUsage || o.StreamOptions.ContinuousUsage,
		continuousUsage: o.StreamOptions.ContinuousUsage,
	}
	if chat {
		g.maxTokens = contextLength - p.tokens
	}
	for _, limit := range []*int{o.MaxTokens, o.MaxCompletionTokens} {
		if limit != nil {
			g.maxTokens = *limit
		}
	}
	return g, nil
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type choiceOf struct {
	Index        int     `json:"index"`
	Text         *string `json:"text,omitempty"`
	Delta        *delta  `json:"delta,omitempty"`
	Message      *delta  `json:"message,omitempty"`
	LogProbs     any     `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}

type completion struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Model   string     `json:"model"`
	Choices []choiceOf `json:"choices"`
	Usage   *usage     `json:"usage"`
}

func (s *server) completions(w http.ResponseWriter, r *http.Request) { s.openAI(w, r, false) }
func (s *server) chat(w http.ResponseWriter, r *http.Request)        { s.openAI(w, r, true) }

// openAI serves both endpoints; they differ in where the text stands.
func (s *server) openAI(w http.ResponseWriter, httpRequest *http.Request, chat bool) {
	var body openAIRequest
	if err := json.NewDecoder(httpRequest.Body).Decode(&body); err != nil {
		refuse(w, &httpError{http.StatusBadRequest, "body is not JSON: " + err.Error()})
		return
	}
	g, err := body.generation(chat)
	if err != nil {
		refuse(w, err)
		return
	}
	r, broken, err := s.start(httpRequest.Context(), g)
	if err != nil {
		refuse(w, err)
		return
	}
	if s.options.faults.has(faultNoUsage) {
		g.usage, g.continuousUsage = false, false
	}
	e := exchange{server: s, generation: g, request: r, chat: chat, broken: broken, http: httpRequest}
	e.template = completion{ID: newID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(), Model: s.options.modelID()}
	if chat {
		e.template.ID, e.template.Object = newID("chatcmpl-"), "chat.completion.chunk"
	}
	if g.stream {
		e.stream(newWriter(w))
	} else {
		e.whole(w)
	}
}

// exchange is one request of the OpenAI endpoints being answered.
type exchange struct {
	*server
	generation
	request      *request
	chat, broken bool
	http         *http.Request
	template     completion
}

// chunk is an event with some text; reason is set on the last one.
func (e *exchange) chunk(text string, reason *string, tokens int) completion {
	c := e.template
	one := choiceOf{FinishReason: reason}
	switch {
	case !e.chat:
		one.Text = &text
	case reason != nil && text == "":
		one.Delta = &delta{}
	default:
		one.Delta = &delta{Content: &text}
	}
	c.Choices = []choiceOf{one}
	if e.continuousUsage {
		c.Usage = e.count(tokens)
	}
	return c
}

func (e *exchange) count(tokens int) *usage {
	return &usage{e.request.prompt.tokens, tokens, e.request.prompt.tokens + tokens}
}

func (e *exchange) stream(w writer) {
	if e.chat {
		empty := ""
		first := e.template
		first.Choices = []choiceOf{{Delta: &delta{Role: "assistant", Content: &empty}}}
		if w.event(first) != nil {
			return
		}
	}
	given := 0
	err := e.request.follow(e.http.Context(), e.broken, func(now snapshot, from int) error {
		given = now.tokens
		return w.event(e.chunk(e.words(e.request, from, now.tokens), nil, now.tokens))
	})
	switch {
	case errors.Is(err, errAborted):
		if w.event(errorEvent()) == nil {
			w.done()
		}
		return
	case err != nil:
		return
	}
	if w.event(e.chunk("", &e.request.reason, given)) != nil {
		return
	}
	if e.usage {
		last := e.template
		last.Choices = []choiceOf{}
		last.Usage = e.count(given)
		if w.event(last) != nil {
			return
		}
	}
	w.done()
}

func (e *exchange) whole(w http.ResponseWriter) {
	given := 0
	err := e.request.follow(e.http.Context(), e.broken, func(now snapshot, _ int) error {
		given = now.tokens
		return nil
	})
	switch {
	case errors.Is(err, errAborted):
		refuse(w, &httpError{http.StatusInternalServerError, "The request was aborted by the scheduler"})
		return
	case err != nil:
		return
	}
	text := e.words(e.request, 0, given)
	c := e.template
	one := choiceOf{FinishReason: &e.request.reason}
	if e.chat {
		c.Object = "chat.completion"
		one.Message = &delta{Role: "assistant", Content: &text}
	} else {
		one.Text = &text
	}
	c.Choices = []choiceOf{one}
	if e.usage {
		c.Usage = e.count(given)
	}
	answer(w, http.StatusOK, c)
}
