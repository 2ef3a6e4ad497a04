package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/runners/servers"
)

const (
	probePrompt = "Write one sentence about the night sky."
	// probeTokens is enough to pass through decoding, and to need several steps
	// of speculation.
	probeTokens = 16
)

// verify proves that the server serves the right model, that it really
// completes a request, and that its processes have the environment asked for.
func (t *trial) verify(ctx context.Context) error {
	t.enter(runners.Verifying)
	ctx, cancel := limited(ctx, t.job.Timeouts.Verifying, symptom(servers.ReasonVerifyingTimeout,
		"the server was healthy but not verified within %s", t.job.Timeouts.Verifying))
	defer cancel()
	if err := t.verifyModel(ctx); err != nil {
		return err
	}
	if err := t.verifyCompletion(ctx); err != nil {
		return err
	}
	t.readInfo(ctx)
	return t.verifyEnvironment()
}

// verifyModel finds the model id to ask for. The list may come up after health.
func (t *trial) verifyModel(ctx context.Context) error {
	var ids []string
	for {
		var err error
		if ids, err = t.pages.models(ctx, t.kind.Models); err == nil {
			break
		}
		if sleep(ctx, lastPoll) != nil {
			return orCause(ctx, err)
		}
	}
	t.model = ids[0]
	if t.job.Model == "" {
		return nil
	}
	if !slices.Contains(ids, t.job.Model) {
		return fail(servers.ReasonWrongModel, "the server serves %s, expected %s", strings.Join(ids, ", "), t.job.Model)
	}
	t.model = t.job.Model
	return nil
}

// verifyCompletion sends one real request. A server that is still busy with
// itself (503) is asked again.
func (t *trial) verifyCompletion(ctx context.Context) error {
	client, err := load.New(load.Target{
		BaseURL: "http://" + t.address, Model: t.model,
		Protocol: load.Protocol(t.job.Workload.Endpoint), Extra: t.kind.Fields(t.job.Workload.Endpoint),
		Header: t.header(),
	})
	if err != nil {
		return fail(servers.ReasonWorkload, "%v", err)
	}
	t.client = client
	t.table = counterTable(t.kind.Metrics)
	request := load.Request{
		Prompt: probePrompt, OutputTokens: probeTokens,
		IgnoreEOS: t.job.Workload.IgnoreEOS, Temperature: t.job.Workload.Temperature,
	}
	for {
		asked := time.Now()
		completion, err := client.Complete(ctx, request)
		if err == nil {
			t.serving += time.Since(asked)
			return checkCompletion(completion)
		}
		if !notYet(err) {
			return t.diedOr(ctx, symptom(servers.ReasonNoCompletion, "%v", err))
		}
		if err := sleep(ctx, lastPoll); err != nil {
			return err
		}
	}
}

// header is what every request carries: what the kind needs, and the key.
func (t *trial) header() http.Header {
	header := http.Header{}
	for name, value := range t.kind.Header {
		header.Set(name, value)
	}
	maps.Copy(header, t.pages.header)
	return header
}

// notYet tells a server that asks to come again from one that failed.
func notYet(err error) bool {
	var refused *load.RequestError
	return errors.As(err, &refused) && refused.Kind == load.FailureKind(fmt.Sprintf("http_%d", http.StatusServiceUnavailable))
}

func checkCompletion(completion load.Completion) error {
	switch {
	case completion.OutputTokens == load.Unknown:
		return fail(servers.ReasonNoCompletion, "the answer does not say how many tokens it has (usage): nothing could be measured")
	case completion.OutputTokens < 1:
		return symptom(servers.ReasonNoCompletion, "the answer has no token")
	}
	return nil
}

// diedGrace is how long a dead connection may be ahead of the news that the
// server died.
const diedGrace = 300 * time.Millisecond

// diedOr returns why the trial ended when that follows at once, else the error.
func (t *trial) diedOr(ctx context.Context, err error) error {
	timer := time.NewTimer(diedGrace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return err
	}
}

// readInfo keeps what the server tells of itself. Pages that are missing are no
// error: what they would have told stays unknown.
func (t *trial) readInfo(ctx context.Context) {
	t.result.Stack.Server = t.kind.Name
	t.result.Stack.Model = t.model
	for i := range t.kind.Info {
		info := &t.kind.Info[i]
		if t.pagesRead && !info.Live {
			continue
		}
		page, err := t.readPage(ctx, info)
		if err != nil {
			continue
		}
		if page.Version != "" {
			t.result.Stack.ServerVersion = page.Version
		}
		for name, value := range page.Effective {
			if t.told == nil {
				t.told = map[string]string{}
			}
			t.told[name] = value
			if value != servers.Null {
				t.result.Effective[name] = value
			}
		}
		t.readSimulated(page.Document)
	}
	t.pagesRead = true
}

// readPage asks the paths of a page in turn.
func (t *trial) readPage(ctx context.Context, info *servers.Info) (servers.Page, error) {
	var body []byte
	var err error
	for _, path := range info.Paths {
		if body, err = t.pages.get(ctx, path); err == nil {
			return info.Read(body)
		}
	}
	return servers.Page{}, err
}
