package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"nocturne/runners"
	"nocturne/runners/load"
	"nocturne/runners/servers"
)

const (
	probePrompt = "Write one sentence about the night sky."
	// probeTokens passes through decoding for long: a captured graph has been seen to
	// hang after 227 tokens where 128 went through (sglang#29548).
	probeTokens = 256
	// leastProbe is asked for where the context of the model has no room for that.
	leastProbe = 16
)

// verify proves that the server serves the right model, that it really
// completes a request, that all of its workers are there, and that it runs with
// the settings asked for.
func (t *trial) verify(ctx context.Context) error {
	t.enter(runners.Verifying)
	ctx, cancel := limited(ctx, t.job.Timeouts.Verifying, symptom(servers.ReasonVerifyingTimeout,
		"the server was healthy but not verified within %s", t.job.Timeouts.Verifying))
	defer cancel()
	if err := t.verifyModel(ctx); err != nil {
		return err
	}
	memory := make(chan string, 1)
	t.background.Go(func() { memory <- t.unevenMemory(ctx) })
	if err := t.verifyCompletion(ctx); err != nil {
		return err
	}
	t.readInfo(ctx)
	t.fitVersion()
	if uneven := <-memory; uneven != "" {
		t.result.Warnings = append(t.result.Warnings, uneven)
	}
	return t.verifyProcesses()
}

// fitVersion makes the rest of the trial read the server as its version is.
func (t *trial) fitVersion() {
	text := t.result.Stack.ServerVersion
	if text == "" {
		text = t.log.known()["server_version"]
	}
	version, told := servers.ParseVersion(text)
	newest, err := servers.Get(t.job.Kind)
	if err != nil || !told {
		return
	}
	kind, differences := newest.At(version)
	t.kind = kind
	t.table = counterTable(kind.Metrics)
	if len(differences) == 0 {
		return
	}
	names := make([]string, len(differences))
	for i, difference := range differences {
		names[i] = difference.ID
	}
	t.result.Effective["server_differences"] = strings.Join(names, " ")
}

// verifyProcesses looks at every process of the launch: that the workers are all
// there, and that they have what was asked for.
func (t *trial) verifyProcesses() error {
	members, err := t.process.Processes()
	if err != nil {
		return fail(servers.ReasonTunerError, "%v", err)
	}
	command := servers.Command{Args: t.spec.Args, Env: t.spec.Env}
	processes := make([][]string, len(members))
	for i, member := range members {
		processes[i] = member.Args
	}
	// A simulated server may play its ranks with fewer processes.
	if seen, expected := t.kind.MissingWorkers(command, processes); seen < expected && t.result.Simulated == nil {
		return symptom(servers.ReasonWorkersMissing, "%d of %d worker processes are there although the server answers", seen, expected)
	}
	t.result.Proof = t.prove(members)
	return mismatchFailure(t.result.Proof)
}

// Memory of equal GPUs that differs by more than this share of the fullest, and
// by more than 1 GiB, shrinks the cache of all of them to that of the fullest.
const (
	unevenShare = 0.1
	unevenMiB   = 1024
)

// unevenMemory says so when the GPUs of the job are not used alike.
func (t *trial) unevenMemory(ctx context.Context) string {
	used, err := t.memoryOfJob(ctx)
	if err != nil || len(used) < 2 {
		return ""
	}
	least, most := slices.Min(used), slices.Max(used)
	if most-least <= unevenMiB || float64(most-least) <= unevenShare*float64(most) {
		return ""
	}
	return fmt.Sprintf("the GPUs use from %d to %d MiB: the ranks are not alike, or something else uses one of them", least, most)
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
	before, countable := t.drafting(ctx)
	for {
		asked := time.Now()
		completion, err := client.Complete(ctx, request)
		switch {
		case err == nil:
			t.serving += time.Since(asked)
			t.lookForDrafts(ctx, completion.Speculation, before, countable)
			return t.checkCompletion(completion, request)
		case answered(err, http.StatusBadRequest) && request.OutputTokens > leastProbe:
			request.OutputTokens = leastProbe
			continue
		case !answered(err, http.StatusServiceUnavailable):
			return t.diedOr(ctx, symptom(servers.ReasonNoCompletion, "%v", err))
		}
		if err := sleep(ctx, lastPoll); err != nil {
			return err
		}
	}
}

// drafting reads the counters of speculative decoding: of verify passes, drafts
// and drafted tokens, whichever there are. It is false when the trial does not
// speculate or the server does not count.
func (t *trial) drafting(ctx context.Context) (count float64, countable bool) {
	command := servers.Command{Args: t.spec.Args, Env: t.spec.Env}
	if t.table == nil || !t.kind.Speculates(command) || t.kind.Metrics.Off(command) {
		return 0, false
	}
	counters, err := t.client.Counters(ctx, *t.table)
	if err != nil {
		return 0, false
	}
	for _, counter := range []load.Counter{load.VerifyCalls, load.Drafts, load.DraftTokens} {
		if value, told := counters.Values[counter]; told {
			count, countable = count+value, true
		}
	}
	return count, countable
}

// draftLooks is how often the counters are read until they show the first
// completion: servers count a request once it is over.
const draftLooks = 5

// lookForDrafts finds out whether speculation worked on the first completion. A
// server may be healthy and answer well without: a draft model that is loaded
// and never used (llama.cpp#25345). Drafts by matching need not have found
// anything in so short a text.
func (t *trial) lookForDrafts(ctx context.Context, told load.Speculation, before float64, countable bool) {
	proof := runners.Proof{Knob: "speculation", Status: runners.ProofUnknown, Evidence: runners.EvidenceRequested, Detail: "the server counts no drafts"}
	switch {
	case !t.kind.Speculates(servers.Command{Args: t.spec.Args, Env: t.spec.Env}):
		return
	case told.Verifications > 0 || told.Drafted > 0:
		proof.Status, proof.Evidence, proof.Detail = runners.ProofApplied, runners.EvidenceServer, "the first answer tells of drafts"
	case t.kind.Metrics.Off(servers.Command{Args: t.spec.Args}):
		proof.Detail = fmt.Sprintf("%s is not given: drafts and acceptance cannot be read", t.kind.Metrics.Flag)
	case countable:
		proof.Evidence, proof.Detail = runners.EvidenceServer, "no token was drafted for the first answer"
		for look := range draftLooks {
			if now, ok := t.drafting(ctx); ok && now > before {
				proof.Status, proof.Evidence, proof.Detail = runners.ProofApplied, runners.EvidenceServer, "the counters of drafts rise"
				break
			}
			if look+1 == draftLooks || sleep(ctx, lastPoll) != nil {
				break
			}
		}
	}
	t.drafts = &proof
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

// answered tells whether a request failed with that status. 503 asks to come
// again.
func answered(err error, status int) bool {
	var refused *load.RequestError
	return errors.As(err, &refused) && refused.Kind == load.FailedStatus(status)
}

// checkCompletion looks at the answer to the first request. Its length is judged
// by the rounds, of which many requests are measured; a probe that is merely
// short says so.
func (t *trial) checkCompletion(completion load.Completion, request load.Request) error {
	switch {
	case completion.OutputTokens == load.Unknown:
		return fail(servers.ReasonNoCompletion, "the answer does not say how many tokens it has (usage): nothing could be measured")
	case completion.OutputTokens < 1:
		return symptom(servers.ReasonNoCompletion, "the answer has no token")
	case completion.Text == "" && completion.Reasoning == "":
		return symptom(servers.ReasonNoCompletion, "the answer of %d tokens has no text", completion.OutputTokens)
	case request.IgnoreEOS && completion.OutputTokens != request.OutputTokens:
		t.result.Warnings = append(t.result.Warnings, fmt.Sprintf("the first answer has %d tokens instead of the %d asked for", completion.OutputTokens, request.OutputTokens))
	}
	t.result.Effective["probe_tokens"] = strconv.Itoa(completion.OutputTokens)
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
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			// Such pages ask every scheduler, of which one may be stuck.
			t.result.Warnings = append(t.result.Warnings, fmt.Sprintf("%s was not answered within %s", info.Paths[0], pageTimeout))
		}
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
