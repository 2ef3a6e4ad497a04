package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// contextLength is the longest prompt and answer together.
const contextLength = 131072

// generation is one request in the words that all endpoints share.
type generation struct {
	prompt    prompt
	maxTokens int
	ignoreEOS bool
	stream    bool
	// usage and continuousUsage ask for usage at the end, and in every chunk.
	usage, continuousUsage bool
}

// httpError is a refusal before anything is generated.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

// fails tells whether the ordinal-th request, from 0, belongs to a share that is
// spread evenly.
func fails(share float64, ordinal int64) bool {
	return math.Floor(float64(ordinal+1)*share) > math.Floor(float64(ordinal)*share)
}

// failureTime is how long a request takes to fail with HTTP 500, unscaled.
const failureTime = 20 * time.Millisecond

// start checks a request and gives it to the engine. broken tells that its
// stream shall end in an error.
func (s *server) start(ctx context.Context, g generation) (r *request, broken bool, err error) {
	if !s.at(phaseReady) {
		return nil, false, &httpError{http.StatusServiceUnavailable, "the server is warming up"}
	}
	ordinal := s.ordinal.Add(1) - 1
	faults := s.options.faults
	if share, on := faults.number(faultHTTP500); on && fails(share, ordinal) {
		sleep(ctx, time.Duration(float64(failureTime)/s.options.servingScale))
		return nil, false, &httpError{http.StatusInternalServerError, "Internal server error"}
	}
	if ordinal == 0 && faults.has(faultReadyEarly) && !sleep(ctx, s.scaledLoad(earlyFirstRequest)) {
		return nil, false, ctx.Err()
	}
	if g.maxTokens < 1 {
		return nil, false, &httpError{http.StatusBadRequest, fmt.Sprintf("max_tokens must be at least 1, got %d", g.maxTokens)}
	}
	if total := g.prompt.tokens + g.maxTokens; total > contextLength {
		return nil, false, &httpError{http.StatusBadRequest, fmt.Sprintf(
			"Requested token count exceeds the model's maximum context length of %d tokens. You requested a total of %d tokens.", contextLength, total)}
	}
	r = &request{ctx: ctx, prompt: g.prompt, limit: g.maxTokens, reason: "length", interval: s.options.number("stream_interval")}
	if natural := g.prompt.naturalLength(); !g.ignoreEOS && natural < r.limit {
		r.limit, r.reason = natural, "stop"
	}
	if share, on := faults.number(faultShortOutput); on {
		r.limit = max(1, int(math.Round(share*float64(r.limit))))
	}
	share, on := faults.number(faultErrorInStream)
	if !s.engine.submit(r) {
		return nil, false, ctx.Err()
	}
	return r, on && fails(share, ordinal), nil
}

// words returns the tokens from one position to another as text.
func (s *server) words(r *request, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if s.engine.wrong {
			b.WriteString(corruptedWord(r.prompt.hash, i))
		} else {
			b.WriteString(word(r.prompt.hash, i))
		}
	}
	return b.String()
}

// writer sends server-sent events.
type writer struct {
	http.ResponseWriter
	flush *http.ResponseController
}

func newWriter(w http.ResponseWriter) writer {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return writer{w, http.NewResponseController(w)}
}

func (w writer) event(body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	frame := make([]byte, 0, len(encoded)+8)
	frame = append(append(append(frame, "data: "...), encoded...), "\n\n"...)
	if _, err := w.Write(frame); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return w.flush.Flush()
}

func (w writer) done() {
	_, _ = w.Write([]byte("data: [DONE]\n\n")) // the client may be gone
	_ = w.flush.Flush()
}

// errAborted is a stream that ends by the fault "error-in-stream".
var errAborted = errors.New("the stream ends in an error")

// refuse answers a request that was not started.
func refuse(w http.ResponseWriter, err error) {
	var refusal *httpError
	if !errors.As(err, &refusal) {
		return // the client is gone
	}
	kind := "InternalServerError"
	if refusal.status == http.StatusBadRequest {
		kind = "BadRequestError"
	}
	answer(w, refusal.status, map[string]any{
		"object": "error", "message": refusal.message, "type": kind, "code": refusal.status,
	})
}

func errorEvent() any {
	return map[string]any{"error": map[string]any{
		"object": "error", "message": "The request was aborted by the scheduler", "type": "InternalServerError", "code": 500,
	}}
}

// nativeRequest is the body of /generate.
type nativeRequest struct {
	Text           json.RawMessage `json:"text"`
	InputIDs       []int           `json:"input_ids"`
	Stream         bool            `json:"stream"`
	SamplingParams struct {
		MaxNewTokens *int `json:"max_new_tokens"`
		IgnoreEOS    bool `json:"ignore_eos"`
	} `json:"sampling_params"`
}

const standardNewTokens = 128

func (n nativeRequest) generation() (generation, error) {
	g := generation{maxTokens: standardNewTokens, ignoreEOS: n.SamplingParams.IgnoreEOS, stream: n.Stream}
	if n.SamplingParams.MaxNewTokens != nil {
		g.maxTokens = *n.SamplingParams.MaxNewTokens
	}
	if len(n.InputIDs) > 0 {
		g.prompt = promptOfIDs(n.InputIDs)
		return g, nil
	}
	text, err := textOf(n.Text)
	g.prompt = promptOfText(text)
	return g, err
}

func (s *server) generate(w http.ResponseWriter, httpRequest *http.Request) {
	var body nativeRequest
	if err := json.NewDecoder(httpRequest.Body).Decode(&body); err != nil {
		refuse(w, &httpError{http.StatusBadRequest, "body is not JSON: " + err.Error()})
		return
	}
	g, err := body.generation()
	if err != nil {
		refuse(w, err)
		return
	}
	begin := time.Now()
	r, broken, err := s.start(httpRequest.Context(), g)
	if err != nil {
		refuse(w, err)
		return
	}
	id := newID("")
	shown := strings.Builder{}
	var last snapshot
	var stream writer
	if g.stream {
		stream = newWriter(w)
	}
	err = r.follow(httpRequest.Context(), broken, func(now snapshot, from int) error {
		shown.WriteString(s.words(r, from, now.tokens))
		last = now
		if !g.stream {
			return nil
		}
		text := shown.String()
		if s.options.on("incremental_streaming_output") {
			text = s.words(r, from, now.tokens)
		}
		return stream.event(map[string]any{"text": text, "meta_info": s.metaInfo(id, r, now, begin)})
	})
	switch {
	case errors.Is(err, errAborted) && g.stream:
		if stream.event(errorEvent()) == nil {
			stream.done()
		}
	case errors.Is(err, errAborted):
		refuse(w, &httpError{http.StatusInternalServerError, "The request was aborted by the scheduler"})
	case err != nil:
	case g.stream:
		stream.done()
	default:
		answer(w, http.StatusOK, map[string]any{"text": shown.String(), "meta_info": s.metaInfo(id, r, last, begin)})
	}
}

// metaInfo is what /generate tells about a request; statistics of speculation
// come with the last event only.
func (s *server) metaInfo(id string, r *request, now snapshot, begin time.Time) map[string]any {
	info := map[string]any{
		"id": id, "finish_reason": nil, "prompt_tokens": r.prompt.tokens, "weight_version": "default",
		"completion_tokens": now.tokens, "cached_tokens": now.cached, "e2e_latency": time.Since(begin).Seconds(),
	}
	if s.options.faults.has(faultNoUsage) {
		delete(info, "completion_tokens")
	}
	if !now.finished {
		return info
	}
	reason := map[string]any{"type": r.reason}
	if r.reason == "length" {
		reason["length"] = r.limit
	} else {
		reason["matched"] = 163586 // the end-of-sequence token
	}
	info["finish_reason"] = reason
	if perf := s.launch.performance; perf.steps > 0 && now.cycles > 0 {
		proposed := now.cycles * (perf.verified - 1)
		info["spec_verify_ct"] = now.cycles
		info["spec_accept_length"] = ratio(now.tokens, now.cycles)
		info["spec_accept_rate"] = ratio(now.correct, proposed)
		info["spec_num_correct_drafts"] = now.correct
		info["spec_num_proposed_drafts"] = proposed
		info["spec_correct_drafts_histogram"] = now.histogram
	}
	return info
}
