package load

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Request is what one request asks for.
type Request struct {
	Prompt string
	// OutputTokens is the greatest number of tokens to produce; with IgnoreEOS
	// exactly that many.
	OutputTokens int
	IgnoreEOS    bool
	// Temperature is always sent: servers that are not told take it from the
	// model's own generation config.
	Temperature float64
}

// body encodes a request for the target.
func (t *Target) body(r Request) ([]byte, error) {
	var fields map[string]any
	switch t.Protocol {
	case SGLangGenerate:
		sampling := map[string]any{"max_new_tokens": r.OutputTokens, "temperature": r.Temperature}
		if r.IgnoreEOS {
			sampling["ignore_eos"] = true
		}
		fields = map[string]any{"text": r.Prompt, "sampling_params": sampling, "stream": true}
	default:
		fields = map[string]any{
			"model": t.Model, "max_tokens": r.OutputTokens, "temperature": r.Temperature,
			"stream": true, "stream_options": map[string]any{"include_usage": true},
		}
		if r.IgnoreEOS {
			fields["ignore_eos"] = true
		}
		if t.Protocol == OpenAIChat {
			fields["messages"] = []any{map[string]any{"role": "user", "content": r.Prompt}}
		} else {
			fields["prompt"] = r.Prompt
		}
	}
	merge(fields, t.Extra)
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return encoded, nil
}

// merge lays extra over fields: maps into maps, nil removes.
func merge(fields, extra map[string]any) {
	for name, v := range extra {
		if v == nil {
			delete(fields, name)
			continue
		}
		if further, ok := v.(map[string]any); ok {
			below, _ := fields[name].(map[string]any)
			merged := maps.Clone(below)
			if merged == nil {
				merged = map[string]any{}
			}
			merge(merged, further)
			v = merged
		}
		fields[name] = v
	}
}
