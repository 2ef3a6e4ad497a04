package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// phase is how far the server is, as its health page tells.
type phase int32

const (
	phaseStarting phase = iota // the port is open and little else answers
	phaseWarming               // models are listed, health is 503
	phaseReady
)

// server is the HTTP side.
type server struct {
	options  *options
	launch   *launch
	engine   *engine
	log      *logger
	started  time.Time
	phase    atomic.Int32
	ordinal  atomic.Int64 // requests so far
	http     *http.Server
	listener net.Listener
}

// version is what the server calls itself; the simulation follows this release.
const version = "0.5.18"

func newServer(l *launch, e *engine, log *logger) *server {
	s := &server{options: l.options, launch: l, engine: e, log: log, started: time.Now()}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 30 * time.Second}
	return s
}

func (s *server) set(p phase) { s.phase.Store(int32(p)) }

func (s *server) at(p phase) bool { return phase(s.phase.Load()) >= p }

// listen binds the address that the arguments name.
func (s *server) listen(ctx context.Context) error {
	host := s.options.text("host")
	if s.options.faults.has(faultBindIPv6) {
		host = "::1"
	}
	var config net.ListenConfig
	var err error
	s.listener, err = config.Listen(ctx, "tcp", net.JoinHostPort(host, s.options.text("port")))
	if err != nil {
		return fmt.Errorf("[Errno 98] error while attempting to bind on address ('%s', %s): address already in use", host, s.options.text("port"))
	}
	s.log.raw("INFO:     Uvicorn running on http://%s (Press CTRL+C to quit)", s.listener.Addr())
	return nil
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /health_generate", s.healthGenerate)
	mux.HandleFunc("GET /v1/models", s.models)
	for _, path := range []string{"/model_info", "/get_model_info"} {
		mux.HandleFunc("GET "+path, s.modelInfo)
	}
	for _, path := range []string{"/server_info", "/get_server_info"} {
		mux.HandleFunc("GET "+path, s.serverInfo)
	}
	if s.options.on("enable_metrics") {
		mux.HandleFunc("GET /metrics", s.metrics)
	}
	mux.HandleFunc("/flush_cache", s.flushCache)
	mux.HandleFunc("POST /generate", s.generate)
	mux.HandleFunc("POST /v1/completions", s.completions)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	return s.authorized(mux)
}

// authorized asks for the key of --api-key on everything but health pages.
func (s *server) authorized(next http.Handler) http.Handler {
	key := s.options.text("api_key")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key != "" && !strings.HasPrefix(r.URL.Path, "/health") && r.Header.Get("Authorization") != "Bearer "+key {
			answer(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded) // the client may be gone
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	if !s.at(phaseReady) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// healthTimeout is how long a health probe waits for its token.
const healthTimeout = 20 * time.Second

// healthGenerate is the honest page: it makes the scheduler produce a token.
func (s *server) healthGenerate(w http.ResponseWriter, r *http.Request) {
	if !s.at(phaseReady) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	probe := &request{ctx: ctx, prompt: promptOfText("health check"), limit: 1}
	if s.engine.submit(probe) {
		if _, err := probe.next(ctx); err == nil {
			return
		}
	}
	s.log.server("Health check failed. Server couldn't get a response from detokenizer for last %d seconds.", int(healthTimeout.Seconds()))
	w.WriteHeader(http.StatusServiceUnavailable)
}

func (s *server) models(w http.ResponseWriter, _ *http.Request) {
	if !s.at(phaseWarming) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"object": "list",
		"data": []map[string]any{{
			"id": s.options.modelID(), "object": "model", "created": s.started.Unix(), "owned_by": "sglang",
			"root": s.options.modelID(), "max_model_len": contextLength,
		}},
	})
}

func (s *server) modelInfo(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"model_path": s.options.text("model_path"), "tokenizer_path": s.options.text("model_path"),
		"is_generation": true, "weight_version": "default",
	})
}

// serverInfo tells the arguments as parsed, what is in force, and that this is a
// simulation.
func (s *server) serverInfo(w http.ResponseWriter, _ *http.Request) {
	info := map[string]any{}
	for _, f := range serverFlags {
		info[f.destination()] = f.typed(s.options.values[f.destination()])
	}
	state := map[string]any{}
	for name, value := range info {
		state[name] = value
	}
	perf := s.launch.performance
	c := s.engine.snapshot()
	if perf.steps > 0 {
		state["speculative_num_steps"] = perf.steps
		state["speculative_eagle_topk"] = perf.topk
		state["speculative_num_draft_tokens"] = perf.verified
	}
	if c.cycles > 0 && perf.steps > 0 {
		state["avg_spec_accept_length"] = 1 + float64(c.correct)/float64(c.cycles)
	}
	if s.options.text("attention_backend") == "" {
		state["attention_backend"] = "fa3"
	}
	state["mem_fraction_static"] = round(perf.memory.Static/perf.memory.Total, 4)
	state["max_running_requests"] = s.options.maxRunning()
	state["effective_max_running_requests_per_dp"] = s.options.maxRunning()
	state["last_gen_throughput"] = round(c.lastThroughput, 3)
	state["memory_usage"] = map[string]any{
		"weight": s.options.machine.weightsGiB, "kvcache": round(perf.memory.Static-s.options.machine.weightsGiB, 2),
		"token_capacity": perf.memory.KVTokens, "graph": graphMemory,
	}
	info["internal_states"] = []any{state}
	info["max_total_num_tokens"] = perf.memory.KVTokens
	info["version"] = version
	info["startup_time"] = round(s.launch.loadTime().Seconds(), 3)
	info["simulated"] = map[string]any{
		"gpu": s.options.machine.name, "count": s.options.ranks(),
		"driver": s.options.driver, "cuda": s.options.cuda, "nccl": s.options.nccl.String(),
	}
	answer(w, http.StatusOK, info)
}

func (s *server) flushCache(w http.ResponseWriter, _ *http.Request) {
	if !s.engine.flush() {
		http.Error(w, "Flush cache failed. Some requests are running or waiting.", http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintln(w, "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)")
}
