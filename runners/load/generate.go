package load

import (
	"bytes"
	"encoding/json"
	"strings"
)

// generateDecoder reads SGLang's native /generate. Each event carries the text
// (by default all of it so far), and meta_info with the running token count.
type generateDecoder struct {
	collect  bool
	text     textJoiner
	produced int // running count, or unknown
	finish   string
	meta     metaInfo // of the event with the finish reason, or the last decoded
}

func (d *generateDecoder) reset(collect bool) {
	*d = generateDecoder{collect: collect, produced: unknown}
}

func (d *generateDecoder) decode(data []byte) (mark, *RequestError) {
	if bytes.Equal(data, doneMarker) {
		return mark{done: true}, nil
	}
	if !d.collect && len(data) > 0 && data[0] == '{' && data[len(data)-1] == '}' {
		// meta_info follows the text, which may be long: look from the end.
		if i := bytes.LastIndex(data, keyMeta); i >= 0 {
			meta := data[i:]
			n, ok := number(meta, keyProduced)
			if ok && value(meta, keyFinish) == nil && value(data, keyError) == nil {
				return d.advance(n), nil
			}
		}
	}
	return d.decodeWhole(data)
}

// advance notes the running count: an event is a chunk when it grows.
func (d *generateDecoder) advance(produced int) mark {
	grown := produced > max(d.produced, 0)
	d.produced = produced
	return mark{tokens: grown, produced: produced}
}

type generateEvent struct {
	Text      string          `json:"text"`
	OutputIDs []int           `json:"output_ids"`
	Meta      metaInfo        `json:"meta_info"`
	Error     json.RawMessage `json:"error"`
}

type metaInfo struct {
	FinishReason     json.RawMessage `json:"finish_reason"`
	PromptTokens     *int            `json:"prompt_tokens"`
	CompletionTokens *int            `json:"completion_tokens"`
	CachedTokens     *int            `json:"cached_tokens"`
	Verifications    int             `json:"spec_verify_ct"`
	// The draft counts have had three pairs of names: since SGLang 0.5.12, 0.5.11
	// and 0.5.6. Releases send the older ones as aliases.
	Accepted0512 int `json:"spec_num_correct_drafts"`
	Drafted0512  int `json:"spec_num_proposed_drafts"`
	Accepted0511 int `json:"spec_accepted_drafts"`
	Drafted0511  int `json:"spec_proposed_drafts"`
	Accepted056  int `json:"spec_accept_token_num"`
	Drafted056   int `json:"spec_draft_token_num"`
}

func (d *generateDecoder) decodeWhole(data []byte) (mark, *RequestError) {
	var e generateEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return mark{}, &RequestError{Kind: FailedMalformed, Message: "event " + excerpt(data) + ": " + err.Error(), cause: err}
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return mark{}, &RequestError{Kind: FailedStream, Message: errorText(e.Error)}
	}
	d.meta = e.Meta
	grown := d.text.add(e.Text)
	m := mark{tokens: grown, produced: unknown}
	if e.Meta.CompletionTokens != nil {
		m = d.advance(*e.Meta.CompletionTokens)
	}
	reason, message := finishReason(e.Meta.FinishReason)
	if reason != "" {
		d.finish, m.last = reason, true
	}
	if reason == "abort" {
		return mark{}, &RequestError{Kind: FailedAborted, Message: message}
	}
	return m, nil
}

// finishReason reads the finish reason, which is an object with a type, a
// string, or null.
func finishReason(raw json.RawMessage) (reason, message string) {
	var object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Type != "" {
		return object.Type, excerpt([]byte(object.Message))
	}
	if json.Unmarshal(raw, &reason) != nil {
		return "", ""
	}
	return reason, ""
}

func (d *generateDecoder) summary() summary {
	s := summary{text: d.text.String(), finish: d.finish, prompt: unknown, produced: d.produced, cached: unknown}
	if d.meta.PromptTokens != nil {
		s.prompt = *d.meta.PromptTokens
	}
	if d.meta.CachedTokens != nil {
		s.cached = *d.meta.CachedTokens
	}
	if d.meta.Verifications > 0 && d.produced > 0 {
		s.speculation = Speculation{Verifications: d.meta.Verifications, Produced: d.produced}
	}
	s.speculation.Drafted = max(d.meta.Drafted0512, d.meta.Drafted0511, d.meta.Drafted056)
	s.speculation.Accepted = max(d.meta.Accepted0512, d.meta.Accepted0511, d.meta.Accepted056)
	return s
}

// textJoiner joins the texts of a response without being told whether each is
// the whole so far or a further piece. The texts are wholes when each begins
// with the one before it and the last is longer than the first; otherwise they
// are pieces.
type textJoiner struct {
	pieces      strings.Builder
	first, last string
	broken      bool // some text did not begin with the one before it
}

// add notes the next text, and tells whether it brought anything new.
func (t *textJoiner) add(text string) bool {
	if text == "" {
		return false
	}
	if t.pieces.Len() == 0 {
		t.first = text
	}
	wasLast := t.last
	t.broken = t.broken || !strings.HasPrefix(text, wasLast)
	t.pieces.WriteString(text)
	t.last = text
	return t.broken || len(text) > len(wasLast)
}

func (t *textJoiner) String() string {
	if !t.broken && len(t.last) > len(t.first) {
		return t.last
	}
	return t.pieces.String()
}
