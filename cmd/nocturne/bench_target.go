package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/hashicorp/go-retryablehttp"

	"nocturne/runners/load"
	"nocturne/runners/servers"
)

// benchTarget is the server to measure, and where it tells of itself.
type benchTarget struct {
	client    *load.Client
	protocol  load.Protocol
	model     string
	counters  *load.CounterTable // nil: not read
	tokenizer load.Tokenizer     // nil: lengths are about right
	sampler   load.Sampler       // nil: nobody watches the GPUs
}

// openBenchTarget pins the server's address and finds its model.
func openBenchTarget(ctx context.Context, url string, flags *benchFlags) (*benchTarget, error) {
	address, err := load.Pin(ctx, url)
	if err != nil {
		return nil, err
	}
	t := &benchTarget{protocol: flags.protocol, model: flags.model}
	target := load.Target{
		BaseURL: url, Address: address, Protocol: flags.protocol, Header: flags.headers.Clone(), Extra: map[string]any{},
	}
	var kind *servers.Kind
	if flags.kind != "" {
		if kind, err = servers.Get(flags.kind); err != nil {
			return nil, err
		}
		if kind.Metrics == nil {
			return nil, fmt.Errorf("--kind %s: where that keeps counters is not known; leave the flag out", flags.kind)
		}
		t.counters = counterTableOf(kind.Metrics)
		target.Extra = kind.Fields(string(flags.protocol))
		for name, value := range kind.Header {
			target.Header.Set(name, value)
		}
	}
	for name, value := range flags.extra {
		if target.Extra == nil {
			target.Extra = map[string]any{}
		}
		target.Extra[name] = value
	}
	if t.model == "" && flags.protocol != load.SGLangGenerate {
		if t.model, err = listedModel(ctx, url, target.Header); err != nil {
			return nil, err
		}
	}
	target.Model = t.model
	if t.client, err = load.New(target); err != nil {
		return nil, err
	}
	if tokenizer, known := t.client.Tokenizer(flags.kind); known {
		t.tokenizer = tokenizer
	}
	if host, err := netip.ParseAddrPort(address); err == nil && host.Addr().IsLoopback() {
		t.sampler = load.FindSMI(nil)
	}
	return t, nil
}

// counterTableOf names the counters of a kind of server to the load generator.
func counterTableOf(m *servers.Metrics) *load.CounterTable {
	table := &load.CounterTable{
		Path: m.Path, Families: map[load.Counter][]string{}, AcceptedByPosition: m.ByPosition, PositionLabel: m.PositionLabel,
	}
	for name, families := range m.Sums {
		table.Families[load.Counter(name)] = families
	}
	return table
}

// listedModel is the only model that a server lists.
func listedModel(ctx context.Context, url string, header http.Header) (string, error) {
	root := strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
	client := retryablehttp.NewClient()
	client.Logger, client.RetryMax = nil, 2
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, root+"/v1/models", nil)
	if err != nil {
		return "", err
	}
	request.Header = header.Clone()
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking the server for its model (name it with --model): %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list.Data) != 1 {
		return "", fmt.Errorf("%s/v1/models lists %d models: name one with --model", root, len(list.Data))
	}
	return list.Data[0].ID, nil
}
