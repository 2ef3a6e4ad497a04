package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Speculation is speculative decoding as a campaign asks for it, in words that
// no server owns.
type Speculation struct {
	Method string
	// Steps is how many tokens the draft proposes one after another; 0 is off.
	Steps int
	// TopK is the number of branches at each step; 0 and 1 mean a chain.
	TopK int
	// DraftTokens is the number of tokens verified at once; 0 lets the kind
	// choose.
	DraftTokens int
	DraftModel  string
}

// Rendering says how a kind writes speculation on its command line.
type Rendering struct {
	// Methods maps a campaign's word, in lower case, to the server's method.
	Methods map[string]Method
	// JSONFlag, when set, takes all fields as one JSON object in one argument.
	JSONFlag string
	// Fields are written in this order; those without a value are left out.
	Fields []Field
	// Trees tells that the server drafts trees (TopK above 1), and that the number
	// of verified tokens is an argument of its own.
	Trees bool
}

// Method is one method of speculation of one server.
type Method struct {
	Name  string
	Draft DraftModel
	// MaxSteps bounds Steps where the method fixes the draft's length; 0: free.
	MaxSteps int
	// Omit lists fields that the method does not take.
	Omit []Source
}

// DraftModel says whether a method takes a draft model.
type DraftModel string

// What a method takes.
const (
	DraftRequired DraftModel = "required"
	DraftOptional DraftModel = "optional" // the target brings its own draft layers
	DraftNone     DraftModel = "none"
)

// Field is one flag, or one key of the JSON object.
type Field struct {
	Name string
	// Key, when set, is written before the value in the same argument: "--set",
	// "path=value".
	Key    string
	Source Source
}

// Source names the part of a Speculation that a field carries.
type Source string

// Sources of fields.
const (
	SourceMethod      Source = "method"
	SourceDraftModel  Source = "draft_model"
	SourceSteps       Source = "steps"
	SourceTopK        Source = "topk"
	SourceDraftTokens Source = "draft_tokens"
)

// RenderSpeculation returns the arguments that ask the newest version of a kind
// of server for the speculation; none for 0 steps. The error says what the kind
// cannot do.
func RenderSpeculation(kind string, speculation Speculation) ([]string, error) {
	server, err := Get(kind)
	if err != nil {
		return nil, err
	}
	return server.Render(speculation)
}

// Render is RenderSpeculation for a kind at a version ([Kind.At]).
func (k *Kind) Render(speculation Speculation) ([]string, error) {
	if speculation.Steps == 0 {
		return nil, nil
	}
	if k.Speculation == nil {
		return nil, fmt.Errorf("server kind %q has no common form of speculation: write its arguments as groups or flags instead", k.Name)
	}
	method, err := k.Speculation.method(speculation)
	if err != nil {
		return nil, fmt.Errorf("speculation for %s: %w", k.Title, err)
	}
	return k.Speculation.render(method, speculation)
}

// method looks the method up and checks the speculation against it.
func (r *Rendering) method(s Speculation) (Method, error) {
	method, known := r.Methods[strings.ToLower(s.Method)]
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch {
	case !known:
		return Method{}, fmt.Errorf("unknown method %q, expected one of %s", s.Method,
			strings.Join(slices.Sorted(maps.Keys(r.Methods)), ", "))
	case s.Steps < 0:
		add("steps is %d, expected 0 or more", s.Steps)
	case method.MaxSteps > 0 && s.Steps > method.MaxSteps:
		add("method %s drafts at most %d step, got %d", method.Name, method.MaxSteps, s.Steps)
	}
	if s.TopK < 0 || s.TopK > 1 && (!r.Trees || slices.Contains(method.Omit, SourceTopK)) {
		add("topk is %d, but method %s drafts chains only (topk 1)", s.TopK, method.Name)
	}
	if s.DraftModel == "" && method.Draft == DraftRequired {
		add("method %s needs draft_model", method.Name)
	}
	if s.DraftModel != "" && method.Draft == DraftNone {
		add("method %s takes no draft_model", method.Name)
	}
	faults = append(faults, r.checkDraftTokens(s))
	return method, errors.Join(faults...)
}

func (r *Rendering) checkDraftTokens(s Speculation) error {
	if s.DraftTokens == 0 {
		return nil
	}
	if s.TopK <= 1 && s.DraftTokens != s.Steps+1 {
		// SGLang would rewrite it to steps+1 without an error, so that two
		// configurations would be one (server_args.py, 0.5.18).
		return fmt.Errorf("draft_tokens is %d, but a chain of %d steps verifies %d: leave it at auto", s.DraftTokens, s.Steps, s.Steps+1)
	}
	if limit := treeCandidates(s.Steps, s.TopK) + 1; s.TopK > 1 && s.DraftTokens > limit {
		return fmt.Errorf("draft_tokens is %d, but %d steps with topk %d have at most %d", s.DraftTokens, s.Steps, s.TopK, limit)
	}
	return nil
}

// treeCandidates is the number of nodes among which a tree of drafts chooses:
// topk at the first step and topk for each of topk parents at every later one
// (SGLang, speculative/eagle_utils.py).
func treeCandidates(steps, topk int) int {
	return topk + (steps-1)*topk*topk
}

// usualTreeTokens is what SGLang verifies for a tree when it chooses by itself
// (5 steps, topk 4, 8 tokens).
const usualTreeTokens = 8

// draftTokens returns the number of tokens verified at once.
func (s Speculation) draftTokens() int {
	switch {
	case s.DraftTokens > 0:
		return s.DraftTokens
	case s.TopK <= 1:
		return s.Steps + 1
	default:
		// A tree holds at least one path of full depth.
		return min(max(usualTreeTokens, s.Steps+1), treeCandidates(s.Steps, s.TopK)+1)
	}
}

// value returns what a field carries: a string, an int, or nil for nothing.
func (s Speculation) value(source Source, method Method) any {
	if slices.Contains(method.Omit, source) {
		return nil
	}
	switch source {
	case SourceMethod:
		return method.Name
	case SourceDraftModel:
		if s.DraftModel == "" {
			return nil
		}
		return s.DraftModel
	case SourceSteps:
		return s.Steps
	case SourceTopK:
		return max(s.TopK, 1)
	default:
		return s.draftTokens()
	}
}

func (r *Rendering) render(method Method, s Speculation) ([]string, error) {
	if r.JSONFlag != "" {
		object, err := r.object(method, s)
		return []string{r.JSONFlag, object}, err
	}
	var args []string
	for _, field := range r.Fields {
		value := s.value(field.Source, method)
		if value == nil {
			continue
		}
		text := fmt.Sprint(value)
		if field.Key != "" {
			text = field.Key + "=" + text
		}
		args = append(args, field.Name, text)
	}
	return args, nil
}

// object writes the fields as compact JSON in the order of the table, so that
// one speculation has one spelling.
func (r *Rendering) object(method Method, s Speculation) (string, error) {
	var out bytes.Buffer
	for _, field := range r.Fields {
		value := s.value(field.Source, method)
		if value == nil {
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("encode %s: %w", field.Name, err)
		}
		separator := ","
		if out.Len() == 0 {
			separator = "{"
		}
		out.WriteString(separator + strconv.Quote(field.Name) + ":")
		out.Write(encoded)
	}
	out.WriteByte('}')
	return out.String(), nil
}
