package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"nocturne/runners/local"
	"nocturne/search"
	"nocturne/store/open"
	"nocturne/tuner"
	"nocturne/tuner/spec"
)

// listener is a sampler that keeps the last request.
type listener struct {
	search.Sampler
	request search.Request
}

func (l *listener) Ask(ctx context.Context, request search.Request) (search.Proposal, error) {
	l.request = request
	return l.Sampler.Ask(ctx, request)
}

// From the counters of a server to the sampler: the acceptance length that a
// simulated server counts reaches the search as a factor of its objective.
func TestAcceptanceOfAServerReachesTheSearch(t *testing.T) {
	t.Parallel()
	file := strings.NewReplacer(
		"budget: {trials: 1}", "budget: {trials: 3}", "top: 1, relaunches: 3", "top: 1, relaunches: 2",
		"      default: slow\n", "      default: slow\n  speculative: {method: eagle3, draft_model: /models/head, steps: {choices: [0, 1, 3]}}\n",
	).Replace(read(t, "testdata/campaigns/simulated.yaml"))
	campaign, _, err := spec.Parse("simulated.yaml", []byte(file), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := open.Store(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	options := testHost()
	options.LockDirectory = t.TempDir()
	host, err := local.New(options)
	if err != nil {
		t.Fatal(err)
	}
	heard := &listener{}
	tun := &tuner.Tuner{Store: s, Host: host, Log: zerolog.Nop(), LogDirectory: t.TempDir(), NewSampler: func(name string) (search.Sampler, error) {
		made, err := search.New("grid") // the whole space, so speculation too
		heard.Sampler = made
		return heard, err
	}}
	if outcome, err := tun.Run(t.Context(), campaign, tuner.Options{}); err != nil || outcome.Cause != "" {
		t.Fatalf("%v: %+v", err, outcome)
	}
	factors := heard.request.Factors
	if len(factors) != 1 || factors[0].Power != 1 || strings.Join(factors[0].Knobs, " ") != "speculative.steps" {
		t.Fatalf("factors %+v, want acceptance by the steps", factors)
	}
	for _, observation := range heard.request.History {
		length := observation.Factors[factors[0].Name]
		least, most := 1.0, 1.0
		if steps, _ := observation.Values["speculative.steps"].Integer(); steps > 0 {
			least, most = 1.2, float64(steps)+1
		}
		if length < least || length > most {
			t.Errorf("trial %d (%s): acceptance length %g, want %g to %g", observation.Trial, observation.Values, length, least, most)
		}
	}
}
