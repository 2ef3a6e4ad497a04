package load

import (
	"bytes"
	"encoding/json"
	"strings"
)

// decoder reads the events of one response. There is one for each protocol.
type decoder interface {
	// reset prepares for another response. With collect set, the text is kept.
	reset(collect bool)
	// decode reads one event.
	decode(data []byte) (mark, *RequestError)
	// summary tells, at the end, what the response as a whole said.
	summary() summary
}

// mark is what one event means for the measurement.
type mark struct {
	// tokens is set for a chunk: an event that carries tokens.
	tokens bool
	// produced is the response's running token count after the event, or
	// unknown.
	produced int
	// last is set when the event carries the finish reason.
	last bool
	// done is set for the terminal marker.
	done bool
}

// unknown stands for a count that the server did not give.
const unknown = -1

// summary is what a response said of itself.
type summary struct {
	text, reasoning string
	finish          string
	prompt          int // input tokens, or unknown
	produced        int // output tokens, or unknown
	cached          int // input tokens served from the prefix cache, or unknown
	speculation     Speculation
}

// Speculation is what the responses told about their drafts; zero where a
// server tells nothing.
type Speculation struct {
	// Verifications is the number of verify passes, and Produced the tokens of
	// the responses that gave it.
	Verifications, Produced int
	Drafted, Accepted       int // draft tokens
}

func (s *Speculation) add(other Speculation) {
	s.Verifications += other.Verifications
	s.Produced += other.Produced
	s.Drafted += other.Drafted
	s.Accepted += other.Accepted
}

func newDecoder(p Protocol) decoder {
	if p == SGLangGenerate {
		return &generateDecoder{}
	}
	keys := completionKeys
	if p == OpenAIChat {
		keys = chatKeys
	}
	return &openAIDecoder{textKeys: keys}
}

var (
	doneMarker     = []byte("[DONE]")
	keyError       = []byte(`"error"`)
	keyFinish      = []byte(`"finish_reason"`)
	keyUsage       = []byte(`"usage"`)
	keyProduced    = []byte(`"completion_tokens"`)
	keyMeta        = []byte(`"meta_info"`)
	completionKeys = [][]byte{[]byte(`"text"`)}
	chatKeys       = [][]byte{[]byte(`"content"`), []byte(`"reasoning_content"`), []byte(`"reasoning"`)}
)

// openAIDecoder reads /v1/completions and /v1/chat/completions.
type openAIDecoder struct {
	textKeys [][]byte
	collect  bool

	text, reasoning strings.Builder
	finish          string
	produced        int    // running count, or unknown
	usage           []byte // copy of the last event with usage
	timings         timings
}

func (d *openAIDecoder) reset(collect bool) {
	*d = openAIDecoder{textKeys: d.textKeys, collect: collect, produced: unknown, usage: d.usage[:0]}
}

func (d *openAIDecoder) decode(data []byte) (mark, *RequestError) {
	if bytes.Equal(data, doneMarker) {
		return mark{done: true}, nil
	}
	if !d.plain(data) {
		return d.decodeWhole(data)
	}
	return mark{tokens: true, produced: d.keepUsage(data)}, nil
}

// plain tells that an event is surely a chunk and nothing else: it has text,
// and neither an error nor a finish reason. All others are decoded.
func (d *openAIDecoder) plain(data []byte) bool {
	if d.collect || len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return false
	}
	text := false
	for _, key := range d.textKeys {
		if text = hasText(data, key); text {
			break
		}
	}
	return text && value(data, keyFinish) == nil && value(data, keyError) == nil
}

// keepUsage copies an event with usage, of which the last one is decoded at the
// end, and returns its token count.
func (d *openAIDecoder) keepUsage(data []byte) int {
	usage := value(data, keyUsage)
	if usage == nil || usage[0] != '{' {
		return unknown
	}
	d.usage = append(d.usage[:0], data...)
	n, ok := number(usage, keyProduced)
	if !ok {
		return unknown
	}
	d.produced = n
	return n
}

type openAIEvent struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content          string          `json:"content"`
			ReasoningContent string          `json:"reasoning_content"`
			Reasoning        string          `json:"reasoning"`
			ToolCalls        json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
		TokenIDs     []int  `json:"token_ids"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Message string          `json:"message"`
	Timings *timings        `json:"timings"`
}

// timings is what llama.cpp adds to its last chunk.
type timings struct {
	PromptN        *int `json:"prompt_n"` // without those from the cache
	CacheN         *int `json:"cache_n"`
	PredictedN     *int `json:"predicted_n"`
	DraftN         int  `json:"draft_n"`
	DraftNAccepted int  `json:"draft_n_accepted"`
}

// decodeWhole reads the events that are not plain chunks, of which a response
// has a handful.
func (d *openAIDecoder) decodeWhole(data []byte) (mark, *RequestError) {
	var e openAIEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return mark{}, &RequestError{Kind: FailedMalformed, Message: "event " + excerpt(data) + ": " + err.Error(), cause: err}
	}
	if message, failed := e.failure(); failed {
		return mark{}, &RequestError{Kind: FailedStream, Message: message}
	}
	before := d.produced
	m := mark{produced: d.keepUsage(data)}
	if e.Timings != nil {
		d.timings = *e.Timings
	}
	for _, choice := range e.Choices {
		text, reasoning := choice.Text+choice.Delta.Content, choice.Delta.ReasoningContent
		if reasoning == "" {
			reasoning = choice.Delta.Reasoning
		}
		if d.collect {
			d.text.WriteString(text)
			d.reasoning.WriteString(reasoning)
		}
		tool := len(choice.Delta.ToolCalls) > len("null") // longer than [] and null
		m.tokens = m.tokens || text != "" || reasoning != "" || tool || len(choice.TokenIDs) > 0
		if choice.FinishReason != "" {
			d.finish, m.last = choice.FinishReason, true
		}
	}
	// A growing count makes a chunk of an event without text, but for the one
	// that ends a response: it repeats the count of the whole.
	if len(e.Choices) > 0 && !m.last && m.produced > max(before, 0) {
		m.tokens = true
	}
	return m, nil
}

// failure finds the error of an event: an error object, or vLLM's older form,
// where the event itself is one.
func (e *openAIEvent) failure() (string, bool) {
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return errorText(e.Error), true
	}
	return excerpt([]byte(e.Message)), e.Object == "error" && len(e.Choices) == 0
}

func (d *openAIDecoder) summary() summary {
	s := summary{
		text: d.text.String(), reasoning: d.reasoning.String(), finish: d.finish,
		prompt: unknown, produced: d.produced, cached: unknown,
		speculation: Speculation{Drafted: d.timings.DraftN, Accepted: d.timings.DraftNAccepted},
	}
	d.timings.into(&s)
	var e struct {
		Usage usage `json:"usage"`
	}
	if len(d.usage) > 0 && json.Unmarshal(d.usage, &e) == nil {
		e.Usage.into(&s)
	}
	return s
}

// into fills in what llama.cpp counts itself, for a response without usage.
func (t *timings) into(s *summary) {
	if t.PredictedN != nil {
		s.produced = *t.PredictedN
	}
	if t.CacheN != nil {
		s.cached = *t.CacheN
	}
	if t.PromptN != nil {
		s.prompt = *t.PromptN + max(s.cached, 0)
	}
}

type usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	Details          *struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) into(s *summary) {
	if u.PromptTokens != nil {
		s.prompt = *u.PromptTokens
	}
	if u.CompletionTokens != nil {
		s.produced = *u.CompletionTokens
	}
	if u.Details != nil && u.Details.CachedTokens != nil {
		s.cached = *u.Details.CachedTokens
	}
}
